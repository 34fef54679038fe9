// Generated documents, as the crate and as the reference read them.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
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

/** The letters and the nodes, wherever they stand. */
const inventory = (tree) => {
  const parts = [];
  const walk = (node) => {
    if (node.text) parts.push(node.text);
    else if (node.type !== "paragraph") parts.push(node.type);
    for (const child of node.content ?? []) walk(child);
  };
  walk(tree);
  return [...parts.join("").replace(/\s/g, "")].sort().join("");
};

let fostered = 0;
const differing = [];
documents.forEach((html, at) => {
  const expected = treeOf(html);
  const got = JSON.parse(found[at]);
  // A start that is no number is none to JSON, and 1 to the crate.
  const written = JSON.stringify(expected).replaceAll('"start":null', '"start":1');
  if (JSON.stringify(got) === written) return;
  // Text between the rows of a table: the reference's DOM has it behind the table.
  if (got && /<table/.test(html) && inventory(got) === inventory(expected)) fostered += 1;
  else differing.push({ number: first + at, html, expected: JSON.stringify(expected), got: found[at] });
});
differing.sort((a, b) => a.html.length - b.html.length);
for (const { number, html, expected, got } of differing.slice(0, SHOWN)) {
  console.log(`#${number} ${JSON.stringify(html)}\n  expected ${expected}\n  got      ${got}`);
}
console.log(`${count} documents, ${fostered} with text from between a table's rows, ${differing.length} differ`);
process.exit(differing.length === 0 ? 0 : 1);
