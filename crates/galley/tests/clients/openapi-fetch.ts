// A program on openapi-typescript's types and openapi-fetch: pieces, trees, events and problems.
// It runs against the server of GALLEY_URL with the token of GALLEY_TOKEN.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.js";

type BlockNode = components["schemas"]["BlockNode"];
type InlineNode = components["schemas"]["InlineNode"];
type Problem = components["schemas"]["Problem"];
type Piece = components["schemas"]["ContentPiece"];

const environment = (globalThis as unknown as { process: { env: Record<string, string | undefined> } }).process.env;
const client = createClient<paths>({
  baseUrl: environment["GALLEY_URL"] ?? "http://127.0.0.1:8080",
  headers: { Authorization: `Bearer ${environment["GALLEY_TOKEN"] ?? ""}` },
});

function fail(problem: Problem): never {
  // Reasons are a closed set of words: a typing error here does not compile.
  const hint = problem.reason === "validation" ? JSON.stringify(problem.issues) : problem.detail;
  throw new Error(`${problem.status} ${problem.reason}: ${hint}`);
}

function textOf(nodes: InlineNode[] | undefined): string {
  return (nodes ?? []).map((node) => (node.type === "text" ? node.text : "\n")).join("");
}

function outline(blocks: BlockNode[]): string[] {
  return blocks.flatMap((block) => {
    switch (block.type) {
      case "heading":
        return [`${block.attrs.level} ${textOf(block.content)}`];
      case "image":
        return [`image ${block.attrs.src ?? ""}`];
      case "codeBlock":
        return [`code ${block.attrs.language ?? "plain"}`];
      case "orderedList":
        return [`list from ${block.attrs.start}`];
      case "table":
        return (block.content ?? []).map((row) => `row of ${(row.content ?? []).length}`);
      case "paragraph":
        return (block.content ?? []).flatMap((node) =>
          node.type === "text"
            ? (node.marks ?? []).flatMap((mark) => {
                if (mark.type === "link") return [`link ${mark.attrs.href}`];
                if (mark.type === "highlight") return [`highlight ${mark.attrs.color ?? "plain"}`];
                return [];
              })
            : [],
        );
      default:
        return [];
    }
  });
}

const groups = await client.GET("/content-groups/list");
if (groups.error) fail(groups.error);
const group = groups.data[0];
if (group === undefined) throw new Error("there is no content group");

const created = await client.POST("/content-pieces", {
  body: {
    title: "Typed",
    slug: "typed",
    tags: [],
    members: [],
    contentGroupId: group.id,
    customData: { pinned: true, weights: [1, 2] },
    content:
      '<h2>Two</h2><p>A <a href="/x">link</a> and <mark>mark</mark></p><pre><code class="language-rust">x</code></pre>' +
      "<ol start=3><li>c</ol><table><tr><td>1<td>2</table><img src=/a.png>",
  },
});
if (created.error) fail(created.error);

const read = await client.GET("/content-pieces", { params: { query: { id: created.data.id, content: true } } });
if (read.error) fail(read.error);
const piece: Piece = read.data;
const content = piece.content;
if (content === undefined || typeof content === "string") throw new Error("the content is no tree");
const found = outline(content.content ?? []);

const events = await client.GET("/events", { params: { query: { perPage: 100 } } });
if (events.error) fail(events.error);
const added = events.data.filter((event) => event.type === "contentPieceAdded");
const titles = added.map((event) => ("title" in event.data ? event.data.title : "?"));

const refused = await client.POST("/content-pieces", {
  body: { title: "", slug: "typed", tags: [], members: [], contentGroupId: group.id },
});
const reason: Problem["reason"] | undefined = refused.error?.reason;

console.log(JSON.stringify({ found, titles, reason, customData: piece.customData }));
