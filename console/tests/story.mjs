// A post from the first visit to its deletion, as writers and a site see it.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { accessible, api, clickEnd, open, phone, run, saved, signIn, text, until, url, watched } from "./harness.mjs";

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  await page.getByText("There are no pieces here yet.").waitFor();
  await accessible(page, "the empty list");

  // A receiver of each change of a piece.
  const received = [];
  const receiver = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    received.push(JSON.parse(Buffer.concat(parts).toString()));
    response.end();
  });
  await new Promise((listening) => receiver.listen(0, "127.0.0.1", listening));
  const [posts] = await api("GET", "/content-groups/list");
  const changes = ["contentPieceAdded", "contentPieceUpdated", "contentPieceRemoved", "contentPiecePublished"];
  await api("POST", "/webhooks", {
    url: `http://127.0.0.1:${receiver.address().port}/hook`,
    name: "Site",
    event: changes[0],
    events: changes,
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    metadata: { contentGroupId: posts.id },
  });

  // A post with headings, a list, a table, an image and code.
  await page.getByRole("button", { name: "Write your first post" }).click();
  await page.waitForFunction(() => document.activeElement?.id === "title");
  await page.keyboard.type("Bread & butter");
  await page.keyboard.press("Enter");
  await page.keyboard.type("First **bold** words.");
  await page.keyboard.press("Enter");
  await page.keyboard.type("## Ingredients");
  await page.keyboard.press("Enter");
  await page.keyboard.type("- Flour");
  await page.keyboard.press("Enter");
  await page.keyboard.type("Water");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await page.keyboard.type("/table");
  await page.getByRole("option", { name: "Table" }).waitFor();
  await page.keyboard.press("Enter");
  for (const cell of ["Cell", "Two", "Three"]) {
    if (cell !== "Cell") await page.keyboard.press("Tab");
    await page.keyboard.type(cell);
  }
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const image = await page.locator('link[rel="icon"]').getAttribute("href");
  await page.keyboard.type("/image");
  await page.getByRole("option", { name: "Image" }).click();
  await page.getByLabel("Address of the image").fill("javascript:alert(1)");
  await page.getByRole("button", { name: "Insert" }).click();
  await page.getByText("This address can't be used here.").waitFor();
  await page.getByLabel("Address of the image").fill(image);
  await page.getByLabel("Alternative text").fill("An icon");
  await page.getByRole("button", { name: "Insert" }).click();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.keyboard.type("```js ");
  await page.keyboard.type("let x = 1;");
  await saved(page);
  await accessible(page, "a piece");
  await page.getByRole("button", { name: "Details" }).click();
  const slug = page.getByRole("textbox", { name: "Slug" });
  assert.equal(await slug.inputValue(), "bread-butter", "the slug follows the title");
  await accessible(page, "the details");

  // A site sees it after its publication only.
  const token = await api("POST", "/tokens", {
    name: "site",
    permissions: ["contentPieces:read"],
    view: "published",
  });
  const site = async () => await api("GET", "/content-pieces/list?content=true&contentFormat=html", undefined, token.token);
  assert.deepEqual(await site(), []);
  await page.getByRole("button", { name: "Publish" }).click();
  await page.locator("header .state.published").waitFor();
  const [post] = await site();
  assert.equal(post.title, "Bread & butter");
  for (const part of ["<strong>bold</strong>", "<h2>Ingredients</h2>", "<li><p>Water</p></li>", "Cell", 'alt="An icon"', "let x = 1;"]) {
    assert.ok(post.content.includes(part), `${part}: ${post.content}`);
  }

  // Another person, invited by mail, edits another block at the same time: both changes stay.
  const address = page.url();
  await page.getByRole("navigation").getByRole("link", { name: "Members" }).click();
  await page.getByRole("button", { name: "Invite" }).click();
  await page.getByLabel("E-mail address").fill("bob@example.org");
  await page.getByLabel("Name", { exact: true }).fill("Bob Example");
  await page.getByLabel("Role", { exact: true }).selectOption("Editor");
  await page.getByRole("button", { name: "Send the invite" }).click();
  const outbox = process.env.GALLEY_OUTBOX;
  const mail = async () => {
    for (let tries = 0; tries < 200; tries += 1) {
      try {
        for (const name of readdirSync(outbox)) {
          const text = readFileSync(join(outbox, name), "utf8").replace(/=\r?\n/g, "").replaceAll("=3D", "=");
          const link = /http:\/\/\S*\/invite\?code=[\w-]+/.exec(text)?.[0];
          if (link !== undefined) return link;
        }
      } catch {
        // The first mail creates the folder.
      }
      await new Promise((next) => setTimeout(next, 100));
    }
    throw new Error("no mail comes");
  };
  const other = await open(browser, { viewport: phone, hasTouch: true, isMobile: true });
  await other.goto(await mail());
  await other.getByRole("button").click();
  await other.getByRole("link", { name: "Open the console" }).click();
  await other.waitForURL(/\/console\/ws_/);
  await page.goto(address);
  await page.locator(".ProseMirror").waitFor();
  await accessible(other, "the list on a phone");
  await other.getByRole("link", { name: /Bread/ }).click();
  await other.locator(".ProseMirror").waitFor();
  await accessible(other, "a piece on a phone");
  await clickEnd(other, "Flour");
  await other.keyboard.type(" of rye");
  await saved(other);
  await clickEnd(page, "words.");
  await page.keyboard.type(" More.");
  await page.getByText(/were merged with yours/).waitFor();
  await saved(page);
  for (const part of ["words. More.", "Flour of rye"]) assert.ok((await text(page)).includes(part), part);

  // The same block, while the other page hears of no change: the choice keeps both texts.
  await page.context().setOffline(true);
  await clickEnd(other, "words.");
  await other.keyboard.type(" Phone.");
  await other.getByText(/were merged with yours|Two people changed/).first().waitFor();
  const decide = other.getByRole("button", { name: "Compare and decide" });
  if (await decide.isVisible()) {
    await decide.click();
    await other.getByRole("dialog").waitFor();
    await accessible(other, "a conflict on a phone");
    await other.getByRole("button", { name: "Save" }).click();
  }
  await saved(other);
  const mine = await text(other);
  for (const part of ["More.", "Phone.", "Flour of rye"]) assert.ok(mine.includes(part), `${part}: ${mine}`);
  await page.context().setOffline(false);
  await clickEnd(page, "words.");
  await page.keyboard.type(" Desk.");
  // The conflict waits while a person types on, and the later words belong to it.
  await page.getByRole("button", { name: "Compare and decide" }).waitFor();
  await accessible(page, "a conflict");
  await page.keyboard.type(" Later.");
  await page.getByRole("button", { name: "Compare and decide" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Decide later" }).click();
  await page.getByRole("button", { name: "Compare and decide" }).click();
  await page.getByRole("dialog").waitFor();
  await accessible(page, "the choice of a conflict");
  await page.getByRole("button", { name: "Save" }).click();
  await saved(page);
  const both = await text(page);
  for (const part of ["More.", "Phone.", "Desk. Later.", "Flour of rye"]) assert.ok(both.includes(part), `${part}: ${both}`);

  // The changes that a publication would bring to the site.
  await page.getByRole("button", { name: "Compare with the published text" }).click();
  await page.getByRole("dialog").locator(".diff ins", { hasText: "Phone." }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();

  // An earlier revision comes back, and the later one, too.
  const revisions = page.getByRole("region", { name: "History" }).locator("li button");
  const count = await revisions.count();
  await revisions.last().click();
  await page.locator("dialog .diff ins").first().waitFor();
  await accessible(page, "a comparison");
  await page.getByRole("button", { name: "Restore this revision" }).click();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.waitForFunction(() => !document.querySelector(".ProseMirror").innerText.includes("Flour"));
  await saved(page);
  await revisions.nth(count).waitFor();
  await revisions.nth(1).click();
  await page.getByRole("button", { name: "Restore this revision" }).click();
  await page.waitForFunction(() => document.querySelector(".ProseMirror").innerText.includes("Flour of rye"));
  await saved(page);

  // A schedule, which is cancelled.
  await page.getByLabel("Publish at").fill("2099-01-01T09:00");
  await page.getByRole("button", { name: "Schedule", exact: true }).click();
  await page.getByText(/Scheduled for/).first().waitFor();
  await page.getByRole("button", { name: "Cancel the schedule" }).click();
  await page.getByLabel("Publish at").waitFor();

  // Without a connection, edits are kept on the device and offered again.
  await other.context().close();
  await page.context().setOffline(true);
  await clickEnd(page, "Water");
  await page.keyboard.type(" and salt");
  await page.getByText("Offline: kept on this device").waitFor();
  const context = page.context();
  // The page sends the edits once more as it is closed.
  const refuseSave = (route) => (route.request().method() === "PUT" ? route.abort() : route.continue());
  await context.route("**/content-pieces", refuseSave);
  await page.close();
  await context.setOffline(false);
  const again = watched(await context.newPage());
  await again.goto(address);
  await again.getByText(/This device has unsaved changes/).waitFor();
  assert.ok(!(await text(again)).includes("salt"));
  await context.unroute("**/content-pieces", refuseSave);
  await again.getByRole("button", { name: "Restore" }).click();
  await again.locator(".ProseMirror").getByText("Water and salt").waitFor();
  await saved(again);
  assert.ok((await text(again)).includes("Water and salt"));
  const stored = await api("GET", `/content-pieces?id=${post.id}&content=true&contentFormat=text`.replace("text", "markdown"));
  assert.ok(stored.content.includes("Water and salt"), stored.content);

  // The help, and the deletion.
  await again.getByRole("heading", { name: "All pieces" }).click();
  await again.keyboard.press("?");
  await again.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  await accessible(again, "the help");
  await again.keyboard.press("Escape");
  await again.getByRole("button", { name: "Delete" }).click();
  await again.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await again.getByText("There are no pieces here yet.").waitFor();
  assert.deepEqual(await site(), []);
  await again.getByText("1 piece is in the trash.").waitFor();
  await again.getByRole("button", { name: "Undo" }).click();
  await again.getByRole("link", { name: /Bread/ }).waitFor();

  // The receiver has each change once, and in order.
  const feed = async () => {
    const all = await api("GET", "/events?perPage=1000");
    return all.filter((event) => changes.includes(event.type)).map((event) => event.sequence);
  };
  // It grows while it is read, as the event of autosaves follows a minute after the last one.
  const numbers = () => received.map((event) => event.sequence).join();
  await until(async () => (await feed()).join() === numbers(), true);
  const types = received.map((event) => event.type);
  assert.deepEqual(types.filter((type) => type !== "contentPieceUpdated"), ["contentPieceAdded", "contentPiecePublished", "contentPieceRemoved", "contentPieceAdded"]);
  receiver.close();

  // Nothing in a text runs.
  const hostile = `"><img src=x onerror="window.ran=1"><script>window.ran=1</script>{{7*7}}`;
  const [group] = await api("GET", "/content-groups/list");
  await api("POST", "/content-groups", { name: hostile, ancestor: group.id });
  const tag = await api("POST", "/tags", { label: hostile, color: "red" });
  await api("POST", "/content-pieces", {
    title: hostile,
    slug: "hostile",
    tags: [tag.id],
    members: [],
    contentGroupId: group.id,
    description: hostile,
    coverAlt: hostile,
    content: `<p>${hostile}</p><a href="javascript:window.ran=1">x</a><img src="x" onerror="window.ran=1">`,
  });
  await again.reload();
  await again.getByRole("link", { name: /onerror/ }).first().waitFor();
  await again.locator("a.row", { hasText: "onerror" }).click();
  await again.locator(".ProseMirror").waitFor();
  assert.equal(await again.evaluate(() => window.ran), undefined);

  // A session that ends leaves the pages for the sign-in.
  await again.getByRole("button", { name: "Sign out" }).click();
  await again.waitForURL(/\/sign-in$/);
  await again.goto(`${url}/`);
  await again.waitForURL(/\/sign-in$/);
});
