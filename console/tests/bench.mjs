// Measures the console in a real Chromium beside plain pages: `cargo xtask bench -- console`.
// Prints one JSON object for each row of the table.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { api, open, run, signIn, url } from "./harness.mjs";

const ROUNDS = 7;
const ROWS = 50;
const KEYS = 80;
const OPENINGS = 1_000;
/** Long enough that all rows are in view. */
const TALL = { width: 1280, height: 60 + ROWS * 44 + 60 };

const median = (figures) => figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)];
const row = (what, found, limit) => console.log(JSON.stringify({ what, found, limit }));
const ms = (time) => `${time.toFixed(1)} ms`;

const words = "harbour of a small town at dawn and editors write about it when boats come in with herring letters".split(" ");
const paragraph = (at) => `<p>${Array.from({ length: 100 }, (_, word) => words[(at * 7 + word * 3) % words.length]).join(" ")}</p>`;
const LONG_TEXT = Array.from({ length: 100 }, (_, at) => paragraph(at)).join("");

/** Measures keys in an editable element: the times from a key to the end of its frame, and the work of
 * the main thread for each. */
async function typing(page, selector) {
  const target = page.locator(selector);
  await target.locator("p").nth(50).click();
  await page.keyboard.press("End");
  await page.evaluate(() => {
    if (globalThis.latencies !== undefined) return;
    globalThis.latencies = [];
    document.addEventListener("keydown", (event) => {
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => globalThis.latencies.push(performance.now() - event.timeStamp);
        port2.postMessage(null);
      });
    }, true);
  });
  await page.waitForTimeout(200);
  await page.evaluate(() => (globalThis.latencies.length = 0));
  const inspector = await page.context().newCDPSession(page);
  await inspector.send("Performance.enable");
  const work = async () => (await inspector.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value * 1_000;
  const before = await work();
  for (let key = 0; key < KEYS; key += 1) {
    await page.keyboard.press("abcdefghij "[key % 11]);
    await page.waitForTimeout(40);
  }
  const used = (await work()) - before;
  const latencies = await page.evaluate(() => globalThis.latencies);
  assert.equal(latencies.length, KEYS);
  await inspector.detach();
  return { latency: median(latencies), worst: latencies.toSorted((a, b) => a - b)[Math.floor(KEYS * 0.95)], work: used / KEYS };
}

/** Returns the time from the start of a navigation until the rows are painted. */
async function rowsShown(page, address, selector) {
  await page.goto(address, { waitUntil: "commit" });
  return await page.evaluate(
    ([rows, count]) =>
      new Promise((done) => {
        const check = () => {
          if (document.querySelectorAll(rows).length < count) return requestAnimationFrame(check);
          requestAnimationFrame(() => setTimeout(() => done(performance.now())));
        };
        check();
      }),
    [selector, ROWS],
  );
}

await run(async (browser) => {
  const page = await open(browser, { viewport: TALL });
  await signIn(page);
  const workspace = new URL(page.url()).pathname.split("/")[2];
  const list = `${url}/console/${workspace}`;

  // The same rows as a static page, with the same style sheet, by a server without any work.
  await rowsShown(page, list, "a.row");
  await page.waitForLoadState("networkidle");
  const styles = await page.evaluate(() => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join("\n"));
  const body = (await page.locator("#app").innerHTML()).replaceAll("<script", "<template");
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Rows</title><style>${styles}</style><div id="app">${body}</div></html>`;
  const plain = createServer((_, response) => response.setHeader("content-type", "text/html; charset=utf-8").end(html));
  await new Promise((listening) => plain.listen(0, "127.0.0.1", listening));
  const origin = `http://127.0.0.1:${plain.address().port}/`;
  const other = await open(browser, { viewport: TALL });
  const times = { console: [], plain: [], switch: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.console.push(await rowsShown(page, list, "a.row"));
    times.plain.push(await rowsShown(other, origin, "a.row"));
  }
  const shown = median(times.console) / median(times.plain);
  row(`${ROWS} of many pieces: a whole load of the console (${ms(median(times.console))}) beside a static page with the same rows (${ms(median(times.plain))})`, shown.toFixed(2), "2");

  // The editor beside a plain editable element with the same text.
  await page.setViewportSize({ width: 1280, height: 800 });
  await other.setViewportSize({ width: 1280, height: 800 });
  const [group] = await api("GET", "/content-groups/list");
  const piece = { title: "Long", slug: `long-${Date.now()}`, tags: [], members: [], contentGroupId: group.id, content: LONG_TEXT };
  const { id } = await api("POST", "/content-pieces", piece);
  await other.goto(origin);
  await other.setContent(`<!doctype html><meta charset="utf-8"><style>div { width: 640px; font: 18px/30px serif }</style><div contenteditable>${LONG_TEXT}</div>`);
  await page.goto(`${url}/console/${workspace}/pieces/${id}`);
  await page.locator(".ProseMirror p").nth(99).waitFor();
  const own = [];
  const bare = [];
  for (let round = 0; round < 3; round += 1) {
    own.push(await typing(page, ".ProseMirror"));
    bare.push(await typing(other, "[contenteditable]"));
  }
  const of = (rounds, name) => median(rounds.map((one) => one[name]));
  for (const [name, text] of [["latency", "from a key to its frame, median"], ["worst", "from a key to its frame, 95 %"], ["work", "main thread for each key"]]) {
    row(`10,000 words, ${text}: ${ms(of(own, name))} beside ${ms(of(bare, name))} in a plain editable element`, (of(own, name) / of(bare, name)).toFixed(2), name === "work" ? "" : "3");
  }
  await api("DELETE", `/content-pieces?id=${id}&permanent=true`);

  // The heap after many openings of pieces.
  const inspector = await page.context().newCDPSession(page);
  const heap = async () => {
    for (let turn = 0; turn < 3; turn += 1) await inspector.send("HeapProfiler.collectGarbage");
    return (await inspector.send("Runtime.getHeapUsage")).usedSize / 1e6;
  };
  await page.goto(list);
  await page.locator("a.row").nth(10).waitFor();
  const sizes = {};
  for (let opening = 1; opening <= OPENINGS; opening += 1) {
    await page.locator("a.row").nth(opening % 10).click();
    await page.locator(".ProseMirror").waitFor();
    if (opening === 200 || opening === OPENINGS) sizes[opening] = await heap();
  }
  row(`heap after 200 openings of pieces ${sizes[200].toFixed(1)} MB, after ${OPENINGS} ${sizes[OPENINGS].toFixed(1)} MB: growth in MB`, (sizes[OPENINGS] - sizes[200]).toFixed(1), "5");
  plain.close();
});
