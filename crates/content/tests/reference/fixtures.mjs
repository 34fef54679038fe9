// Asks the reference again for each document of the fixtures.
import { readFileSync, writeFileSync } from "node:fs";
import { htmlOf, treeOf } from "./tiptap.mjs";

for (const name of ["cases", "nasty"]) {
  const file = new URL(`../fixtures/${name}.json`, import.meta.url);
  const cases = JSON.parse(readFileSync(file, "utf8"));
  const lines = cases.map(({ name, html }) => {
    const tree = treeOf(html);
    return JSON.stringify({ name, html, tree, rendered: htmlOf(tree) });
  });
  writeFileSync(file, `[\n${lines.join(",\n")}\n]\n`);
  console.log(`${name}: ${lines.length} documents`);
}
