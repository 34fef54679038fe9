// Roles, variants, custom fields, notes, losses of a paste, the activity and the settings.
import assert from "node:assert/strict";
import { accessible, accessibleAtBothWidths, api, clickEnd, go, open, phone, run, saved, signIn, until } from "./harness.mjs";

await run(async (browser) => {
  const page = await open(browser);
  const dialog = page.getByRole("dialog");
  await signIn(page);

  // The first steps give a site its token, which reads nothing but what is published.
  await page.getByRole("button", { name: "New token for a site" }).click();
  const token = await dialog.getByLabel("Token").first().inputValue();
  await dialog.getByRole("button", { name: "I have stored it" }).click();
  assert.deepEqual(await api("GET", "/content-pieces/list", undefined, token), []);

  // A role.
  await go(page, "Roles");
  await page.getByRole("button", { name: "New role" }).click();
  await dialog.getByLabel("Name").fill("Reviewer");
  await dialog.getByLabel("Pieces").selectOption("read and write");
  await dialog.getByLabel("Groups").selectOption("read");
  await accessible(page, "a new role");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Change: Reviewer" }).waitFor();
  await accessibleAtBothWidths(page, "roles");
  const role = (await api("GET", "/roles/list")).find((one) => one.name === "Reviewer");
  const reads = ["contentGroups:read", "tags:read", "variants:read", "assets:read", "workspaceMemberships:read", "workspace:read"];
  assert.deepEqual(role.permissions, ["contentPieces:write", ...reads, "profile:write"]);
  await page.getByRole("button", { name: "Change: Reviewer" }).click();
  await dialog.getByLabel("Pieces").selectOption("nothing");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.deepEqual((await api("GET", `/roles?id=${role.id}`)).permissions, [...reads, "profile:write"]);

  // A variant, and a schema of custom fields.
  await go(page, "Variants");
  await page.getByRole("button", { name: "New variant" }).click();
  await dialog.getByLabel("Key").fill("de");
  await dialog.getByLabel("Name").fill("German");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Change: German" }).waitFor();
  await accessibleAtBothWidths(page, "variants");
  await go(page, "Posts");
  await page.getByRole("button", { name: "Settings of the group" }).click();
  const schema = {
    type: "object",
    required: ["rating"],
    properties: {
      rating: { type: "integer", title: "Rating", minimum: 1, maximum: 5 },
      kind: { enum: ["review", "news"], title: "Kind" },
      featured: { type: "boolean", title: "Featured" },
      links: { type: "array", items: { type: "string" }, title: "Links" },
      place: { type: "object", title: "Place", properties: { city: { type: "string", title: "City" } } },
      raw: { title: "Raw" },
    },
  };
  await dialog.getByLabel("Custom fields (JSON Schema)").fill("{");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("This is no valid JSON").waitFor();
  await dialog.getByLabel("Custom fields (JSON Schema)").fill(JSON.stringify(schema));
  await accessible(page, "a schema");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "hidden" });
  const [posts] = await api("GET", "/content-groups/list");
  assert.deepEqual(posts.customDataSchema, schema);

  // A new piece of the group asks for the required field.
  await page.keyboard.press("n");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByText(/rating/).first().waitFor();
  await dialog.getByLabel("Rating *").fill("2");
  await accessible(page, "required fields");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.locator(".ProseMirror").waitFor();
  assert.equal((await api("GET", "/content-pieces/list"))[0].customData, '{"rating":2}');

  // Typing after an image keeps it, and its address can be changed. A link gets its scheme.
  await page.locator(".ProseMirror").click();
  await page.keyboard.type("/Image");
  await page.keyboard.press("Enter");
  await dialog.getByLabel("Address of the image").fill("example.org/x.png");
  await dialog.getByRole("button", { name: "Insert" }).click();
  await page.keyboard.type("After the image");
  await page.locator(".ProseMirror img").click();
  await page.getByRole("toolbar", { name: "Image" }).getByRole("button", { name: "Replace" }).click();
  await dialog.getByLabel("Alternative text").fill("A boat");
  await accessible(page, "an image");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await clickEnd(page, "After the image");
  await page.keyboard.type(" ");
  await page.keyboard.press("Control+k");
  await dialog.getByLabel("Address of the link").fill("example.org/page");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await page.locator(".ProseMirror a").click();
  await saved(page);
  assert.ok(page.url().includes("/pieces/"), "a click on a link in the text stays");
  const [illustrated] = await api("GET", "/content-pieces/list?content=true&contentFormat=html");
  assert.match(illustrated.content, /<img src="https:\/\/example\.org\/x\.png" alt="A boat">/);
  assert.match(illustrated.content, /<p>After the image <a [^>]*href="https:\/\/example\.org\/page"/);
  await api("DELETE", `/content-pieces?id=${illustrated.id}&permanent=true`);
  await go(page, "Posts");

  // A piece with custom fields. A value that the schema forbids is named, and holds back nothing else.
  const customData = { rating: 3, place: { city: "Kiel", zip: "24103" } };
  const content = "<h2>One</h2><p>First.</p><p>Second.</p>";
  const body = { title: "The harbour", slug: "the-harbour", tags: [], members: [], contentGroupId: posts.id, content, customData };
  const { id } = await api("POST", "/content-pieces", body);
  const stored = async (variant) => await api("GET", `/content-pieces?id=${id}&content=true&contentFormat=html&customData=object${variant ? `&variant=${variant}` : ""}`);
  await page.getByRole("link", { name: /The harbour/ }).click();
  await page.locator(".ProseMirror").waitFor();
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByLabel("Rating *").fill("9");
  await page.getByLabel("Kind").selectOption("news");
  await page.getByText("Not saved", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByRole("alert").getByText(/Custom data: /).waitFor();
  await page.getByRole("alert").getByRole("button", { name: "Details" }).click();
  await page.getByLabel("Rating *").fill("4");
  await page.getByLabel("Featured").check();
  await page.getByLabel("Links").fill("https://a.example\n\nhttps://b.example");
  await page.getByLabel("City").fill("Lübeck");
  await page.getByLabel("Raw").fill('{"deep": [1, 2]}');
  await page.getByLabel("Raw").blur();
  const expected = {
    rating: 4,
    place: { city: "Lübeck", zip: "24103" },
    kind: "news",
    featured: true,
    links: ["https://a.example", "https://b.example"],
    raw: { deep: [1, 2] },
  };
  await until(async () => (await stored()).customData, expected);
  await saved(page);
  await accessibleAtBothWidths(page, "custom fields");

  // A group that requires another field asks for it when a piece moves there.
  const reviews = await api("POST", "/content-groups", { name: "Reviews", customDataSchema: { type: "object", required: ["author"], properties: { author: { type: "string", title: "Author" } } } });
  await page.getByLabel("Group", { exact: true }).selectOption("Reviews");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await page.getByLabel("Group", { exact: true }).inputValue(), posts.id);
  await page.getByLabel("Group", { exact: true }).selectOption("Reviews");
  await dialog.getByLabel("Author *").fill("Ann");
  await accessible(page, "fields for a move");
  await dialog.getByRole("button", { name: "Move" }).click();
  await until(async () => (await stored()).contentGroupId, reviews.id);
  assert.deepEqual((await stored()).customData, { ...expected, author: "Ann" });
  await dialog.waitFor({ state: "hidden" });
  await page.getByLabel("Group", { exact: true }).selectOption("Posts");
  await until(async () => (await stored()).contentGroupId, posts.id);

  // A note on a revision.
  await page.getByRole("region", { name: "History" }).getByRole("listitem").first().getByRole("button").click();
  await dialog.getByRole("button", { name: "The text then" }).click();
  await dialog.getByRole("heading", { name: "One" }).waitFor();
  await dialog.getByRole("button", { name: "Changes since then" }).click();
  await dialog.getByLabel("Note").fill("Checked by the editor");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("region", { name: "History" }).getByText("Checked by the editor").waitFor();
  await accessible(page, "a note");
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Details" }).click();

  // The variant beside the original: what it lacks is named, and an own value can be given up again.
  await page.getByLabel("Variant").selectOption("German (missing)");
  const original = page.getByRole("region", { name: "Original" });
  await original.getByText("Title: not in this variant").waitFor();
  await original.getByText("Text: not in this variant").waitFor();
  await page.locator(".ProseMirror").waitFor();
  await accessible(page, "a variant");
  await page.getByLabel("Title", { exact: true }).fill("Der Hafen");
  await clickEnd(page, "First.");
  await page.keyboard.type(" Auf Deutsch.");
  await saved(page);
  await original.getByText("Title: not in this variant").waitFor({ state: "hidden" });
  assert.equal((await stored("de")).title, "Der Hafen");
  assert.equal((await stored("de")).content, "<h2>One</h2><p>First. Auf Deutsch.</p><p>Second.</p>");
  assert.equal((await stored()).title, "The harbour");
  assert.equal((await stored()).content, content);
  await page.reload();
  await page.locator(".ProseMirror").getByText("Auf Deutsch.").waitFor();
  await original.getByRole("button", { name: "Use the original: Text" }).click();
  await accessible(page, "a question about a variant");
  await dialog.getByRole("button", { name: "Use the original" }).click();
  await page.locator(".ProseMirror").getByText("First.", { exact: true }).waitFor();
  assert.equal((await stored("de")).content, content);
  assert.equal((await stored("de")).title, "Der Hafen");
  await page.getByLabel("Variant").selectOption("Original");
  await page.locator(".ProseMirror").getByText("First.", { exact: true }).waitFor();
  assert.equal(await page.getByLabel("Title", { exact: true }).inputValue(), "The harbour");

  // A paste names what it loses, and can be taken back.
  const paste = async (html) => {
    await clickEnd(page, "Second.");
    await page.evaluate((text) => {
      const data = new DataTransfer();
      data.setData("text/html", text);
      document.querySelector(".ProseMirror").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }, html);
  };
  await paste('<p>Pasted <b>text</b></p><video src="https://example.org/a.mp4"></video>');
  await page.getByText(/The paste has lost: video/).waitFor();
  await page.locator(".ProseMirror").getByText("Pasted").waitFor();
  await accessible(page, "a paste");
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await page.locator(".ProseMirror").getByText("Pasted").waitFor({ state: "hidden" });
  await paste("<p>Harmless <i>text</i></p>");
  await page.locator(".ProseMirror").getByText("Harmless").waitFor();
  await page.getByText(/The paste has lost/).waitFor({ state: "hidden" });
  await saved(page);

  // A phone has the tools above its keyboard.
  const mobile = await open(browser, { viewport: phone, hasTouch: true, isMobile: true });
  await signIn(mobile);
  await mobile.getByRole("link", { name: /The harbour/ }).tap();
  await mobile.locator(".ProseMirror").getByText("First.").tap();
  const tools = mobile.getByRole("toolbar", { name: "Formatting" }).and(mobile.locator(".phone"));
  await tools.waitFor();
  await accessible(mobile, "the tools of a phone");
  await tools.getByRole("button", { name: "Blocks" }).tap();
  await mobile.getByRole("option", { name: "Quote" }).tap();
  await mobile.keyboard.type("Quoted");
  await saved(mobile);
  assert.ok((await stored()).content.includes("<blockquote><p>Quoted</p></blockquote>"), (await stored()).content);

  // The activity, and the audit log of one piece.
  await go(page, "Activity");
  await page.getByText("Piece changed").first().waitFor();
  await accessibleAtBothWidths(page, "the activity");
  await page.getByRole("button", { name: "Audit log" }).click();
  await page.getByText("Variant created").waitFor();
  await page.getByRole("button", { name: id }).first().click();
  await page.getByText("Variant created").waitFor({ state: "hidden" });
  await page.getByText("Piece created").waitFor();
  await accessibleAtBothWidths(page, "the audit log");

  // The settings of the workspace.
  await go(page, "Settings");
  await page.getByLabel("Name of the workspace").fill("The Harbour Times");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("status").getByText("Saved").waitFor();
  await page.getByText("The server and its database are ready.").waitFor();
  const retention = page.getByRole("row", { name: "revision-retention 30 default" });
  await retention.waitFor();
  await accessibleAtBothWidths(page, "the settings");
  assert.equal((await api("GET", "/workspace")).name, "The Harbour Times");
});
