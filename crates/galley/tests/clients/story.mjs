/** A use of `@galley/client` that runs in each of its runtimes. */

/** Throws, unless two values have the same JSON. */
export function same(actual, expected, place) {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (found !== wanted) throw new Error(`${place}: ${found} instead of ${wanted}`);
}

/** Returns the error of a promise that rejects. */
async function rejection(promise, place) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`${place}: no error`);
}

export async function story({ createClient, etagOf, GalleyError, retryOnConflict }, url, token) {
  const name = `story-${crypto.randomUUID()}`;
  const galley = createClient({ url, token });
  const { id: group } = await galley.createContentGroup({ name });
  const tag = await galley.createTag({ label: name, color: "blue" }, { return: "representation" });
  same(tag.color, "blue", "a creation with its representation");

  const pieces = Array.from({ length: 45 }, (_, number) => ({
    title: `Piece ${number}`,
    slug: `piece-${number}`,
    tags: number % 2 ? [tag.id] : [],
    members: [],
    contentGroupId: group,
    content: `<p>Text <b>${number}</b></p>`,
  }));
  await galley.createContentPieces({ pieces });
  const list = galley.listContentPieces({ contentGroupId: group, perPage: 20, total: true, fields: ["title"] });
  const titles = [];
  for await (const { title } of list) titles.push(title);
  same(titles, pieces.map(({ title }) => title), "all items of a list");
  const sizes = [];
  for await (const { items, total } of list.byPage()) sizes.push([items.length, total]);
  same(sizes.map(([length]) => length), [20, 20, 5], "pages of a list");
  same(sizes[0][1], 45, "the total of a list");
  same((await galley.listContentPieces({ contentGroupId: [group], tagId: [tag.id] }).first()).items.length, 20, "a filter");

  const created = { title: "A title", slug: "a-title", tags: [], members: [], contentGroupId: group };
  const { id } = await galley.createContentPiece({ ...created, content: "<p>Hello <b>world</b></p>" });
  const html = await galley.getContentPiece({ id, content: true, contentFormat: "html" });
  same(html.content, "<p>Hello <strong>world</strong></p>", "content as HTML");
  const tree = await galley.getContentPiece({ id, content: true });
  same(tree.content.content[0].content[1].marks, [{ type: "bold" }], "content as a tree");

  // The first editor saves twice. The second one has read the version before.
  const other = await galley.getContentPiece({ id });
  await galley.updateContentPiece({ id, title: "First" }, { ifMatch: html });
  await galley.updateContentPiece({ id, title: "Second" }, { ifMatch: html });
  const conflict = await rejection(galley.updateContentPiece({ id, title: "Lost" }, { ifMatch: other }), "a conflict");
  same([conflict instanceof GalleyError, conflict.status, conflict.reason], [true, 412, "precondition_failed"], "a conflict");
  const rename = () =>
    retryOnConflict(async () => {
      const piece = await galley.getContentPiece({ id });
      await galley.updateContentPiece({ id, title: `${piece.title}!` }, { ifMatch: piece });
    }, 100);
  await Promise.all([rename(), rename(), rename()]);
  same((await galley.getContentPiece({ id, fields: ["title"] })).title, "Second!!!", "changes after conflicts");
  same(etagOf(html) !== etagOf(other), true, "entity tags");

  const invalid = await rejection(galley.createTag({ label: "" }), "an invalid request");
  same([invalid.reason, invalid.issues[0].path], ["validation", ["label"]], "the issues of a problem");
  same(invalid.requestId.length > 0, true, "the id of a failed request");

  const key = crypto.randomUUID();
  const first = await galley.createTag({ label: `${name} twice` }, { idempotencyKey: key });
  same(await galley.createTag({ label: `${name} twice` }, { idempotencyKey: key }), first, "a repeated creation");

  const bytes = new TextEncoder().encode(name);
  const upload = { filename: "notes.txt", alt: "Notes", contentGroupId: group };
  const asset = await galley.uploadAsset(new Blob([bytes]), upload, { idempotencyKey: `${key}-file` });
  same((await galley.uploadAsset(bytes, upload, { idempotencyKey: `${key}-file` })).id, asset.id, "a repeated upload");
  await galley.updateAsset({ id: asset.id, alt: "Other notes" }, { ifMatch: asset });
  same([asset.filename, asset.alt, asset.size], ["notes.txt", "Notes", bytes.length], "an uploaded file");

  const { sequence } = await galley.getEventPosition();
  const seen = [];
  const following = (async () => {
    for await (const event of galley.followEvents({ after: sequence })) {
      seen.push([event.type, event.data.title]);
      if (seen.length === 2) return;
    }
  })();
  await galley.updateContentPiece({ id, title: "Followed" });
  await galley.deleteContentPiece({ id });
  await following;
  same(seen, [["contentPieceUpdated", "Followed"], ["contentPieceRemoved", "Followed"]], "events");

  const empty = await rejection(galley.listContentPieces({ ids: [] }).all(), "an empty list of ids");
  same(empty.message, "ids is an empty list", "an empty list of ids");

  const controller = new AbortController();
  controller.abort(new Error("enough"));
  const aborted = await rejection(galley.getProfile(undefined, { signal: controller.signal }), "an aborted request");
  same(aborted.message, "enough", "an aborted request");
  const wrong = createClient({ url, token: () => Promise.resolve("galley_wrong") });
  same((await rejection(wrong.getProfile(), "a wrong token")).reason, "unauthorized", "a wrong token");
  const broken = await rejection(createClient({ url, token: "secret\ntoken" }).getProfile(), "a broken token");
  same(broken.message.includes("secret"), false, "an error without the token");
  for (const address of ["localhost:8080", "http://user:password@localhost", "http://localhost/?x=1"]) {
    const rejected = await rejection((async () => createClient({ url: address }))(), address);
    same(rejected.message.startsWith("url must"), true, address);
  }
}
