// Typed text survives rejections, lost connections, lost responses, and other people.
import assert from "node:assert/strict";
import { api, clickEnd, open, run, saved, signIn, text, until } from "./harness.mjs";

const paragraphs = "<p>First.</p><p>Second.</p><p>Third.</p>";

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  const [group] = await api("GET", "/content-groups/list");
  let made = 0;
  /** Creates a piece, and opens it from the list. */
  const piece = async () => {
    const title = `Piece ${(made += 1)}`;
    const body = { title, slug: `piece-${made}`, tags: [], members: [], contentGroupId: group.id, content: paragraphs };
    const { id } = await api("POST", "/content-pieces", body);
    await page.reload();
    await page.getByRole("link", { name: title }).click();
    await page.locator(".ProseMirror").getByText("First.").waitFor();
    const stored = async () => (await api("GET", `/content-pieces?id=${id}&content=true&contentFormat=html`)).content;
    return { id, title, stored };
  };
  const toList = async () => {
    await page.getByRole("link", { name: "All pieces" }).click();
    await page.waitForURL(/\/console\/ws_[^/]+$/);
  };
  const notice = page.getByText(/This device has unsaved changes/);

  // A slow connection: the page says that it loads.
  const { title: slow } = await piece();
  let release;
  const held = new Promise((next) => (release = next));
  await page.route("**/content-pieces?id=*", async (route) => {
    await held;
    await route.continue();
  });
  await page.reload();
  await page.getByText("Loading…").waitFor();
  release();
  await page.getByLabel("Title", { exact: true }).waitFor();
  assert.equal(await page.getByLabel("Title", { exact: true }).inputValue(), slow);
  assert.equal(await page.getByText("Loading…").count(), 0);
  await page.unroute("**/content-pieces?id=*");
  await toList();

  // A rejected value holds back nothing else, and is sent once it is corrected.
  const rejected = await piece();
  await page.getByLabel("Title", { exact: true }).fill("");
  await page.getByText("Not saved", { exact: true }).waitFor();
  await clickEnd(page, "First.");
  await page.keyboard.type(" Kept.");
  await until(async () => (await rejected.stored()).includes("First. Kept."), true);
  await page.getByLabel("Title", { exact: true }).fill("A title again");
  await saved(page);
  assert.equal((await api("GET", `/content-pieces?id=${rejected.id}`)).title, "A title again");
  await toList();

  // Edits without a connection are offered after the piece was left, also after further typing.
  const left = await piece();
  await page.context().setOffline(true);
  await clickEnd(page, "First.");
  await page.keyboard.type(" Offline.");
  await page.getByText("Offline: kept on this device").waitFor();
  // The page sends the edits once more as it is left, and opens the piece only after that.
  const refuseSave = (route) => (route.request().method() === "PUT" ? route.abort() : route.continue());
  await page.route("**/content-pieces", refuseSave);
  await toList();
  await page.context().setOffline(false);
  await page.getByRole("link", { name: left.title }).first().click();
  await notice.waitFor();
  await page.unroute("**/content-pieces", refuseSave);
  await clickEnd(page, "Third.");
  await page.keyboard.type(" Typed.");
  await saved(page);
  await page.reload();
  await notice.waitFor();
  await clickEnd(page, "Second.");
  await page.keyboard.type(" Unsaved.");
  await page.getByRole("button", { name: "Restore" }).click();
  await page.locator(".ProseMirror").getByText("First. Offline.").waitFor();
  await saved(page);
  const all = await left.stored();
  for (const part of ["First. Offline.", "Second. Unsaved.", "Third. Typed."]) assert.ok(all.includes(part), `${part}: ${all}`);
  await notice.waitFor({ state: "hidden" });
  await toList();

  // A description is saved while it is typed.
  const described = await piece();
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByLabel("Description").pressSequentially("Typed without leaving the field");
  await saved(page);
  assert.equal((await api("GET", `/content-pieces?id=${described.id}`)).description, "Typed without leaving the field");
  await page.getByRole("button", { name: "Details" }).click();
  await toList();

  // The response of a save is lost: the server has it, and it is no other person's change.
  const lost = await piece();
  let isLost = false;
  await page.route("**/content-pieces", async (route) => {
    if (isLost || route.request().method() !== "PUT") return await route.continue();
    isLost = true;
    await route.fetch();
    await route.abort();
  });
  await clickEnd(page, "First.");
  await page.keyboard.type(" One");
  await page.getByText("Offline: kept on this device").waitFor();
  await page.keyboard.type(" two.");
  await saved(page);
  assert.ok(isLost);
  assert.equal(await lost.stored(), "<p>First. One two.</p><p>Second.</p><p>Third.</p>");
  assert.equal(await page.getByRole("dialog").count(), 0);
  await page.unroute("**/content-pieces");
  await toList();

  // An undo after a merge takes back the own change only.
  const merged = await piece();
  await clickEnd(page, "First.");
  await page.keyboard.type(" Mine.");
  await saved(page);
  await api("PUT", "/content-pieces", { id: merged.id, content: "<p>First. Mine.</p><p>Second.</p><p>Third. Theirs.</p>" });
  await clickEnd(page, "Second.");
  await page.keyboard.type(" More.");
  await page.getByText(/were merged with yours/).waitFor();
  await saved(page);
  await page.locator(".ProseMirror").focus();
  for (let presses = 0; presses < 8; presses += 1) await page.keyboard.press("Control+z");
  await saved(page);
  assert.ok((await text(page)).includes("Third. Theirs."), await text(page));
  assert.ok((await merged.stored()).includes("Third. Theirs."));
  await toList();

  // Two people change other custom fields and other tags of one piece: all changes stay.
  const { id: tag } = await api("POST", "/tags", { label: "Harbour" });
  const fields = await piece();
  await api("PUT", "/content-pieces", { id: fields.id, customData: '{"a":1,"b":1,"c":1,"__proto__":"kept"}' });
  await page.getByRole("button", { name: "Details" }).click();
  const json = page.getByLabel("Custom data (JSON)");
  await until(async () => (await json.inputValue()).includes("kept"), true);
  await page.context().setOffline(true);
  await json.fill('{"a":2,"b":1,"__proto__":"kept"}');
  await json.blur();
  await page.getByText("Offline: kept on this device").waitFor();
  await api("PUT", "/content-pieces", { id: fields.id, customData: '{"a":1,"b":2,"c":1,"__proto__":"kept"}', tags: [tag] });
  await page.context().setOffline(false);
  await page.getByText(/were merged with yours/).waitFor();
  await saved(page);
  const merge = await api("GET", `/content-pieces?id=${fields.id}`);
  assert.equal(merge.customData, '{"a":2,"b":2,"__proto__":"kept"}');
  assert.deepEqual(merge.tags.map((one) => one.id), [tag]);
  await page.getByRole("button", { name: "Details" }).click();
  await toList();

  // The last words before a person leaves, while another one has saved.
  const leaving = await piece();
  await api("PUT", "/content-pieces", { id: leaving.id, content: "<p>First.</p><p>Second.</p><p>Third. Theirs.</p>" });
  await clickEnd(page, "First.");
  await page.keyboard.type(" Bye.");
  await page.keyboard.press("Escape");
  await page.waitForURL(/\/console\/ws_[^/]+$/);
  const both = (html) => html.includes("First. Bye.") && html.includes("Third. Theirs.");
  await until(async () => both(await leaving.stored()), true);
});
