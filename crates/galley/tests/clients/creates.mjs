/** Creates pieces while the server is killed again and again, and prints their ids by slug. */
import { pathToFileURL } from "node:url";

const { GALLEY_CLIENT, GALLEY_URL, GALLEY_TOKEN, GALLEY_GROUP, COUNT } = process.env;
const { createClient } = await import(pathToFileURL(GALLEY_CLIENT).href);
const galley = createClient({ url: GALLEY_URL, token: GALLEY_TOKEN, retries: 100, longestBackoff: 500 });
const created = {};
let next = 0;

async function work() {
  while (next < Number(COUNT)) {
    const slug = `created-${next++}`;
    const piece = { title: slug, slug, tags: [], members: [], contentGroupId: GALLEY_GROUP };
    created[slug] = (await galley.createContentPiece(piece)).id;
  }
}

await Promise.all(Array.from({ length: 8 }, work));
// The pipe takes long texts in parts.
process.stdout.write(JSON.stringify(created), () => process.exit(0));
