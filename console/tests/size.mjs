// The compressed size of the scripts that a page loads: of a list, and with the editor.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { open, run, signIn } from "./harness.mjs";

const LIST_LIMIT = 150_000;
const EDITOR_LIMIT = 350_000;

await run(async (browser) => {
  const page = await open(browser);
  const scripts = new Map();
  page.on("response", (response) => {
    if (/\/console\/assets\/.*\.js$/.test(response.url())) scripts.set(response.url(), response.body());
  });
  const size = async () => {
    const bodies = await Promise.all(scripts.values());
    return bodies.reduce((sum, body) => sum + gzipSync(body, { level: 9 }).length, 0);
  };
  await signIn(page);
  await page.getByText("There are no pieces here yet.").waitFor();
  const list = await size();
  await page.getByRole("button", { name: "Write your first post" }).click();
  await page.locator(".ProseMirror").waitFor();
  const editor = await size();
  console.log(`compressed scripts: ${list} bytes for a list, ${editor} bytes with the editor`);
  assert.ok(list > 10_000 && list <= LIST_LIMIT, `${list} bytes before the editor`);
  assert.ok(editor > list && editor <= EDITOR_LIMIT, `${editor} bytes with the editor`);
});
