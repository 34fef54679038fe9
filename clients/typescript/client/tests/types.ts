/** Types that must compile, and with `@ts-expect-error` types that must not. */
import { type ContentTree, createClient, GalleyError, type Reason, type Schemas, verifyWebhook } from "../src/index.ts";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
const check = <_ extends true>() => undefined;

interface Blog {
  customData: { seo?: string };
  variant: "de" | "pt-BR";
}

declare const maybe: string | undefined;
const galley = createClient({ url: "http://127.0.0.1:8080", token: maybe });
const blog = createClient<Blog>({ url: "http://127.0.0.1:8080", token: async () => "galley_" });

export async function contents(): Promise<void> {
  const plain = await galley.getContentPiece({ id: "cp_" });
  check<Equal<typeof plain.customData, string | null>>();
  // @ts-expect-error The content was not requested.
  plain.content;
  const tree = await galley.getContentPiece({ id: "cp_", content: true });
  check<Equal<typeof tree.content, ContentTree>>();
  const html = await galley.getContentPiece({ id: "cp_", content: true, contentFormat: "html" });
  check<Equal<typeof html.content, string>>();
  const fields = await galley.getContentPiece({ id: "cp_", fields: ["title", "content"], contentFormat: "markdown" });
  check<Equal<keyof typeof fields, "id" | "title" | "content">>();
  check<Equal<typeof fields.content, string>>();
  // @ts-expect-error There is no such field.
  galley.getContentPiece({ id: "cp_", fields: ["titel"] });
  // @ts-expect-error There is no such parameter.
  galley.getContentPiece({ id: "cp_", contnet: true });
  // @ts-expect-error There is no such filter.
  galley.listContentPieces({ contentGroupID: "cg_", sort: "-date" });
  // @ts-expect-error A tag is deleted by a single id.
  galley.deleteTag({ id: ["tag_"] });
  const format = "html" as "html" | "json";
  const either = await galley.getContentPiece({ id: "cp_", content: true, contentFormat: format });
  check<Equal<typeof either.content, string | ContentTree>>();
  const some = await galley.getContentPiece({ id: "cp_", fields: ["title"] as ("title" | "slug")[] });
  check<Equal<keyof typeof some, "id" | "title" | "slug">>();
  const revision = await galley.getRevision({ id: "cp_", revision: "rev_", fields: ["title"] });
  check<Equal<typeof revision.title, string>>();
  revision.revision.id;
  // @ts-expect-error The id is required.
  galley.getContentPiece({});
  // @ts-expect-error There is no such parameter.
  galley.listTags({ colour: "blue" });
  // @ts-expect-error There is no such format.
  galley.getContentPiece({ id: "cp_", contentFormat: "xml" });
}

export async function workspaceTypes(): Promise<void> {
  const piece = await blog.getContentPiece({ id: "cp_", customData: "object", variant: "de" });
  check<Equal<typeof piece.customData, { seo?: string } | null>>();
  // @ts-expect-error The workspace has no such variant.
  blog.getContentPiece({ id: "cp_", variant: "fr" });
  for await (const hit of blog.searchContentPieces({ query: "harbour", fields: ["title"] })) {
    check<Equal<keyof typeof hit.piece, "id" | "title">>();
    hit.highlights.title?.ranges;
  }
}

export async function lists(): Promise<void> {
  const filters = { contentGroupId: ["cg_"], dateFrom: new Date(), sort: "-date", perPage: 50 } as const;
  for await (const piece of galley.listContentPieces(filters)) check<Equal<typeof piece.title, string>>();
  galley.listContentPieces({ contentGroupId: maybe, sort: "title" }, { workspace: maybe });
  const tags = await galley.listTags().all();
  check<Equal<typeof tags, Schemas["Tag"][]>>();
  const { total } = await galley.listContentPieces({ total: true }).first();
  check<Equal<typeof total, number | null>>();
  const settings = await galley.listSettings();
  check<Equal<typeof settings, Schemas["Setting"][]>>();
}

export async function changes(): Promise<void> {
  const created = await galley.createTag({ label: "News" });
  check<Equal<typeof created, Schemas["Created"]>>();
  const tag = await galley.createTag({ label: "News" }, { return: "representation" });
  check<Equal<typeof tag, Schemas["Tag"]>>();
  const nothing = await galley.updateTag({ id: tag.id, color: "blue" }, { ifMatch: tag });
  check<Equal<typeof nothing, void>>();
  const changed = await galley.updateTag({ id: tag.id }, { return: "representation" });
  check<Equal<typeof changed, Schemas["Tag"]>>();
  const deleted = await galley.deleteTag({ id: tag.id });
  check<Equal<typeof deleted, void>>();
  const test = await galley.testWebhook({ id: "wh_" });
  check<Equal<typeof test, Schemas["Accepted"]>>();
  galley.updateVariant({ id: "var_", description: maybe });
  // @ts-expect-error The label is required.
  galley.createTag({ color: "blue" });
  // @ts-expect-error There is no such color.
  galley.createTag({ label: "News", color: "sky" });
}

export async function events(): Promise<void> {
  const event = await verifyWebhook({ headers: {}, body: "" }, "secret");
  if (event.type === "tagChanged") check<Equal<typeof event.data.label, string>>();
  if (event.type === "contentPieceUpdated") check<Equal<typeof event.data.title, string>>();
  for await (const one of galley.followEvents({ after: 1 })) {
    if (one.type === "assetAdded") check<Equal<typeof one.data.filename, string>>();
  }
}

export function problems(error: unknown): Reason | "unknown" | undefined {
  return error instanceof GalleyError ? error.reason : undefined;
}
