/** Runs the story in a page of Chromium, which is of another origin than the server. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const { GALLEY_CLIENT, GALLEY_URL, GALLEY_TOKEN, GALLEY_TEST_CHROMIUM, PAGE_PORT } = process.env;
const folders = { "/client/": dirname(GALLEY_CLIENT), "/": import.meta.dirname };
const page = `<!doctype html><script type="module">
  let result = "done";
  try {
    const { story } = await import("/story.mjs");
    await story(await import("/client/index.js"), ${JSON.stringify(GALLEY_URL)}, ${JSON.stringify(GALLEY_TOKEN)});
  } catch (error) { result = String(error.stack ?? error); }
  await fetch("/result", { method: "POST", body: result });
</script>`;

let resolve;
const result = new Promise((settle) => (resolve = settle));
const server = createServer(async (request, response) => {
  if (request.url === "/result") {
    let text = "";
    for await (const chunk of request) text += chunk;
    response.end();
    return resolve(text);
  }
  if (request.url === "/") return response.setHeader("content-type", "text/html").end(page);
  const prefix = Object.keys(folders).find((prefix) => request.url.startsWith(prefix));
  const file = await readFile(join(folders[prefix], request.url.slice(prefix.length))).catch(() => null);
  response.writeHead(file ? 200 : 404, { "content-type": "text/javascript" }).end(file);
});
await new Promise((listening) => server.listen(Number(PAGE_PORT), "127.0.0.1", listening));
const profile = await mkdtemp(join(tmpdir(), "galley-client-"));
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${profile}`];
const browser = spawn(GALLEY_TEST_CHROMIUM, [...flags, `http://127.0.0.1:${PAGE_PORT}/`], { stdio: "ignore" });
console.log(await result);
const ended = new Promise((exit) => browser.on("exit", exit));
browser.kill();
await ended;
await rm(profile, { recursive: true, force: true, maxRetries: 10 });
process.exit(0);
