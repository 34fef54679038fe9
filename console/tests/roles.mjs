// A person sees the actions that the own role allows, and the console sends no request that it forbids.
import assert from "node:assert/strict";
import { accessibleAtBothWidths, api, open, phone, run } from "./harness.mjs";

await run(async (browser) => {
  const [group] = await api("GET", "/content-groups/list");
  const content = "<p>Ships <a href=\"https://example.org/\">arrive</a>.</p>";
  await api("POST", "/variants", { key: "de", label: "German" });
  const write = { title: "The harbour", slug: "harbour", tags: [], members: [], contentGroupId: group.id, content };
  const { id } = await api("POST", "/content-pieces", write);
  const { id: other } = await api("POST", "/content-pieces", { ...write, title: "Bread", slug: "bread" });
  await api("PUT", "/content-pieces", { id: other, variant: "de", title: "Brot" });
  await api("POST", "/content-pieces/publish", { id });

  /** Signs in a new person with these permissions, at this size. */
  const join = async (name, permissions, options) => {
    const { id: roleId } = await api("POST", "/roles", { name, permissions });
    const { id: member } = await api("POST", "/workspace-memberships", { email: `${name}@example.org`, name, roleId });
    const { url } = await api("POST", "/workspace-memberships/invite-link", { id: member });
    const page = await open(browser, options);
    const rejected = [];
    page.on("response", (response) => {
      if (response.status() === 403) rejected.push(response.url());
    });
    await page.goto(url);
    await page.getByRole("button").click();
    await page.getByRole("link", { name: "Open the console" }).click();
    await page.waitForURL(/\/console\/ws_/);
    return { page, rejected };
  };
  const names = async (page) => await page.getByRole("navigation").getByRole("list").last().getByRole("link").allInnerTexts();

  // A reader: the text can be read, and nothing offers a change.
  const reader = await join("reader", ["contentPieces:read", "contentGroups:read", "variants:read", "profile:read"]);
  const { page } = reader;
  await page.getByRole("link", { name: /The harbour/ }).click();
  await page.locator(".ProseMirror").getByText("arrive").waitFor();
  await page.getByText("Your role lets you read this piece").waitFor();
  assert.equal(await page.locator(".ProseMirror").getAttribute("contenteditable"), "false");
  assert.equal(await page.getByLabel("Title", { exact: true }).isEditable(), false);
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByLabel("Slug").waitFor();
  assert.equal(await page.getByLabel("Slug").isEnabled(), false);
  await accessibleAtBothWidths(page, "a piece that can't be changed");
  for (const name of ["New piece", "Publish", "Delete", "Unpublish", "Schedule", "Select", "New group", "Settings of the group"]) {
    assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
  }
  assert.deepEqual(await names(page), ["Variants", "Activity", "Trash", "Account"]);
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("The group has no preview URL.").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("n");
  await page.keyboard.press("x");
  for (const name of ["Variants", "Activity", "Trash"]) {
    await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  }
  assert.equal(await page.getByRole("button", { name: "New variant" }).count(), 0);
  assert.equal((await api("GET", "/content-pieces/list")).length, 2, "no key creates a piece");

  // The pieces that lack a translation.
  await page.getByRole("navigation").getByRole("link", { name: "All pieces" }).click();
  await page.getByRole("link", { name: /Bread/ }).waitFor();
  await page.getByLabel("Translation").selectOption("Without German");
  await page.getByRole("link", { name: /Bread/ }).waitFor({ state: "hidden" });
  await page.getByRole("link", { name: /The harbour/ }).waitFor();
  assert.ok(page.url().includes("missing=de"), page.url());

  // A writer on a phone: writes, and does not publish.
  const writes = ["contentPieces:write", "contentGroups:read", "tags:read", "profile:write"];
  const writer = await join("writer", writes, { viewport: phone, hasTouch: true, isMobile: true });
  await writer.page.getByRole("link", { name: /The harbour/ }).tap();
  await writer.page.locator(".ProseMirror").tap();
  await writer.page.keyboard.type("Late ");
  await writer.page.getByText("Saved", { exact: true }).waitFor();
  assert.equal(await writer.page.getByRole("button", { name: /Publish/ }).count(), 0);
  await writer.page.getByRole("button", { name: "Details" }).tap();

  // A slug that another piece of the group has is named while it is typed.
  await writer.page.getByLabel("Slug").fill("bread");
  await writer.page.getByText("“Bread” in this group has the same slug.").waitFor();
  await writer.page.getByLabel("Slug").fill("harbour");
  await writer.page.getByText("“Bread” in this group has the same slug.").waitFor({ state: "hidden" });

  assert.deepEqual([reader.rejected, writer.rejected], [[], []], "rejected requests");
});
