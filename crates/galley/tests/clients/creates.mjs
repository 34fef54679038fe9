/**
 * Creates pieces while the server is killed again and again. Prints a line with the slug and the id
 * of each.
 */
import { pathToFileURL } from "node:url";

const { GALLEY_CLIENT, GALLEY_URL, GALLEY_TOKEN, GALLEY_GROUP, COUNT } = process.env;
const { createClient } = await import(pathToFileURL(GALLEY_CLIENT).href);
const galley = createClient({ url: GALLEY_URL, token: GALLEY_TOKEN, retries: 10_000, longestBackoff: 500 });
let next = 0;

async function work() {
  while (next < Number(COUNT)) {
    const slug = `created-${next++}`;
    const piece = { title: slug, slug, tags: [], members: [], contentGroupId: GALLEY_GROUP };
    console.log(slug, (await galley.createContentPiece(piece)).id);
  }
}

await Promise.all(Array.from({ length: 8 }, work));
