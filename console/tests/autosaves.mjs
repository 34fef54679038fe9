// Text while the server is killed, while the network is cut, while the page crashes, and in two tabs.
// Words that the page has shown as saved are on the server, and all others are offered again.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { api, open, run, signIn, watched } from "./harness.mjs";

const rounds = Number(process.env.GALLEY_ROUNDS);
const END = "Control+End";

// The program around this script kills the server, and starts it again.
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function restart(mode) {
  console.log(`restart ${mode}`);
  assert.equal((await lines.next()).value, "started");
}

const delay = (ms) => new Promise((done) => setTimeout(done, ms));
const random = (limit) => Math.floor(Math.random() * limit);

/** Remembers the words of the editor each time the page says that they are saved. */
async function recordSaves(page) {
  await page.evaluate(() => {
    const words = () => document.querySelector(".ProseMirror").innerText.match(/\w+/g) ?? [];
    const record = () => {
      if (document.querySelector('.save[data-state="saved"]')) globalThis.savedWords = words();
    };
    globalThis.observer?.disconnect();
    globalThis.observer = new MutationObserver(record);
    globalThis.observer.observe(document.querySelector(".save"), { attributes: true });
    record();
  });
}

const savedWords = (page) => page.evaluate(() => globalThis.savedWords);
const isSaved = (page) => page.locator('.save[data-state="saved"]').waitFor({ timeout: 60_000 });

await run(async (browser) => {
  let page = await open(browser);
  await signIn(page);
  const workspace = new URL(page.url()).pathname.split("/")[2];
  const [group] = await api("GET", "/content-groups/list");
  const create = async (slug, content) => (await api("POST", "/content-pieces", { title: slug, slug, tags: [], members: [], contentGroupId: group.id, content })).id;
  const address = (id) => `/console/${workspace}/pieces/${id}`;
  const stored = async (id) => (await api("GET", `/content-pieces?id=${id}&content=true&contentFormat=html`)).content.match(/\w+/g);
  const show = async (tab, id) => {
    await tab.goto(new URL(address(id), page.url()).href);
    await tab.locator(".ProseMirror").waitFor();
    await recordSaves(tab);
  };
  const missing = (words, all) => words.filter((word) => !all.includes(word));
  let number = 0;
  const typed = [];
  /** Types some words, with pauses that are shorter and longer than the delay of a save. */
  const write = async () => {
    for (let count = 1 + random(3); count > 0; count -= 1) {
      const word = `w${(number += 1)}`;
      await page.keyboard.type(` ${word}`);
      typed.push(word);
      await delay(random(3) === 0 ? 1_200 : random(300));
    }
  };
  const figures = { kills: 0, cuts: 0, crashes: 0, tabs: 0 };

  // The server is killed during autosaves.
  const killed = await create("killed", "<p>Start</p>");
  await show(page, killed);
  await page.locator(".ProseMirror").click();
  await page.keyboard.press(END);
  while (figures.kills < rounds) {
    await write();
    await delay(random(1_200));
    await restart("kill");
    figures.kills += 1;
    // Read before any further save can reach the server.
    const shown = await savedWords(page);
    assert.deepEqual(missing(shown, await stored(killed)), [], "lost by a kill");
    await write();
    if (figures.kills % 10 === 0 || figures.kills === rounds) {
      await isSaved(page);
      assert.deepEqual(missing(typed, await stored(killed)), [], "not sent after a kill");
    }
  }

  // The network is cut, before, during and after requests.
  while (figures.cuts < rounds) {
    await write();
    await delay(random(1_100));
    await page.context().setOffline(true);
    figures.cuts += 1;
    const shown = await savedWords(page);
    await write();
    assert.deepEqual(missing(shown, await stored(killed)), [], "lost by a cut");
    await page.context().setOffline(false);
    if (figures.cuts % 10 === 0 || figures.cuts === rounds) {
      await isSaved(page);
      assert.deepEqual(missing(typed, await stored(killed)), [], "not sent after a cut");
    }
  }

  // The page crashes with unsaved words, which the next page offers.
  const crashed = await create("crashed", "<p>Start</p>");
  await show(page, crashed);
  typed.length = 0;
  const crashes = Math.max(1, Math.floor(rounds / 5));
  while (figures.crashes < crashes) {
    await page.locator(".ProseMirror").click();
    await page.keyboard.press(END);
    await write();
    await isSaved(page);
    await page.context().setOffline(true);
    const word = `w${(number += 1)}`;
    await page.keyboard.type(` ${word}`);
    typed.push(word);
    // The copy on this device follows the last key within 300 ms.
    await delay(600);
    const debuggerSession = await page.context().newCDPSession(page);
    const closed = new Promise((done) => page.once("crash", done));
    void debuggerSession.send("Page.crash").catch(() => {});
    await closed;
    figures.crashes += 1;
    const next = watched(await page.context().newPage());
    await page.close();
    page = next;
    await page.context().setOffline(false);
    await page.goto(new URL(address(crashed), process.env.GALLEY_URL).href);
    await page.getByText(/This device has unsaved changes/).waitFor();
    await page.getByRole("button", { name: "Restore" }).click();
    await page.locator(".ProseMirror").getByText(word).waitFor();
    await isSaved(page);
    await recordSaves(page);
    assert.deepEqual(missing(typed, await stored(crashed)), [], "not offered after a crash");
  }

  // Two tabs on one piece, in different paragraphs and in the same one.
  const shared = await create("shared", "<p>Alpha</p><p>Beta</p>");
  const other = watched(await page.context().newPage());
  const tabs = [page, other];
  for (const tab of tabs) await show(tab, shared);
  typed.length = 0;
  while (figures.tabs < rounds) {
    const isSame = figures.tabs % 3 === 0;
    for (const [at, tab] of tabs.entries()) {
      await tab.bringToFront();
      await tab.locator(".ProseMirror > p").nth(isSame ? 0 : at).click();
      await tab.keyboard.press("End");
      const word = `w${(number += 1)}`;
      // Spaces on both sides, as the end of a line may be the middle of a paragraph.
      await tab.keyboard.type(` ${word} `);
      typed.push(word);
    }
    figures.tabs += 1;
    for (const tab of tabs) {
      await tab.bringToFront();
      const choice = tab.getByRole("dialog");
      const decide = tab.getByRole("button", { name: "Compare and decide" });
      const end = Date.now() + 60_000;
      while (!(await tab.locator('.save[data-state="saved"]').count())) {
        assert.ok(Date.now() < end, `the tab shows ${await tab.locator(".save").innerText()}`);
        if (await choice.count()) {
          for (const both of await choice.getByRole("radio", { name: "Both" }).all()) await both.check();
          await choice.getByRole("button", { name: "Save" }).click();
        } else if (await decide.count()) {
          await decide.click();
        }
        await delay(50);
      }
    }
    const kept = await stored(shared);
    assert.deepEqual(missing(typed, kept), [], "lost between two tabs");
  }
  console.log(`figures ${JSON.stringify({ ...figures, words: number })}`);
});
