// Files are dropped, compared, imported, and imported again.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, accessibleAtBothWidths, api, open, run, signIn } from "./harness.mjs";

const folder = mkdtempSync(join(tmpdir(), "galley-import-"));
mkdirSync(join(folder, "news"));
mkdirSync(join(folder, ".git"));
const write = (name, text) => writeFileSync(join(folder, name), text);
write("harbour.md", "---\ntitle: The harbour\ntags: [News]\n---\n\nText with **bold** and <video src=x></video>.\n");
write("news/ferry.md", "---\ntitle: The ferry\ndraft: true\n---\n\nIt never came.\n");
write("news/ferry.de.md", "---\ntitle: Die Fähre\n---\n\nSie kam nie.\n");
write("broken.md", "---\ntitle: [\n---\n");
write("photo.png", "x");
write("tool.sh", "x");
// The smallest GIF, and a second copy of it.
const gif = Buffer.from("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=", "base64");
mkdirSync(join(folder, "images"));
for (const name of ["images/a b.gif", "images/copy.gif"]) writeFileSync(join(folder, name), gif);
write("news/menu.pdf", "%PDF-1.4\n%%EOF\n");
write("images.md", "---\ntitle: Images\ncover: /images/copy.gif\n---\n\n![A](images/a%20b.gif) [Menu](news/menu.pdf)\n");
write(".git/config.md", "not a document");
for (let number = 0; number < 120; number += 1) write(`post-${number}.md`, `# Post ${number}\n\nText.\n`);

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  await page.getByRole("link", { name: "Import files" }).click();
  await page.getByRole("heading", { level: 1, name: "Import" }).waitFor();
  const count = (outcome) => page.getByRole("button", { name: new RegExp(`^${outcome}: `) });
  const all = async () => {
    for (let found = 0, number = 1; ; number += 1) {
      const list = await api("GET", `/content-pieces/list?perPage=100&page=${number}`);
      found += list.length;
      if (list.length < 100) return found;
    }
  };

  // A folder is compared, and nothing is changed.
  await page.getByLabel("Create groups from folders").check();
  await page.getByLabel("Languages").fill("en, de");
  await page.getByLabel("Tags for all").fill("Imported");
  await page.getByLabel("Choose a folder").setInputFiles(folder);
  await page.getByText(/Nothing is changed yet\./).waitFor();
  await page.getByText("2 images and files will be uploaded.").waitFor();
  assert.equal(await count("new").innerText(), "new: 123");
  assert.equal(await count("changed").innerText(), "changed: 1");
  await page.getByText(/broken\.md:2: /).waitFor();
  await page.getByText(/Left out: 1 × \*\.sh files/).waitFor();
  await page.getByText(/Left out: 1 × files to which no document refers/).waitFor();
  await page.getByText(/Lost: 1 × <video>/).waitFor();
  await accessibleAtBothWidths(page, "the plan of an import");
  assert.equal(await all(), 0);

  // The import goes on while another page is shown.
  await page.getByRole("button", { name: "Import 124 pieces" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Tags" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Import", exact: true }).click();
  await page.getByText("123 created, 1 updated").waitFor();
  await page.getByText("2 files are uploaded.").waitFor();
  await accessible(page, "the report of an import");
  assert.equal(await all(), 123);
  const [illustrated] = await api("GET", "/content-pieces/list?slug=images");
  const stored = await api("GET", `/content-pieces?id=${illustrated.id}&content=true`);
  const assets = new Map((await api("GET", "/assets/list")).map((asset) => [asset.filename, asset]));
  assert.equal(assets.size, 2);
  const picture = assets.get("a b.gif") ?? assets.get("copy.gif");
  const texts = JSON.stringify(stored.content);
  assert.ok(texts.includes(picture.url) && texts.includes(assets.get("menu.pdf").url), texts);
  assert.equal(stored.coverUrl, picture.url);
  assert.ok(Buffer.from(await (await fetch(picture.url)).arrayBuffer()).equals(gif));
  const [ferry] = await api("GET", "/content-pieces/list?slug=ferry");
  assert.deepEqual([ferry.title, ferry.publication.state, ferry.variants, ferry.tags.map((tag) => tag.label)], ["The ferry", "draft", ["de"], ["Imported"]]);
  const [harbour] = await api("GET", "/content-pieces/list?slug=harbour");
  assert.equal(harbour.publication.state, "published");
  assert.deepEqual(harbour.tags.map((tag) => tag.label).sort(), ["Imported", "News"]);

  // A second import, dropped as files, changes only what has changed. An edited piece stays.
  await api("PUT", "/content-pieces", { id: harbour.id, title: "Edited" });
  write("harbour.md", "---\ntitle: Changed at the source\n---\n\nText.\n");
  write("post-1.md", "# Post 1\n\nMore text.\n");
  const box = await page.locator(".drop").boundingBox();
  const inspector = await page.context().newCDPSession(page);
  const data = { items: [], files: ["harbour.md", "post-1.md", "post-2.md"].map((name) => join(folder, name)), dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) {
    await inspector.send("Input.dispatchDragEvent", { type, x: box.x + 40, y: box.y + 20, data });
  }
  await page.getByText(/Nothing is changed yet\./).waitFor();
  assert.equal(await count("changed").innerText(), "changed: 1");
  assert.equal(await count("unchanged").innerText(), "unchanged: 1");
  await count("edited on both sides").click();
  assert.equal(await page.getByRole("row").count(), 2);
  await page.getByRole("button", { name: "Import 1 piece" }).click();
  await page.getByText("0 created, 1 updated").waitFor();
  assert.equal((await api("GET", `/content-pieces?id=${harbour.id}`)).title, "Edited");

  // The choice to overwrite compares once more.
  await page.getByLabel(/Overwrite pieces/).check();
  await page.getByRole("button", { name: "Import 1 piece" }).click();
  await page.getByText("0 created, 1 updated").waitFor();
  assert.equal((await api("GET", `/content-pieces?id=${harbour.id}`)).title, "Changed at the source");

  // The images are assets now, so nothing is changed or uploaded.
  await page.getByLabel("Choose a folder").setInputFiles(folder);
  await page.getByText("There is nothing to import.").waitFor();
  assert.equal(await page.getByText(/will be uploaded/).count(), 0);

  // An export has all pieces, and a further import of it changes nothing.
  const download = page.waitForEvent("download");
  await page.getByRole("combobox", { name: "Group to export" }).selectOption("Posts");
  await page.getByRole("button", { name: "Export", exact: true }).click();
  const archive = join(folder, "archive.zip");
  await (await download).saveAs(archive);
  const exported = mkdtempSync(join(tmpdir(), "galley-export-"));
  execFileSync("python3", ["-m", "zipfile", "-e", archive, exported]);
  const names = readdirSync(exported, { recursive: true }).filter((name) => name.endsWith(".md"));
  assert.equal(names.length, 124);
  assert.ok(names.includes("news/ferry.de.md"));
  assert.match(readFileSync(join(exported, "news/ferry.md"), "utf8"), /^---\nid: "cp_.*"\ntitle: "The ferry"\n[^]*draft: true\n[^]*---\n\nIt never came\.\n$/);
  await page.getByLabel("Tags for all").fill("");
  await page.getByLabel("Choose a folder").setInputFiles(exported);
  await page.getByText("There is nothing to import.").waitFor();
  assert.equal(await count("unchanged").innerText(), "unchanged: 124");
});
