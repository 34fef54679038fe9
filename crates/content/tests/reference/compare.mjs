// Generated documents, as the crate and as the reference read them.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parse, serialize } from "parse5";
import { documentOf } from "./grammar.mjs";
import { treeOf } from "./tiptap.mjs";

const SHOWN = 10;
const [first = 1, count = 10000] = process.argv.slice(2).map(Number);
const documents = Array.from({ length: count }, (_, at) => documentOf(first + at));

const cargo = ["run", "--quiet", "--release", "-p", "galley-content", "--example", "convert", "--", "lines"];
const converted = spawnSync("cargo", cargo, {
  cwd: fileURLToPath(new URL("../..", import.meta.url)),
  input: documents.map((html) => `${JSON.stringify(html)}\n`).join(""),
  maxBuffer: 2 ** 31,
  stdio: ["pipe", "pipe", "inherit"],
});
if (converted.status !== 0) throw new Error("the example convert failed");
const found = converted.stdout.toString().split("\n");

/** As HTML that has text from between the rows of a table where the standard puts it, before the table. */
const fosteredHtml = (html) => {
  const page = parse(`<!DOCTYPE html><html><body>${html}</body></html>`);
  const body = page.childNodes.at(-1).childNodes.find(({ nodeName }) => nodeName === "body");
  return serialize(body);
};

let fostered = 0;
const differing = [];
documents.forEach((html, at) => {
  // A start that is no number is none to JSON, and 1 to the crate, as is a span that is no number.
  const written = (tree) =>
    JSON.stringify(tree).replaceAll('"start":null', '"start":1').replaceAll('"color":""', '"color":null').replace(/"(col|row)span":"[^"]*"/g, '"$1span":1');
  const got = written(JSON.parse(found[at]));
  const expected = written(treeOf(html));
  if (got === expected) return;
  // The reference's DOM has such text behind the table, unless it is there from the beginning.
  if (/<table/.test(html) && got === written(treeOf(fosteredHtml(html)))) fostered += 1;
  else differing.push({ number: first + at, html, expected, got });
});
differing.sort((a, b) => a.html.length - b.html.length);
for (const { number, html, expected, got } of differing.slice(0, SHOWN)) {
  console.log(`#${number} ${JSON.stringify(html)}\n  expected ${expected}\n  got      ${got}`);
}
console.log(`${count} documents, ${fostered} with text from between a table's rows, ${differing.length} differ`);
process.exit(differing.length === 0 ? 0 : 1);
