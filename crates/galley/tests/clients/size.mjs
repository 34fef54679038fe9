/** Prints the size of a package's modules after gzip, in bytes. */
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";

const folder = dirname(process.env.GALLEY_CLIENT);
const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".js"));
const modules = await Promise.all(names.map((name) => readFile(join(folder, name))));
console.log(gzipSync(Buffer.concat(modules), { level: 9 }).length);
