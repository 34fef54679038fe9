/** Loads trees of the API into TipTap's schema, and saves them unchanged. */
import { getSchema } from "@tiptap/core";
import { pathToFileURL } from "node:url";
import { same } from "./story.mjs";

const { GALLEY_CLIENT, GALLEY_TIPTAP, GALLEY_URL, GALLEY_TOKEN } = process.env;
const { createClient, etagOf } = await import(pathToFileURL(GALLEY_CLIENT).href);
const { galleyExtensions } = await import(pathToFileURL(GALLEY_TIPTAP).href);
const galley = createClient({ url: GALLEY_URL, token: GALLEY_TOKEN });
const schema = getSchema(galleyExtensions());

const html = `
  <h1>Title</h1><h6>Small</h6>
  <p>Plain <b>bold</b> <i>italic</i> <s>gone</s> <u>under</u> <code>code</code> H<sub>2</sub>O x<sup>2</sup>
    <mark>marked</mark> <mark data-color="#ff0" style="background-color: #ff0">yellow</mark>
    <a href="https://example.org/?a=1&amp;b=2" target="_blank" rel="nofollow" class="x">link <code>in code</code></a><br>next</p>
  <blockquote><p>Quoted</p><blockquote><p>twice</p></blockquote></blockquote>
  <ul><li><p>One</p><ol start="3"><li><p>Three</p></li></ol></li></ul>
  <ul data-type="taskList"><li data-type="taskItem" data-checked="true"><p>Done</p></li></ul>
  <pre><code class="language-rust">fn main() {\n    println!();\n}</code></pre><hr>
  <img src="/a/x/y.png" alt="An image" title="Its title" width="10" height="20">
  <table><tr><th colspan="2" colwidth="100,200"><p>Head</p></th></tr><tr><td rowspan="1"><p>A</p></td><td><p>B</p></td></tr></table>`;
const group = (await galley.createContentGroup({ name: "TipTap" })).id;
const fields = { title: "All nodes", slug: "all-nodes", tags: [], members: [], contentGroupId: group };
const pieces = [];
for (const content of [html, "", "<p></p>", "<p>\u{1f355} e\u0301 \u00a0</p>"]) {
  pieces.push((await galley.createContentPiece({ ...fields, content })).id);
}
const seen = new Set();
for (const id of pieces) {
  const piece = await galley.getContentPiece({ id, content: true });
  const node = schema.nodeFromJSON(piece.content);
  node.check();
  node.descendants(({ type, marks }) => void [type, ...marks.map((mark) => mark.type)].forEach(({ name }) => seen.add(name)));
  const before = etagOf(piece);
  await galley.updateContentPiece({ id, content: node.toJSON() }, { ifMatch: piece });
  const after = await galley.getContentPiece({ id, content: true });
  same(after.content, piece.content, "a saved tree");
  same(etagOf(after), before, "the version of a piece whose tree is saved unchanged");
}
const known = [...Object.keys(schema.nodes), ...Object.keys(schema.marks)].filter((name) => name !== "doc");
same(known.filter((name) => !seen.has(name)), [], "nodes and marks that no tree has");
console.log("done");
process.exit(0);
