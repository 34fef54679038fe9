// The example of a blog: its pages, the search, and a preview of a draft.
import assert from "node:assert/strict";
import { accessibleAtBothWidths, api, open, run, served } from "./harness.mjs";

const site = process.env.PAGE_URL;

await run(async (browser) => {
  await served(site);
  const page = await open(browser);
  const follow = async (name) => await page.getByRole("link", { name }).first().click();
  await page.goto(site);
  await accessibleAtBothWidths(page, "list of posts");
  await follow("The harbour at dawn");
  await page.getByRole("heading", { level: 1, name: "The harbour at dawn" }).waitFor();
  const srcset = await page.locator("article img").getAttribute("srcset");
  const images = srcset.split(", ").map((one) => one.split(" ")[0]);
  assert.equal(images.length, 3);
  for (const image of images) assert.equal((await fetch(image)).headers.get("content-type"), "image/webp", image);
  await accessibleAtBothWidths(page, "post");
  await follow("#Harbour");
  await page.getByRole("link", { name: "Ferry times" }).waitFor();
  await follow("Deutsch");
  await follow("Der Hafen am Morgen");
  await page.getByText("bevor die Stadt erwacht").waitFor();

  // The search.
  await follow("Search");
  await page.getByLabel("Words").fill("timetable");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("link", { name: "Ferry times" }).waitFor();
  await accessibleAtBothWidths(page, "search");
  await page.getByLabel("Words").fill("mountains");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("Nothing was found.").waitFor();
  await page.getByLabel("Words").fill("Stadt");
  await page.getByLabel("Language").selectOption("de");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("link", { name: "Der Hafen am Morgen" }).click();
  await page.getByText("bevor die Stadt erwacht").waitFor();
  await page.goto(`${site}/search/?q=mountains`);
  await page.getByText("Nothing was found.").waitFor();

  // A preview of a draft.
  const [posts] = await api("GET", "/content-groups/list");
  await api("PUT", "/content-groups", { id: posts.id, previewUrl: `${site}/preview?id={id}&token={token}` });
  const fields = { title: "A draft", slug: "a-draft", tags: [], members: [], contentGroupId: posts.id };
  const { id } = await api("POST", "/content-pieces", { ...fields, content: "<p>Not <b>yet</b> public</p>" });
  const preview = await api("POST", "/content-pieces/preview", { id });
  await page.goto(preview.url);
  await page.getByText("Not yet public").waitFor();
  assert.equal(new URL(page.url()).search, "");
  await page.goto(`${site}/preview?id=${id}&token=galley_wrong`);
  await page.getByText("The preview is not available").waitFor();
});
