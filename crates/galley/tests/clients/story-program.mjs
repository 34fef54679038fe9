/** Runs the story in Node, Deno or Bun. */
import process from "node:process";
import { pathToFileURL } from "node:url";
import { story } from "./story.mjs";

const { GALLEY_CLIENT, GALLEY_URL, GALLEY_TOKEN } = process.env;
await story(await import(pathToFileURL(GALLEY_CLIENT).href), GALLEY_URL, GALLEY_TOKEN);
console.log("done");
process.exit(0);
