// Lists and boards: filters, selections, the order, and changes by others.
import assert from "node:assert/strict";
import { accessible, api, open, phone, run, signIn, until } from "./harness.mjs";

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  const [posts] = await api("GET", "/content-groups/list");
  const archive = await api("POST", "/content-groups", { name: "Archive" });
  const news = await api("POST", "/tags", { label: "News", color: "blue" });
  const create = (title, group = posts.id) =>
    api("POST", "/content-pieces", { title, slug: title.toLowerCase().replaceAll(" ", "-"), tags: [], members: [], contentGroupId: group });
  for (const number of [1, 2, 3, 4, 5]) await create(`Piece ${number}`);
  await page.reload();

  const rows = page.getByRole("list", { name: "Pieces" });
  const titles = async () => await rows.locator(".name").allInnerTexts();
  const inGroup = async (group) => (await api("GET", `/content-pieces/list?contentGroupId=${group}`)).map((piece) => piece.title);

  // A change by another person appears by itself.
  await until(titles, ["Piece 5", "Piece 4", "Piece 3", "Piece 2", "Piece 1"]);
  await create("Piece 6");
  await until(titles, ["Piece 6", "Piece 5", "Piece 4", "Piece 3", "Piece 2", "Piece 1"]);

  // A range of rows is selected with the pointer, gets a tag, and the filter by this tag shows it.
  await rows.getByText("Piece 6").hover();
  await page.getByRole("checkbox", { name: "Select Piece 6" }).click();
  await page.getByRole("checkbox", { name: "Select Piece 4" }).click({ modifiers: ["Shift"] });
  await page.getByText("3 selected").waitFor();
  await accessible(page, "a selection");
  await page.getByRole("button", { name: "Add tag…" }).click();
  await accessible(page, "a choice of tags");
  await page.getByRole("dialog").getByRole("button", { name: "News" }).click();
  await page.getByText("3 pieces: tag News").waitFor();
  await until(async () => (await api("GET", `/content-pieces/list?tagId=${news.id}`)).length, 3);
  await page.getByRole("button", { name: "End the selection" }).click();
  await page.getByRole("combobox", { name: "Tag", exact: true }).selectOption("News");
  await until(async () => (await titles()).sort(), ["Piece 4", "Piece 5", "Piece 6"]);
  assert.ok(page.url().includes(`tag=${news.id}`));
  await page.reload();
  await until(async () => (await titles()).length, 3);
  await page.getByRole("combobox", { name: "Tag", exact: true }).selectOption("Any tag");

  // Pieces are selected with the keyboard, and moved.
  await page.getByRole("link", { name: /^Piece 1/ }).focus();
  await page.keyboard.press("x");
  await page.keyboard.press("ArrowUp");
  await page.waitForFunction(() => document.activeElement?.textContent?.includes("Piece 2"));
  await page.keyboard.press("x");
  await page.getByText("2 selected").waitFor();
  await page.getByRole("button", { name: "Move to…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Archive" }).click();
  await until(async () => (await inGroup(archive.id)).sort(), ["Piece 1", "Piece 2"]);
  await page.keyboard.press("Escape");
  await page.getByRole("region", { name: "Selection" }).waitFor({ state: "hidden" });

  // A piece that someone has deleted meanwhile is reported, and the others are done.
  await page.getByRole("link", { name: /^Piece 6/ }).focus();
  await page.keyboard.press("x");
  await page.getByRole("checkbox", { name: "Select Piece 5" }).click();
  await page.route("**/content-pieces/publish", async (route) => {
    const [first] = await api("GET", "/content-pieces/list?slug=piece-6");
    if (route.request().postDataJSON().id === first?.id) await api("DELETE", `/content-pieces?id=${first.id}`);
    await route.continue();
  });
  await page.getByRole("region", { name: "Selection" }).getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByText(/Piece 6: There is nothing/).waitFor();
  await page.unroute("**/content-pieces/publish");
  assert.equal((await api("GET", "/content-pieces/list?slug=piece-5"))[0].publication.state, "published");
  await page.keyboard.press("Escape");

  // In its own order, a group is sorted with the pointer and with keys.
  await page.getByRole("link", { name: "Posts", exact: true }).click();
  await rows.getByText("Piece 5").dragTo(rows.getByText("Piece 3"));
  await page.getByRole("button", { name: "Sort by own order" }).click();
  assert.equal(await page.getByLabel("With the groups below").count(), 0, "a group without others");
  await until(titles, ["Piece 3", "Piece 4", "Piece 5"]);
  await rows.getByText("Piece 5").dragTo(rows.getByText("Piece 3"), { targetPosition: { x: 20, y: 2 } });
  await until(async () => await inGroup(posts.id), ["Piece 5", "Piece 3", "Piece 4"]);
  await until(titles, ["Piece 5", "Piece 3", "Piece 4"]);
  await page.getByRole("link", { name: /^Piece 5/ }).focus();
  await page.keyboard.press("Alt+ArrowDown");
  await until(async () => await inGroup(posts.id), ["Piece 3", "Piece 5", "Piece 4"]);
  await page.waitForFunction(() => document.activeElement?.textContent?.includes("Piece 5"));
  await page.keyboard.press("Alt+ArrowDown");
  await until(async () => await inGroup(posts.id), ["Piece 3", "Piece 4", "Piece 5"]);
  await page.keyboard.press("Alt+ArrowUp");
  await page.keyboard.press("Alt+ArrowUp");
  await until(async () => await inGroup(posts.id), ["Piece 5", "Piece 3", "Piece 4"]);

  // J and K go through the list with the focus, and Enter into the text.
  await page.getByRole("link", { name: /^Piece 5/ }).click();
  await page.locator(".ProseMirror").waitFor();
  await page.locator("h1").first().click();
  await page.keyboard.press("j");
  await page.waitForFunction(() => document.activeElement?.textContent?.includes("Piece 3"));
  await page.waitForFunction(() => document.querySelector("#title")?.value === "Piece 3");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.classList.contains("ProseMirror"));
  await page.keyboard.press("Escape");

  // A piece is dropped on a group of the tree, and a group on another one.
  const tree = page.getByRole("navigation");
  await rows.getByText("Piece 4").dragTo(tree.getByRole("link", { name: "Archive", exact: true }));
  await until(async () => (await inGroup(archive.id)).includes("Piece 4"), true);
  await until(titles, ["Piece 5", "Piece 3"]);
  await tree.getByRole("link", { name: "Archive", exact: true }).dragTo(tree.getByRole("link", { name: "Posts", exact: true }));
  await until(async () => (await api("GET", `/content-groups?id=${archive.id}`)).ancestors, [posts.id]);

  // The board has a column for each group.
  await page.getByRole("button", { name: "Board", exact: true }).click();
  const column = (name) => page.getByRole("region", { name, exact: true });
  const cards = (name) => async () => await column(name).locator(".name").allInnerTexts();
  await until(cards("Posts"), ["Piece 5", "Piece 3"]);
  await until(async () => (await cards("Posts / Archive")()).length, 3);
  await accessible(page, "a board");
  await column("Posts").getByText("Piece 3").dragTo(column("Posts / Archive").locator("[data-card]").first(), { targetPosition: { x: 20, y: 3 } });
  await until(async () => (await cards("Posts / Archive")())[0], "Piece 3");
  await until(async () => (await inGroup(archive.id))[0], "Piece 3");
  await page.getByRole("link", { name: /^Piece 5/ }).focus();
  await page.keyboard.press("Alt+ArrowRight");
  await until(async () => (await inGroup(posts.id)).length, 0);
  await until(async () => (await cards("Posts / Archive")()).length, 5);
  await page.setViewportSize(phone);
  await accessible(page, "a board on a phone");
  await page.setViewportSize({ width: 1280, height: 800 });
  await column("Posts / Archive").getByText("Piece 3").click();
  await page.locator(".ProseMirror").waitFor();
  await page.goBack();
  await until(async () => (await cards("Posts / Archive")()).length, 5);
  await page.getByRole("button", { name: "List", exact: true }).click();

  // Published pieces are found by their state, and taken off the site together.
  await page.getByRole("link", { name: "All pieces" }).click();
  await page.getByRole("combobox", { name: "State", exact: true }).selectOption("Published");
  await until(titles, ["Piece 5"]);
  assert.ok(page.url().includes("state=published"), page.url());
  await page.getByRole("button", { name: "Select pieces" }).click();
  await page.getByRole("checkbox", { name: "Select Piece 5" }).click();
  await page.getByRole("region", { name: "Selection" }).getByRole("button", { name: "Unpublish" }).click();
  await page.getByRole("dialog", { name: "Take 1 piece off the site?" }).getByRole("button", { name: "Unpublish" }).click();
  await page.getByText("No piece matches the filters.").waitFor();
  assert.deepEqual(await api("GET", "/content-pieces/list?state=published"), []);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await until(async () => (await titles()).length, 5);

  // A whole selection goes to the trash, and comes back.
  await page.getByRole("button", { name: "Select pieces" }).click();
  for (const title of ["Piece 1", "Piece 2"]) await page.getByRole("checkbox", { name: `Select ${title}` }).click();
  await page.getByRole("region", { name: "Selection" }).getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await until(async () => (await titles()).sort(), ["Piece 3", "Piece 4", "Piece 5"]);
  assert.equal((await api("GET", "/content-pieces/trash")).length, 3);
  await page.getByText("2 pieces are in the trash.").waitFor();
  await accessible(page, "a deletion that can be undone");
  await page.getByRole("button", { name: "Undo" }).click();
  await until(async () => (await titles()).sort(), ["Piece 1", "Piece 2", "Piece 3", "Piece 4", "Piece 5"]);
  await page.getByText("in the trash.").waitFor({ state: "hidden" });
  assert.equal((await api("GET", "/content-pieces/trash")).length, 1);
});
