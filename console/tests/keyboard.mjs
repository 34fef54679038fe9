// A post from the first visit to its deletion, by the keyboard alone.
import assert from "node:assert/strict";
import { api, open, run, saved, signIn, text } from "./harness.mjs";

/** Presses Tab until the focused element has this name, as a person does. */
async function tabTo(page, name) {
  const seen = [];
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      const label = element?.labels?.[0]?.innerText;
      const style = element === null ? null : getComputedStyle(element);
      const isVisible = style?.outlineStyle !== "none" || element.isContentEditable || element.id === "title";
      return { name: element?.getAttribute("aria-label") ?? label ?? element?.innerText ?? "", isVisible };
    });
    seen.push(focused.name.trim());
    if (focused.name.trim() === name) {
      assert.ok(focused.isVisible, `the focus is not visible at ${name}`);
      return;
    }
  }
  assert.fail(`no way to ${name}: ${seen.join(" | ")}`);
}

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  await page.getByText("There are no pieces here yet.").waitFor();

  // A new piece, with blocks and marks.
  await page.keyboard.press("n");
  await page.locator(".ProseMirror").waitFor();
  await page.waitForFunction(() => document.activeElement?.id === "title");
  await page.keyboard.type("By hand");
  await page.keyboard.press("Enter");
  await page.keyboard.type("Plain and ");
  await page.keyboard.press("Control+b");
  await page.keyboard.type("bold");
  await page.keyboard.press("Control+b");
  await page.keyboard.press("Enter");
  await page.keyboard.type("/");
  await page.getByRole("listbox").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("listbox").waitFor({ state: "hidden" });
  await page.keyboard.type("A heading");
  await page.keyboard.press("Shift+Home");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("https://example.org/");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("Control+s");
  await saved(page);
  const [piece] = await api("GET", "/content-pieces/list?content=true&contentFormat=html");
  assert.equal(piece.title, "By hand");
  assert.match(piece.content, /<strong>bold<\/strong>/);
  assert.match(piece.content, /<h2><a [^>]*href="https:\/\/example\.org\/"[^>]*>A heading<\/a><\/h2>/);

  // The details open and close, and leave the text as it is.
  await page.keyboard.press("Control+.");
  await page.getByRole("heading", { name: "Details" }).waitFor();
  await tabTo(page, "Description");
  await page.keyboard.type("Typed");
  await page.keyboard.press("Tab");
  await saved(page);
  assert.equal((await api("GET", `/content-pieces?id=${piece.id}`)).description, "Typed");
  await page.keyboard.press("Control+.");
  await page.getByRole("heading", { name: "Details" }).waitFor({ state: "hidden" });
  assert.ok(!(await page.locator(".ProseMirror").innerHTML()).includes("<sup>"));

  // Publish, and go back to the list.
  await tabTo(page, "Publish");
  await page.keyboard.press("Enter");
  await page.locator("header .state.published").waitFor();
  assert.equal((await api("GET", `/content-pieces?id=${piece.id}`)).publication.state, "published");
  await page.getByRole("textbox", { name: "Title" }).focus();
  await page.keyboard.press("Escape");
  await page.waitForURL(/\/console\/ws_[^/]+$/);

  // A second piece; J and K go through the list.
  await page.keyboard.press("n");
  await page.waitForFunction(() => document.activeElement?.id === "title");
  await page.keyboard.type("Second");
  await page.keyboard.press("Enter");
  await page.keyboard.type("The last words before leaving.");
  await page.keyboard.press("Escape");
  await page.waitForURL(/\/console\/ws_[^/]+$/);
  await page.getByRole("link", { name: /By hand/ }).waitFor();
  const title = () => page.getByRole("textbox", { name: "Title" }).inputValue();
  await page.keyboard.press("j");
  await page.locator(".ProseMirror").waitFor();
  assert.equal(await title(), "Second");
  assert.ok((await text(page)).includes("The last words before leaving."));
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("j");
  await page.waitForFunction(() => document.querySelector("#title")?.value === "By hand");
  assert.ok((await text(page)).includes("A heading"));

  // The help closes by Escape, and a deletion is confirmed.
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor({ state: "hidden" });
  await tabTo(page, "Delete");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await tabTo(page, "Delete");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /By hand/ }).waitFor({ state: "hidden" });
  assert.deepEqual((await api("GET", "/content-pieces/list")).map((one) => one.title), ["Second"]);
});
