// The pages of an owner's week: tags, members, tokens, webhooks, the trash and the account.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { accessible, accessibleAtBothWidths, api, go, open, phone, run, saved, signIn, until, url } from "./harness.mjs";

const received = [];
const receiver = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    received.push(request.headers);
    response.end("thanks");
  });
});
await new Promise((listening) => receiver.listen(0, "127.0.0.1", listening));
const hook = `http://127.0.0.1:${receiver.address().port}/hook`;

await run(async (browser) => {
  const page = await open(browser);
  const dialog = page.getByRole("dialog");
  await signIn(page);

  await go(page, "Tags");
  await page.getByRole("button", { name: "New tag" }).click();
  await dialog.getByLabel("Name").fill("News");
  await dialog.getByLabel("Color").selectOption("blue");
  await accessible(page, "a new tag");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Change: News" }).click();
  await dialog.getByLabel("Name").fill("Reports");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("button", { name: "Change: Reports" }).waitFor();
  await accessibleAtBothWidths(page, "tags");
  assert.deepEqual((await api("GET", "/tags/list")).map(({ label, color }) => [label, color]), [["Reports", "blue"]]);

  // A second person joins by a link at the width of a phone, and sees the workspace.
  await go(page, "Members");
  await page.getByRole("button", { name: "Invite" }).click();
  await dialog.getByLabel("E-mail address").fill("bob@example.org");
  await dialog.getByLabel("Name").fill("Bob Example");
  await dialog.getByLabel("Role").selectOption("Admin");
  await accessible(page, "an invite");
  await dialog.getByRole("button", { name: "Send the invite" }).click();
  await page.getByText("An invite goes to bob@example.org.").waitFor();
  await page.getByRole("button", { name: "Copy link: Bob Example" }).click();
  const link = await dialog.getByRole("textbox").inputValue();
  await accessibleAtBothWidths(page, "the link of an invite");
  await dialog.getByRole("button", { name: "Close" }).click();
  await accessibleAtBothWidths(page, "members");
  const other = await open(browser, { viewport: phone, hasTouch: true, isMobile: true });
  await other.goto(link);
  await other.getByRole("button").click();
  await other.getByRole("link", { name: "Open the console" }).click();
  await other.waitForURL(/\/console\/ws_/);
  await other.getByText("There are no pieces here yet.").waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Remove: Bob Example" }).waitFor();
  assert.equal(await page.getByText("invited").count(), 0);

  // A role of fewer rights takes effect at once, and a removal ends the session.
  const changed = page.waitForResponse((response) => response.request().method() === "PUT");
  await page.getByLabel("Role of Bob Example").selectOption("Viewer");
  await changed;
  await other.getByRole("button", { name: "Write your first post" }).click();
  await other.getByText(/Your role lacks a permission/).waitFor();
  await accessible(other, "a missing permission");
  await page.getByRole("button", { name: "Remove: Bob Example" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await dialog.waitFor({ state: "hidden" });
  await other.reload();
  await other.waitForURL(/\/sign-in$/);

  // A token of a preset, which is shown once.
  await go(page, "Tokens");
  await page.getByRole("button", { name: "New token for a site" }).click();
  await dialog.getByRole("button", { name: "Create" }).click();
  const token = await dialog.getByLabel("Token").first().inputValue();
  await accessibleAtBothWidths(page, "a new token");
  await dialog.getByRole("button", { name: "I have stored it" }).click();
  assert.deepEqual(await api("GET", "/content-pieces/list", undefined, token), []);
  await accessibleAtBothWidths(page, "tokens");
  await page.getByRole("button", { name: "Revoke: Website" }).click();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke: Website" }).waitFor({ state: "hidden" });
  await assert.rejects(api("GET", "/content-pieces/list", undefined, token), /401/);

  // A webhook with its attempts.
  await go(page, "Webhooks");
  await page.getByRole("button", { name: "New webhook" }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("Build");
  await dialog.getByLabel("Address", { exact: true }).fill(hook);
  await dialog.getByLabel("Piece added").waitFor();
  assert.equal(await dialog.getByLabel("Piece published").count(), 0);
  await dialog.getByLabel("Content", { exact: true }).selectOption("all content");
  await dialog.getByLabel("Piece published").waitFor();
  for (const event of ["Piece changed", "Piece removed"]) await dialog.getByLabel(event).uncheck();
  await accessible(page, "a new webhook");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Test: Build" }).click();
  await page.getByText("delivered", { exact: true }).waitFor();
  await page.getByText(/: 200 \(\d+ ms\)/).waitFor();
  assert.equal(received.length, 1);
  await accessibleAtBothWidths(page, "webhooks");
  await page.getByRole("button", { name: "Change: Build" }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("Rebuild");
  await dialog.getByLabel("Piece added").uncheck();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.getByText("Choose at least one event.").waitFor();
  await dialog.getByLabel("Tag changed").check();
  await dialog.getByLabel("Group", { exact: true }).selectOption("Posts");
  await accessible(page, "a changed webhook");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.waitFor({ state: "hidden" });
  const [webhook] = await api("GET", "/webhooks/list");
  const [{ id: contentGroupId }] = await api("GET", "/content-groups/list");
  assert.deepEqual([webhook.name, webhook.events, webhook.view, webhook.metadata], ["Rebuild", ["tagChanged"], "current", { contentGroupId }]);
  await page.getByRole("button", { name: "Change: Rebuild" }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("Build");
  await dialog.getByLabel("Group", { exact: true }).selectOption("The whole workspace");
  await dialog.getByLabel("Piece added").check();
  await dialog.getByLabel("Tag changed").uncheck();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.equal((await api("GET", "/webhooks/list"))[0].wholeWorkspace, true);
  await page.getByRole("button", { name: "Pause: Build" }).click();
  await page.getByRole("button", { name: "Resume: Build" }).click();
  await page.getByRole("button", { name: "Pause: Build" }).waitFor();

  // A group below another one, with a preview; a piece moves there, and the group comes back as a whole.
  await page.getByRole("button", { name: "New group", exact: true }).click();
  await dialog.getByLabel("Name of the group").fill("Drafts");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { level: 1, name: "Drafts" }).waitFor();
  await page.getByRole("button", { name: "Settings of the group" }).click();
  await dialog.getByLabel("Name of the group").fill("Archive");
  await dialog.getByLabel("Group above").selectOption("Posts");
  await dialog.getByLabel("Preview URL").fill("https://example.org/preview?id={id}&token={token}");
  await accessible(page, "the settings of a group");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { level: 1, name: "Archive" }).waitFor();
  const [posts] = await api("GET", "/content-groups/list?subtree=true");
  assert.equal(posts.descendants[0].name, "Archive");
  assert.equal(posts.descendants[0].previewUrl, "https://example.org/preview?id={id}&token={token}");
  await page.getByRole("button", { name: "Settings of the group" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { level: 1, name: "All pieces" }).waitFor();
  await go(page, "Trash");
  await page.getByRole("button", { name: "Restore: Archive" }).click();
  await page.getByText("The trash is empty.").waitFor();

  // A piece with the tag goes to the trash and comes back; the webhook hears of each change once.
  await go(page, "All pieces");
  await page.getByRole("button", { name: "Write your first post" }).click();
  await page.waitForFunction(() => document.activeElement?.id === "title");
  await page.keyboard.type("Lost and found");
  await saved(page);
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByLabel("Reports").check();
  await saved(page);
  await page.getByRole("combobox", { name: "Group", exact: true }).selectOption("Posts / Archive");
  await page.waitForFunction(() => document.querySelector('.save[data-state="saved"]'));
  await page.getByRole("button", { name: "Preview" }).click();
  const preview = await page.getByRole("link", { name: "Open the preview" }).getAttribute("href");
  assert.match(preview, /^https:\/\/example\.org\/preview\?id=cp_.*&token=galley_/);
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByText("There are no pieces here yet.").waitFor();
  await go(page, "Trash");
  await page.getByText(/deleted by owner/).waitFor();
  await accessibleAtBothWidths(page, "the trash");
  await page.getByRole("button", { name: "Restore: Lost and found" }).click();
  await page.getByText("The trash is empty.").waitFor();
  const [piece] = await api("GET", "/content-pieces/list");
  assert.deepEqual([piece.title, piece.tags.map((tag) => tag.label)], ["Lost and found", ["Reports"]]);
  // The test, the creation and the restoration.
  await until(() => received.length, 3);

  // The account, and all sessions.
  await go(page, "Account");
  await page.getByLabel("Full name").fill("Olga Owner");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("status").getByText("Saved").waitFor();
  await accessibleAtBothWidths(page, "the account");
  const second = await open(browser);
  await signIn(second);
  await page.reload();
  await page.getByRole("button", { name: "End", exact: true }).click();
  await page.getByRole("button", { name: "End", exact: true }).waitFor({ state: "hidden" });
  await second.reload();
  await second.waitForURL(/\/sign-in$/);
  await page.getByRole("button", { name: "Sign out everywhere" }).click();
  await page.waitForURL(/\/sign-in$/);
  const answer = await page.request.get(`${url}/profile`);
  assert.equal(answer.status(), 401);
});
