// Large files: their uploads continue after lost connections, and after the page was closed.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { api, open, run, signIn, until, url } from "./harness.mjs";
import { startProxy } from "./proxy.mjs";

const SIZE = 24_000_000;
/** The speed of the slow connection in bytes per second. */
const SPEED = 6_000_000;

let isSlow = false;
const proxy = await startProxy(url, ({ client, send }) => (bytes) => {
  send(bytes);
  if (!isSlow) return;
  client.pause();
  setTimeout(() => client.resume(), (bytes.length / SPEED) * 1_000);
});

const folder = mkdtempSync(join(tmpdir(), "galley-large-"));

/** Writes a file of random bytes. Returns its path, and its SHA-256. */
function file(name) {
  const bytes = randomBytes(SIZE);
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return { path, hash: createHash("sha256").update(bytes).digest("hex") };
}

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  const workspace = /ws_[0-9a-z]+/.exec(page.url())[0];
  const openLibrary = async () => {
    await page.goto(`http://127.0.0.1:${proxy.port}/console/${workspace}/assets`);
    await page.getByRole("heading", { level: 1, name: "Assets" }).waitFor();
  };
  await openLibrary();
  const requests = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === "/assets/uploads") requests.push([request.method(), searchParams.get("id"), request.headers()["upload-offset"]]);
  });
  const methods = () => requests.map(([method]) => method);
  const region = page.getByRole("region", { name: "Uploads" });
  const choose = async ({ path }) => await page.locator('input[type="file"]').first().setInputFiles(path);
  const named = async (name) => (await api("GET", "/assets/list")).filter((asset) => asset.filename === name);
  /** Waits until the server has a part of an upload, which is shown as its progress. */
  const begun = async () => {
    await page.waitForFunction(() => {
      const value = document.querySelector(".upload progress")?.value;
      return value > 20 && value < 90;
    });
  };
  /** Checks that the last request continued the upload of the first one. */
  const continued = async (name, { hash }) => {
    await until(async () => (await named(name)).map((asset) => asset.hash), [hash]);
    const [method, id, offset] = requests.at(-1);
    assert.equal(method, "PATCH");
    assert.ok(Number(offset) > 0 && Number(offset) < SIZE, `it continues at ${offset}`);
    assert.equal(new Set(requests.map(([, id]) => id).filter((id) => id !== null)).size, 1);
    assert.equal((await named(name))[0].id, id);
    assert.equal(methods().filter((method) => method === "POST").length, 1);
    await until(async () => await region.count(), 0);
    requests.length = 0;
  };

  // The connection is lost: the reason is shown, and the repeat sends the rest.
  const cut = file("cut.bin");
  isSlow = true;
  await choose(cut);
  await begun();
  proxy.close();
  await region.getByText("The server can't be reached.").waitFor();
  isSlow = false;
  await proxy.reopen();
  await region.getByRole("button", { name: "Try again: cut.bin" }).click();
  await continued("cut.bin", cut);

  // The page is closed: the same file continues when it is chosen again.
  const closed = file("closed.bin");
  isSlow = true;
  await choose(closed);
  await begun();
  page.once("dialog", (dialog) => void dialog.accept());
  await openLibrary();
  isSlow = false;
  await choose(closed);
  await continued("closed.bin", closed);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("tus::"))), []);

  // A cancellation deletes what the server has.
  const cancelled = file("cancelled.bin");
  isSlow = true;
  await choose(cancelled);
  await begun();
  await region.getByRole("button", { name: "Cancel: cancelled.bin" }).click();
  await until(() => methods().at(-1), "DELETE");
  const id = requests.at(-1)[1];
  const headers = { authorization: `Bearer ${process.env.GALLEY_TOKEN}`, "tus-resumable": "1.0.0" };
  await until(async () => (await fetch(`${url}/assets/uploads?id=${id}`, { headers })).status, 404);
  isSlow = false;
  assert.equal(await region.count(), 0);

  // The server's limits are shown in its words, as for small files.
  await page.route("**/assets/uploads", async (route) => {
    const problem = { reason: "asset_storage_exceeded", detail: "the assets of a workspace may have at most 1000000000 bytes together", status: 413 };
    await route.fulfill({ status: 413, contentType: "application/problem+json", body: JSON.stringify(problem) });
  });
  await choose(file("limit.bin"));
  await region.getByText("is full (1 GB)").waitFor();
  await region.getByRole("button", { name: "Remove: limit.bin" }).click();
  await until(async () => await region.count(), 0);
}).finally(() => {
  proxy.close();
  rmSync(folder, { recursive: true });
});
