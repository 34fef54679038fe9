// The example of an editor: saves, a change by another client, a publication, and an image.
import assert from "node:assert/strict";
import { accessibleAtBothWidths, api, open, run, served, text, token, until, url } from "./harness.mjs";

const page = process.env.PAGE_URL;
const piece = async (id) => await api("GET", `/content-pieces?id=${id}&content=true&contentFormat=markdown`);
const image = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

await run(async (browser) => {
  const [posts] = await api("GET", "/content-groups/list");
  const fields = { title: "Boats", slug: "boats", tags: [], members: [], contentGroupId: posts.id };
  const { id } = await api("POST", "/content-pieces", { ...fields, content: "<p>They leave.</p>" });
  const editor = await open(browser);
  await served(page);

  // A wrong token is rejected with a message; the form works on a phone.
  await editor.goto(page);
  await editor.getByLabel("Server").fill(url);
  await editor.getByLabel("Access token").fill("galley_wrong");
  await editor.getByRole("button", { name: "Sign in" }).click();
  await until(async () => (await editor.getByRole("alert").innerText()).length > 10, true);
  await accessibleAtBothWidths(editor, "sign in");
  await editor.getByLabel("Access token").fill(token);
  await editor.getByRole("button", { name: "Sign in" }).click();

  // Edits are saved after a pause.
  await editor.getByRole("button", { name: "Boats" }).click();
  await until(async () => await text(editor), "They leave.");
  await editor.locator(".ProseMirror").click();
  await editor.keyboard.press("Control+End");
  await editor.keyboard.type(" Early.");
  await editor.getByRole("status").getByText("Saved", { exact: true }).waitFor();
  assert.equal((await piece(id)).content, "They leave. Early.\n");

  // A change by another client is not overwritten without a question.
  const change = async (content) => await api("PUT", "/content-pieces", { id, content });
  await change("<p>Theirs</p>");
  await editor.keyboard.type(" Mine.");
  await editor.getByText("changed elsewhere").waitFor();
  assert.equal((await piece(id)).content, "Theirs\n");
  await accessibleAtBothWidths(editor, "conflict");
  await editor.getByRole("button", { name: "Keep this version" }).click();
  await until(async () => (await piece(id)).content, "They leave. Early. Mine.\n");
  await change("<p>Theirs again</p>");
  await editor.locator(".ProseMirror").click();
  await editor.keyboard.type("x");
  await editor.getByRole("button", { name: "Load the other version" }).click();
  await until(async () => await text(editor), "Theirs again");

  // An image is uploaded, and the piece is published with it and a new title.
  await editor.locator("input[type=file]").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: image });
  await until(async () => /\/a\/.*dot\.png/.test((await piece(id)).content), true);
  await editor.getByLabel("Title").fill("Boats at dawn");
  await editor.getByRole("button", { name: "Publish" }).click();
  await editor.getByRole("status").getByText("Published").waitFor();
  const published = await piece(id);
  assert.deepEqual([published.title, published.publication.state], ["Boats at dawn", "published"]);

  // A second image does not replace the first.
  await editor.locator("input[type=file]").setInputFiles({ name: "two.png", mimeType: "image/png", buffer: image });
  await until(async () => (await piece(id)).content.match(/(dot|two)\.png/g)?.sort(), ["dot.png", "two.png"]);

  // Undo does not reach the piece that was open before.
  const other = (await api("POST", "/content-pieces", { ...fields, title: "Trains", slug: "trains", content: "<p>On time.</p>" })).id;
  await editor.reload();
  await editor.getByRole("button", { name: "Boats at dawn" }).click();
  await until(async () => await editor.getByLabel("Title").inputValue(), "Boats at dawn");
  await editor.getByRole("button", { name: "Trains" }).click();
  await until(async () => await text(editor), "On time.");
  await editor.getByRole("button", { name: "Undo" }).click();
  await editor.waitForTimeout(1500);
  assert.equal((await piece(other)).content, "On time.\n");

  // Slow responses: typing goes on during a save and while another piece is loaded.
  const delay = (method, time) => async (route) => {
    if (route.request().method() === method) await new Promise((next) => setTimeout(next, time));
    await route.continue();
  };
  await editor.route(/content-pieces(\?|$)/, delay("PUT", 2_500));
  await editor.locator(".ProseMirror").click();
  await editor.keyboard.press("Control+End");
  for (const word of [" One", " two", " three"]) {
    await editor.keyboard.type(word);
    await editor.waitForTimeout(1_300);
  }
  await editor.getByRole("status").getByText("Saved", { exact: true }).waitFor();
  assert.equal((await piece(other)).content, "On time. One two three\n");
  await editor.unroute(/content-pieces(\?|$)/);
  await editor.route(/content-pieces\?/, delay("GET", 1_500));
  await editor.getByRole("button", { name: "Boats at dawn" }).click();
  await editor.locator(".ProseMirror").click();
  await editor.keyboard.press("Control+End");
  await editor.keyboard.type(" Late.");
  await until(async () => await editor.getByLabel("Title").inputValue(), "Boats at dawn");
  await editor.unroute(/content-pieces\?/);
  assert.equal((await piece(other)).content, "On time. One two three Late.\n");

  // A link fills in the form, and does not send the token to its address.
  const attack = new URLSearchParams({ url: "http://127.0.0.1:9" });
  await editor.goto(`${page}/#${attack}`);
  await editor.getByRole("button", { name: "Trains" }).waitFor();
  assert.equal(await editor.evaluate(() => sessionStorage.getItem("url")), url);
  await editor.goto("about:blank");
  await editor.goto(`${page}/#${new URLSearchParams({ url, token: "galley_other" })}`);
  await editor.getByLabel("Access token").waitFor();
  assert.equal(await editor.getByRole("button", { name: "New piece" }).isVisible(), false);
  await editor.getByLabel("Access token").fill(token);
  await editor.getByRole("button", { name: "Sign in" }).click();

  // A new piece opens at once, and a reload keeps the session of the tab.
  await editor.getByRole("button", { name: "New piece" }).click();
  await until(async () => await editor.getByLabel("Title").inputValue(), "Untitled");
  await editor.reload();
  await editor.getByRole("button", { name: "Untitled" }).waitFor();
});
