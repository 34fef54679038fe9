/** A program on the types that `galley types` has written of a workspace. */
import { createClient } from "../clients/typescript/client/dist/index.js";
import { groups, type Workspace } from "./workspace.ts";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
const check = <_ extends true>() => undefined;

type Posts = Workspace["groups"][typeof groups.Posts];
type Menu = Workspace["groups"][(typeof groups)["Posts/Menus & more"]];
type Shapes = Workspace["groups"][typeof groups.Shapes];

check<Equal<Workspace["variant"], "de" | "pt-BR">>();
check<Equal<Workspace["groups"][(typeof groups)["Posts/News"]], Posts>>();
check<Equal<Workspace["groups"][typeof groups.Notes], unknown>>();
check<Equal<Posts["seo"], { title: string; description?: string | null; [key: string]: unknown }>>();
check<Equal<Posts["rating"], 1 | 2 | 3 | undefined>>();
check<Equal<Posts["weights"], number[] | undefined>>();

const menu: Menu = { label: "Home", entries: [{ label: "Blog", entries: [] }] };
// @ts-expect-error An entry has a label.
const broken: Menu = { label: "Home", entries: [{ entries: [] }] };

export function area(shape: NonNullable<Shapes["shape"]>): number {
  return shape.kind === "circle" ? shape.radius ** 2 * 3 : shape.sides[0] * (shape.sides[1] ?? 1);
}
check<Equal<Shapes["a \"quoted\" name"], ("*/" | null) | undefined>>();
check<Equal<Shapes["by-language"], { [key: string]: string } | undefined>>();

export async function read(): Promise<void> {
  const galley = createClient<Workspace>({ url: "http://127.0.0.1:8080" });
  const list = galley.listContentPieces({ contentGroupId: groups.Posts, customData: "object", variant: "de" });
  for await (const { customData } of list) check<Equal<typeof customData, Posts | null>>();
  const below = galley.listContentPieces({ contentGroupId: groups.Posts, customData: "object", subtree: true });
  for await (const { customData } of below) check<Equal<typeof customData, Workspace["customData"] | null>>();
  // @ts-expect-error The workspace has no such variant.
  galley.listContentPieces({ variant: "fr" });
}
export { broken, menu };
