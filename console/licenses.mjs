// Checks that every installed package has a permissive licence, as deny.toml does for crates.
import { existsSync, readFileSync } from "node:fs";

const ALLOWED = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Python-2.0", "Unlicense", "Zlib"];

/** The licences that packages name in their readme alone. */
const IN_README = { "node_modules/combine-errors": "MIT" };

const read = (path) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), "utf8"));
const { packages } = read("package-lock.json");
const rejected = [];
let checked = 0;
for (const [path, { optional, link }] of Object.entries(packages)) {
  if (path === "" || link || !path.includes("node_modules/")) continue;
  // Optional packages of other systems are not installed.
  if (!existsSync(new URL(`../${path}/package.json`, import.meta.url))) {
    if (!optional) rejected.push(`${path}: not installed`);
    continue;
  }
  const license = read(`${path}/package.json`).license ?? IN_README[path];
  const names = String(license ?? "none").replace(/[()]/g, "").split(/ (?:OR|AND) /);
  const isAllowed = / OR /.test(String(license)) ? names.some((name) => ALLOWED.includes(name)) : names.every((name) => ALLOWED.includes(name));
  if (!isAllowed) rejected.push(`${path}: ${license}`);
  checked += 1;
}
if (rejected.length > 0) {
  console.error(`licences:\n${rejected.join("\n")}`);
  process.exit(1);
}
console.log(`licences of ${checked} packages: ok`);
