// The search: results while typing, by the keyboard, the pointer and on a phone.
import assert from "node:assert/strict";
import { accessible, api, open, phone, run, signIn, until } from "./harness.mjs";

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  const [posts] = await api("GET", "/content-groups/list");
  const create = (title, content) =>
    api("POST", "/content-pieces", { title, slug: title.toLowerCase().replaceAll(" ", "-"), tags: [], members: [], contentGroupId: posts.id, content });
  await create("Old harbour", "<p>Boats leave the <b>town</b> at dawn.</p>");
  await create("Ferry times", "<p>The harbour is open.</p>");
  await create("Trains", "<p>Nothing about the sea.</p>");
  await until(async () => (await api("GET", "/content-pieces/search?query=sea")).length, 1);
  await page.reload();
  await page.getByRole("list", { name: "Pieces" }).getByText("Trains").waitFor();

  // The word that is being typed may be the begin of one. The best hit opens with Enter.
  await page.keyboard.press("Control+k");
  const input = page.getByRole("combobox", { name: /Words/ });
  const hits = page.getByRole("dialog").getByRole("option");
  await page.waitForFunction(() => document.activeElement?.getAttribute("role") === "combobox");
  await page.keyboard.type("harb");
  await until(async () => await hits.locator(".title").allInnerTexts(), ["Old harbour", "Ferry times"]);
  assert.deepEqual(await hits.locator("mark").allInnerTexts(), ["harbour", "harbour"]);
  await accessible(page, "hits of a search");
  await page.keyboard.press("ArrowDown");
  assert.equal(await input.getAttribute("aria-activedescendant"), await hits.nth(1).getAttribute("id"));
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await until(async () => await page.locator("#title").inputValue().catch(() => ""), "Ferry times");

  // Other words have other hits; none are said to be none. Escape ends the search.
  await page.getByRole("button", { name: "Search" }).click();
  await input.fill('"leave the town" -ferry');
  await until(async () => await hits.locator(".title").allInnerTexts(), ["Old harbour"]);
  await input.fill("sailing");
  await page.getByText("Nothing was found.").waitFor();
  await input.fill("train");
  await hits.first().click();
  await until(async () => await page.locator("#title").inputValue().catch(() => ""), "Trains");
  await page.keyboard.press("Escape");

  // On a phone, the menu has the search.
  const small = await open(browser, { viewport: phone, hasTouch: true });
  await signIn(small);
  await small.getByRole("button", { name: "Menu" }).click();
  await small.getByRole("button", { name: "Search" }).click();
  await small.getByRole("combobox", { name: /Words/ }).fill("town");
  await small.getByRole("dialog").getByRole("option").first().waitFor();
  await accessible(small, "a search on a phone");
  const fits = await small.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  assert.ok(fits, "the page is wider than the screen");
  await small.getByRole("dialog").getByRole("option").first().click();
  await small.locator("#title").waitFor();
});
