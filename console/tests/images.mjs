// Images and files: uploads into texts and covers, their failures, and the library.
import assert from "node:assert/strict";
import { crc32, deflateSync } from "node:zlib";
import { accessible, accessibleAtBothWidths, api, clickEnd, desk, open, phone, run, saved, signIn, until, url } from "./harness.mjs";

/** Returns a PNG file of one color. A noisy one can't be compressed. */
function png(width, height, color, isNoisy = false) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const bytes = Buffer.alloc(body.length + 8);
    bytes.writeUInt32BE(data.length);
    body.copy(bytes, 4);
    bytes.writeUInt32BE(crc32(body), body.length + 4);
    return bytes;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8);
  const rows = Buffer.alloc(height * (width * 3 + 1));
  for (let at = 0; at < rows.length; at += 1) {
    const x = at % (width * 3 + 1);
    if (x > 0) rows[at] = isNoisy ? Math.random() * 256 : color[(x - 1) % 3];
  }
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** Returns an EXIF segment with an orientation and a position. */
function exif(orientation) {
  const tiff = Buffer.alloc(8 + 2 + 24 + 4 + 2 + 24 + 4 + 24);
  tiff.write("II*\0", 0, "latin1");
  tiff.writeUInt32LE(8, 4);
  const entry = (at, tag, type, count, value) => {
    tiff.writeUInt16LE(tag, at);
    tiff.writeUInt16LE(type, at + 2);
    tiff.writeUInt32LE(count, at + 4);
    tiff.writeUInt32LE(value, at + 8);
  };
  tiff.writeUInt16LE(2, 8);
  entry(10, 0x0112, 3, 1, orientation);
  entry(22, 0x8825, 4, 1, 38);
  tiff.writeUInt16LE(2, 38);
  entry(40, 1, 2, 2, "N".charCodeAt(0));
  entry(52, 2, 5, 3, 68);
  for (const [at, value] of [53, 1, 33, 1, 14, 1].entries()) tiff.writeUInt32LE(value, 68 + at * 4);
  const content = Buffer.concat([Buffer.from("Exif\0\0", "latin1"), tiff]);
  const head = Buffer.from([0xff, 0xe1, 0, 0]);
  head.writeUInt16BE(content.length + 2, 2);
  return Buffer.concat([head, content]);
}

/** Returns a JPEG file with its location, taken with a camera on its side. */
async function photo(page) {
  const plain = await page.evaluate(async () => {
    const canvas = new OffscreenCanvas(60, 40);
    canvas.getContext("2d").fillRect(0, 0, 30, 20);
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg" })).arrayBuffer());
    return [...bytes];
  });
  // The segment of JFIF stays the first one.
  const end = 4 + plain[4] * 256 + plain[5];
  return Buffer.concat([Buffer.from(plain.slice(0, end)), exif(6), Buffer.from(plain.slice(end))]);
}

/** Drops files at a point of an element. */
async function drop(page, target, files, position = { x: 2, y: 4 }) {
  const box = await target.boundingBox();
  const point = { x: box.x + position.x, y: box.y + position.y };
  const list = files.map(({ name, type, bytes }) => ({ name, type, text: bytes.toString("base64") }));
  await page.evaluate(
    ({ list, point }) => {
      const data = new DataTransfer();
      for (const { name, type, text } of list) {
        data.items.add(new File([Uint8Array.from(atob(text), (character) => character.charCodeAt(0))], name, { type }));
      }
      const element = document.elementFromPoint(point.x, point.y);
      for (const type of ["dragenter", "dragover", "drop"]) {
        element.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data, clientX: point.x, clientY: point.y }));
      }
    },
    { list, point },
  );
}

await run(async (browser) => {
  const page = await open(browser);
  await signIn(page);
  const [group] = await api("GET", "/content-groups/list");
  const image = (name, width = 64, height = 40, color = [20, 90, 180]) => ({ name, type: "image/png", bytes: png(width, height, color) });
  const assets = async () => await api("GET", "/assets/list");
  const named = async (name) => (await assets()).filter((asset) => asset.filename === name);
  let made = 0;
  /** Creates a piece, and opens it. */
  const piece = async (content, fields = {}) => {
    const title = `Piece ${(made += 1)}`;
    const body = { title, slug: `piece-${made}`, tags: [], members: [], contentGroupId: group.id, content, ...fields };
    const { id } = await api("POST", "/content-pieces", body);
    await page.goto(`${url}/console/${workspace}/pieces/${id}`);
    await page.locator(".ProseMirror").waitFor();
    const stored = async () => await api("GET", `/content-pieces?id=${id}&content=true`);
    return { id, title, stored, blocks: async () => (await stored()).content.content };
  };
  const workspace = /ws_[0-9a-z]+/.exec(page.url())[0];
  const text = page.locator(".ProseMirror");
  const placeholders = page.locator(".ProseMirror .placeholder");
  const tools = page.getByRole("toolbar", { name: "Image" });
  const types = (blocks) => blocks.map((block) => block.type);
  const isUpload = (request) => request.method() === "POST" && new URL(request.url()).pathname === "/assets";

  // One route for the whole test: the end of a page's last route stops the interception of requests,
  // which may meet the requests of a reload.
  let gate = Promise.resolve();
  await page.route((address) => address.pathname === "/assets", async (route) => {
    if (isUpload(route.request())) await gate;
    // The page may be another one by now.
    await route.fallback().catch(() => {});
  });

  /** Holds uploads back until the returned function is called. */
  const hold = () => {
    let release;
    gate = new Promise((done) => (release = done));
    return release;
  };

  // A drop of several files: at most three uploads at once, and the order of the files.
  const dropped = await piece("<p>First.</p><p>Second.</p>");
  let started = 0;
  page.on("request", (request) => (started += isUpload(request) ? 1 : 0));
  let release = hold();
  const names = ["one.png", "two.png", "three.png", "four.png", "five.png"];
  await drop(page, text.getByText("Second."), names.map((name, at) => image(name, 40 + at, 30)));
  await until(async () => await placeholders.count(), 5);
  await until(() => started, 3);
  await page.getByText("Waiting").first().waitFor();
  assert.ok((await placeholders.first().locator("canvas").boundingBox()).width > 0, "the preview of a file");
  await accessible(page, "uploads in a text");

  // The text can be edited and saved meanwhile, without a trace of the uploads.
  await clickEnd(page, "First.");
  await page.keyboard.type(" Typed.");
  await saved(page);
  const during = JSON.stringify(await dropped.stored());
  assert.ok(during.includes("First. Typed."), during);
  assert.ok(!/blob:|data:image|"image"/.test(during), during);
  assert.ok(!/blob:|data:/.test(await page.locator("body").innerHTML()));
  assert.equal(started, 3);
  release();
  await until(async () => await placeholders.count(), 0);
  await saved(page);
  await until(async () => types(await dropped.blocks()), ["paragraph", "image", "image", "image", "image", "image", "paragraph"]);
  const images = (await dropped.blocks()).filter((block) => block.type === "image");
  assert.deepEqual(images.map(({ attrs }) => attrs.src.split("/").at(-1)), names);
  assert.deepEqual(images.map(({ attrs }) => [attrs.width, attrs.height]), names.map((_, at) => [40 + at, 30]));
  assert.deepEqual(await assets().then((all) => all.map((asset) => asset.contentGroupId)), names.map(() => group.id));
  await until(async () => await text.locator("img").evaluateAll((all) => all.filter((one) => one.naturalWidth > 0).length), 5);

  // A reload during an upload leaves the text as it was, and a merge keeps the place of one.
  const reloaded = await piece("<p>Before.</p><p>Middle.</p><p>After.</p>");
  release = hold();
  await drop(page, text.getByText("After."), [image("lost.png")]);
  await placeholders.waitFor();
  await clickEnd(page, "Before.");
  await page.keyboard.type(" More.");
  await saved(page);
  await page.reload();
  release();
  await text.getByText("Before. More.").waitFor();
  assert.equal(await placeholders.count(), 0);
  assert.deepEqual(types(await reloaded.blocks()), ["paragraph", "paragraph", "paragraph"]);
  release = hold();
  await drop(page, text.getByText("After."), [image("merged.png")]);
  await placeholders.waitFor();
  await api("PUT", "/content-pieces", { id: reloaded.id, content: "<p>New.</p><p>Before. More.</p><p>Middle.</p><p>After.</p>" });
  await text.getByText("New.").waitFor();
  release();
  await until(async () => types(await reloaded.blocks()), ["paragraph", "paragraph", "paragraph", "image", "paragraph"]);

  // A paste of an image, in an empty paragraph: the next words are behind it.
  const pasted = await piece("<p>Start.</p>");
  await clickEnd(page, "Start.");
  await page.keyboard.press("Enter");
  await page.evaluate(async (bytes) => {
    const blob = new Blob([new Uint8Array(bytes)], { type: "image/png" });
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
  }, [...image("x").bytes]);
  await page.keyboard.press("Control+v");
  await text.locator("img").waitFor();
  await page.keyboard.type("Behind.");
  await saved(page);
  await until(async () => types(await pasted.blocks()), ["paragraph", "image", "paragraph"]);
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await until(async () => await text.locator("img").count(), 0);
  await page.keyboard.press("Control+y");
  await page.keyboard.press("Control+y");

  // Pasted pages keep the addresses of their images, also if the clipboard has files as well.
  const page2 = await piece("<p>Start.</p>");
  await clickEnd(page, "Start.");
  started = 0;
  await page.evaluate((bytes) => {
    const data = new DataTransfer();
    data.setData("text/html", '<p>Words</p><img src="/docs-of-another-site.png" alt="Other">');
    data.items.add(new File([new Uint8Array(bytes)], "image.png", { type: "image/png" }));
    document.querySelector(".ProseMirror").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
  }, [...image("x").bytes]);
  await until(async () => (await page2.blocks()).find((block) => block.type === "image")?.attrs.src, "/docs-of-another-site.png");
  assert.equal(started, 0, "a pasted page uploads nothing");

  // Progress, and a cancellation.
  const slow = await piece("<p>Slow.</p>");
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const throttle = async (rate) => await session.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: rate });
  await throttle(60_000);
  const noisy = { name: "noisy.png", type: "image/png", bytes: png(400, 300, [0, 0, 0], true) };
  await drop(page, text.getByText("Slow."), [noisy]);
  await page.waitForFunction(() => {
    const value = document.querySelector(".placeholder progress")?.value;
    return value > 0 && value < 100;
  });
  await placeholders.getByText(/^[1-9]\d? %$/).waitFor();
  await placeholders.getByRole("button", { name: "Cancel: noisy.png" }).click();
  await until(async () => await placeholders.count(), 0);
  await throttle(-1);
  assert.equal(await page.evaluate(() => document.activeElement.classList.contains("ProseMirror")), true);
  assert.deepEqual(await named("noisy.png"), []);
  assert.deepEqual(types(await slow.blocks()), ["paragraph"]);

  // The server can't be reached: the reason, and a repeat.
  await page.context().setOffline(true);
  await drop(page, text.getByText("Slow."), [image("offline.png")]);
  await placeholders.getByText("The server can't be reached.").waitFor();
  await accessible(page, "a failed upload");
  await page.context().setOffline(false);
  await placeholders.getByRole("button", { name: "Try again: offline.png" }).click();
  await until(async () => types(await slow.blocks()), ["image", "paragraph"]);
  assert.equal((await named("offline.png")).length, 1);

  // A lost response: the repeat creates no second asset.
  let lost = 0;
  await page.route("**/assets?*", async (route) => {
    if (!isUpload(route.request()) || lost > 0) return await route.continue();
    lost += 1;
    await route.fetch();
    await route.abort();
  });
  await drop(page, text.getByText("Slow."), [image("lost-response.png")], { x: 300, y: 20 });
  await placeholders.getByRole("button", { name: "Try again" }).click();
  await until(async () => types(await slow.blocks()), ["image", "paragraph", "image", "paragraph"]);
  assert.equal(lost, 1);
  assert.equal((await named("lost-response.png")).length, 1, "the repeat of an upload creates nothing");
  await page.unroute("**/assets?*");

  // The limits of the server, as it states them.
  for (const [reason, detail, shown] of [
    ["payload_too_large", "an asset may have at most 25000000 bytes", "this server takes up to 25 MB"],
    ["asset_storage_exceeded", "the assets of a workspace may have at most 1000000000 bytes together", "is full (1 GB)"],
    ["insufficient_permissions", "the token lacks assets:write", "lacks the permission assets:write"],
  ]) {
    const status = reason === "insufficient_permissions" ? 403 : 413;
    await page.route("**/assets?*", async (route) => {
      if (!isUpload(route.request())) return await route.continue();
      await route.fulfill({ status, contentType: "application/problem+json", body: JSON.stringify({ reason, detail, status }) });
    });
    await drop(page, text.getByText("Slow."), [image("large.png")]);
    await placeholders.getByText(shown).waitFor();
    await placeholders.getByRole("button", { name: "Remove: large.png" }).click();
    await until(async () => await placeholders.count(), 0);
    await page.unroute("**/assets?*");
  }

  // Alternative text with the keyboard alone, then another image of the library.
  const [asset] = await named("one.png");
  await api("PUT", "/assets", { id: asset.id, alt: "A blue field" });
  const texts = await piece("<p>Start.</p>");
  await clickEnd(page, "Start.");
  await page.keyboard.press("Enter");
  await page.keyboard.type("/image");
  await page.getByRole("option", { name: "Image" }).click();
  const picker = page.getByRole("dialog", { name: "Image" });
  await accessibleAtBothWidths(page, "the choice of an image");
  await picker.getByLabel("From the library", { exact: true }).last().fill("ONE");
  await until(async () => await picker.locator("li button").count(), 1);
  await picker.getByRole("button", { name: "one.png" }).click();
  await until(async () => (await texts.blocks()).find((block) => block.type === "image")?.attrs.alt, "A blue field");
  await text.locator("img").click();
  await tools.waitFor();
  await accessible(page, "the tools of an image");
  await text.focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("End");
  await page.keyboard.type(", at night");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.classList.contains("ProseMirror")), true);
  await until(async () => (await texts.blocks()).find((block) => block.type === "image").attrs.alt, "A blue field, at night");
  assert.equal(await tools.getByRole("link", { name: "Open the original" }).getAttribute("href"), asset.url);
  await tools.getByRole("button", { name: "Replace" }).click();
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), picker.getByText("Upload from this device").click()]);
  assert.equal(await chooser.element().getAttribute("accept"), "image/*");
  const other = image("replacement.png", 50, 50);
  await chooser.setFiles({ name: other.name, mimeType: other.type, buffer: other.bytes });
  await until(async () => (await texts.blocks()).filter((block) => block.type === "image").map(({ attrs }) => [attrs.src.split("/").at(-1), attrs.alt, attrs.width]), [["replacement.png", "A blue field, at night", 50]]);
  assert.equal(await page.evaluate(() => document.activeElement.classList.contains("ProseMirror")), true);
  await tools.getByRole("button", { name: "Remove" }).click();
  await until(async () => (await texts.blocks()).filter((block) => block.type === "image").length, 0);

  // Another file is a link.
  await clickEnd(page, "Start.");
  await page.keyboard.press("Enter");
  await page.keyboard.type("/file");
  const [files] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("option", { name: "File" }).click()]);
  await files.setFiles({ name: "menu.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4\n%%EOF\n") });
  const linked = async () => (await texts.blocks()).flatMap((block) => block.content ?? []).find((node) => node.text === "menu.pdf");
  await until(async () => (await linked())?.marks[0].type, "link");
  assert.equal((await linked()).marks[0].attrs.href, (await named("menu.pdf"))[0].url);

  // A photo with its location: the metadata are removed, but not the orientation.
  const located = await photo(page);
  const bytesOf = async (one) => Buffer.from(await (await fetch(one.url)).arrayBuffer());
  const picture = (name) => ({ name, type: "image/jpeg", bytes: located });
  const question = page.getByRole("dialog", { name: "The photo has its location" });
  const target = text.getByText("Start.");
  await drop(page, target, [picture("removed.jpg")]);
  await question.waitFor();
  await accessibleAtBothWidths(page, "the question about a location");
  await page.keyboard.press("Enter");
  await until(async () => (await named("removed.jpg")).length, 1);
  const [removed] = await named("removed.jpg");
  const cleaned = await bytesOf(removed);
  assert.ok(!cleaned.includes(Buffer.from([0x25, 0x88])), "the directory of the position");
  assert.ok(cleaned.length < located.length);
  assert.deepEqual([removed.width, removed.height], [40, 60], "the photo is upright");
  assert.ok(located.subarray(-200).equals(cleaned.subarray(-200)), "the image itself is the same");
  await drop(page, target, [picture("left-out.jpg")]);
  await question.getByRole("button", { name: "Cancel" }).click();
  await drop(page, target, [picture("kept.jpg")]);
  await question.getByRole("checkbox").check();
  await question.getByRole("button", { name: "Keep it" }).click();
  await until(async () => (await named("kept.jpg")).length, 1);
  assert.ok((await bytesOf((await named("kept.jpg"))[0])).equals(located));
  await drop(page, target, [picture("remembered.jpg")]);
  await until(async () => (await named("remembered.jpg")).length, 1);
  assert.ok((await bytesOf((await named("remembered.jpg"))[0])).equals(located));
  assert.deepEqual(await named("left-out.jpg"), []);

  // HEIC is reported before it is inserted as a link.
  const heic = { name: "phone.heic", type: "image/heic", bytes: Buffer.from("\0\0\0\x18ftypheic\0\0\0\0mif1heic", "latin1") };
  await drop(page, target, [heic]);
  await page.getByRole("dialog", { name: "Browsers don't show this photo" }).getByRole("button", { name: "Insert as a file" }).click();
  await text.getByRole("link", { name: "phone.heic" }).waitFor();

  // A cover: dropped, described, chosen from the library, and removed.
  const covered = await piece("<p>Text.</p>");
  await page.getByRole("button", { name: "Details" }).click();
  const cover = page.getByRole("group", { name: "Cover image" });
  await cover.scrollIntoViewIfNeeded();
  release = hold();
  await drop(page, cover.getByText("Drop or paste an image here"), [image("cover.png", 80, 60)]);
  await cover.getByRole("progressbar").waitFor();
  release();
  const coverOf = async () => {
    const { coverUrl, coverAlt, coverWidth } = await covered.stored();
    return [coverUrl?.split("/").at(-1) ?? null, coverAlt, coverWidth];
  };
  await until(coverOf, ["cover.png", null, "80"]);
  await cover.getByLabel("Cover image (alternative text)").fill("A quay");
  await until(coverOf, ["cover.png", "A quay", "80"]);
  await until(async () => await cover.locator("img").evaluate((one) => one.naturalWidth > 0), true);
  await accessibleAtBothWidths(page, "a cover");
  await cover.getByRole("button", { name: "Replace" }).click();
  await page.getByRole("dialog", { name: "Cover image" }).getByRole("button", { name: "one.png" }).click();
  await until(coverOf, ["one.png", "A blue field", "40"]);
  await cover.getByRole("button", { name: "Remove: Cover image" }).click();
  await until(coverOf, [null, null, null]);
  await page.getByRole("button", { name: "Details" }).click();

  // The library: an upload, its name, and the filters.
  await page.getByRole("navigation").getByRole("link", { name: "Assets", exact: true }).click();
  const grid = page.getByRole("list", { name: "Assets" });
  await grid.getByText("one.png").waitFor();
  const heading = page.getByRole("heading", { level: 1, name: "Assets" });
  release = hold();
  await drop(page, heading, [image("harbour.png", 120, 80), { name: "song.mp3", type: "audio/mpeg", bytes: Buffer.from("ID3\x04\0\0\0\0\0\0", "latin1") }]);
  await page.getByRole("region", { name: "Uploads" }).getByRole("progressbar", { name: "Upload of harbour.png" }).waitFor();
  await accessible(page, "uploads in the library");
  release();
  await grid.getByText("harbour.png").waitFor();
  await grid.getByText("song.mp3").waitFor();
  const shown = async () => (await grid.locator(".name").allInnerTexts()).sort();
  await page.getByLabel("Search by file name").fill("HARBOUR");
  await until(shown, ["harbour.png"]);
  await page.reload();
  await until(shown, ["harbour.png"]);
  await page.getByLabel("Search by file name").fill("");
  await page.getByRole("combobox", { name: "Type", exact: true }).selectOption("Documents and archives");
  await until(shown, ["menu.pdf"]);
  await page.getByRole("combobox", { name: "Type", exact: true }).selectOption("Images");
  await page.getByLabel("Unused only").check();
  await until(async () => (await shown()).includes("harbour.png") && !(await shown()).includes("two.png"), true);
  await page.getByLabel("Search by file name").fill("nothing of this name");
  await page.getByText("No asset matches.").waitFor();
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await grid.getByText("two.png").waitFor();
  await accessibleAtBothWidths(page, "the library");

  await grid.getByRole("link", { name: /harbour\.png/ }).click();
  const [harbour] = await named("harbour.png");
  await page.waitForURL(new RegExp(`/assets/${harbour.id}`));
  const pane = page.getByRole("complementary");
  await pane.getByText("No piece refers to it.").waitFor();
  await accessibleAtBothWidths(page, "an asset");
  await pane.getByLabel("File name").fill("quay.png");
  await pane.getByLabel("Alternative text").fill("A quay");
  await pane.getByRole("button", { name: "Save" }).click();
  await pane.getByRole("heading", { name: "quay.png" }).waitFor();
  const changed = await api("GET", `/assets?id=${harbour.id}`);
  assert.deepEqual([changed.filename, changed.alt], ["quay.png", "A quay"]);
  // Another person changes it meanwhile: nothing is overwritten unseen.
  await pane.getByLabel("Alternative text").fill("Mine");
  await api("PUT", "/assets", { id: harbour.id, filename: "theirs.png" });
  await pane.getByRole("button", { name: "Save" }).click();
  await pane.getByText("Another person has changed the asset meanwhile.").waitFor();
  assert.equal(await pane.getByLabel("File name").inputValue(), "theirs.png");
  await pane.getByRole("button", { name: "Save" }).click();
  await until(async () => (await api("GET", `/assets?id=${harbour.id}`)).alt, "Mine");
  await pane.getByRole("button", { name: "Copy the address" }).click();
  await until(async () => await page.evaluate(() => navigator.clipboard.readText()), (await api("GET", `/assets?id=${harbour.id}`)).url);

  // An asset in use: the pieces are named, and get the address of another file.
  await api("POST", "/variants", { key: "de", label: "German" });
  const used = `<p><a href="${harbour.url}">Link</a></p><img src="${harbour.url}?w=640" alt="x" width="120" height="80">`;
  const first = await piece(used, { coverUrl: harbour.url, coverWidth: "120", description: `See ${harbour.url}.`, customData: JSON.stringify({ image: harbour.url, other: 1 }) });
  await api("PUT", "/content-pieces", { id: first.id, variant: "de", title: "Hafen", description: `Siehe ${harbour.url}` });
  await api("POST", "/content-pieces/publish", { id: first.id });
  const second = await piece("<p>Other.</p>", { coverUrl: harbour.url });
  const address = `${url}/console/${workspace}/assets/${harbour.id}`;
  await page.goto(address);
  await pane.getByRole("link", { name: first.title }).waitFor();
  await pane.getByText(/current text, current text \(German\), published|current text \(German\)/).first().waitFor();
  await pane.getByRole("link", { name: second.title }).click();
  await text.getByText("Other.").waitFor();
  await page.goBack();
  await pane.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  const forced = page.getByRole("dialog").getByRole("button", { name: "Delete nevertheless" });
  await forced.waitFor();
  await page.getByRole("dialog").getByRole("link", { name: first.title }).waitFor();
  await accessible(page, "the deletion of an asset in use");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.equal((await api("GET", `/assets?id=${harbour.id}`)).id, harbour.id);

  // The second piece is changed by another person at each attempt, so it can't be replaced there.
  let disturbances = 0;
  await page.route("**/content-pieces", async (route) => {
    const request = route.request();
    if (request.method() === "PUT" && request.postDataJSON().id === second.id && disturbances < 2) {
      disturbances += 1;
      await api("PUT", "/content-pieces", { id: second.id, description: `Disturbance ${disturbances}` });
    }
    await route.continue();
  });
  await pane.getByRole("button", { name: "Replace" }).click();
  const dialog = page.getByRole("dialog", { name: /^Replace/ });
  await accessible(page, "a replacement");
  // An image is replaced by an image only.
  const [wrong] = await Promise.all([page.waitForEvent("filechooser"), dialog.getByText("Choose a file").click()]);
  await wrong.setFiles({ name: "wrong.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4\n%%EOF\n") });
  await dialog.getByText("wrong.pdf is no image that browsers show.").waitFor();
  assert.equal((await second.stored()).coverUrl, harbour.url);
  const [replacing] = await Promise.all([page.waitForEvent("filechooser"), dialog.getByText("Choose a file").click()]);
  const next = image("new-quay.png", 90, 45);
  await replacing.setFiles({ name: next.name, mimeType: next.type, buffer: next.bytes });
  await dialog.getByText("2 texts have the new address.").waitFor();
  await dialog.getByText("These show the old file until they are published again:").waitFor();
  await dialog.getByRole("alert").getByText(second.title).waitFor();
  await accessible(page, "the report of a replacement");
  const [replaced] = await named("new-quay.png");
  assert.equal(replaced.alt, "Mine");
  await dialog.getByRole("button", { name: "Try again" }).click();
  await dialog.getByText("1 text has the new address.").waitFor();
  await page.unroute("**/content-pieces");
  const result = await first.stored();
  assert.ok(!JSON.stringify([{ ...result, publication: null }, await second.stored()]).includes(harbour.url.split("/").at(-2)), JSON.stringify(result));
  assert.equal(result.coverUrl, replaced.url);
  assert.equal(result.coverWidth, "90");
  assert.equal(result.description, `See ${replaced.url}.`);
  assert.deepEqual(JSON.parse(result.customData), { image: replaced.url, other: 1 });
  const node = result.content.content.find((block) => block.type === "image");
  assert.deepEqual([node.attrs.src, node.attrs.alt, node.attrs.width, node.attrs.height], [`${replaced.url}?w=640`, "x", 90, 45]);
  const german = await api("GET", `/content-pieces?id=${first.id}&variant=de&content=true`);
  assert.equal(german.description, `Siehe ${replaced.url}`);
  // The fields that the variant does not have itself are still those of the piece.
  await api("PUT", "/content-pieces", { id: first.id, coverUrl: null });
  assert.equal((await api("GET", `/content-pieces?id=${first.id}&variant=de`)).coverUrl, null);
  await dialog.getByRole("link", { name: "Open the new asset" }).click();
  await pane.getByRole("heading", { name: "new-quay.png" }).waitFor();
  await page.keyboard.press("Escape");
  await page.waitForURL(/\/assets$/);

  // Several are deleted: one of them is in use, and needs a second decision.
  await grid.getByText("song.mp3").hover();
  await page.getByRole("checkbox", { name: "Select song.mp3" }).check();
  await page.getByRole("checkbox", { name: "Select two.png" }).check();
  const selection = page.getByRole("region", { name: "Selection" });
  await selection.getByText("2 selected").waitFor();
  await accessible(page, "a selection of assets");
  await selection.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog", { name: "Delete 2 assets?" }).getByRole("button", { name: "Delete" }).click();
  await selection.getByText("Pieces refer to it.").waitFor();
  // The deletions run at once, so the refused one may be reported before the other one ends.
  await until(async () => (await named("song.mp3")).length, 0);
  assert.equal((await named("two.png")).length, 1);
  await selection.getByRole("button", { name: "Delete the one in use…" }).click();
  await page.getByRole("dialog", { name: "Delete 1 asset?" }).getByRole("button", { name: "Delete nevertheless" }).click();
  await until(async () => (await named("two.png")).length, 0);
  await until(async () => (await shown()).includes("two.png"), false);

  // An asset that another person has deleted.
  const [five] = await named("five.png");
  await grid.getByText("five.png").waitFor();
  await api("DELETE", `/assets?id=${five.id}&force=true`);
  await page.goto(`${url}/console/${workspace}/assets/${five.id}`);
  await pane.getByText("The asset was deleted, or you no longer see it.").waitFor();
  await pane.getByRole("button", { name: "Back to the assets" }).click();

  // A person without the permission to upload.
  const { id: roleId } = await api("POST", "/roles", { name: "Writer", permissions: ["contentPieces:write", "contentGroups:read", "assets:read", "profile:read"] });
  const { id: member } = await api("POST", "/workspace-memberships", { email: "writer@example.org", name: "Writer", roleId });
  const invite = await api("POST", "/workspace-memberships/invite-link", { id: member });
  const writer = await open(browser, { viewport: phone, hasTouch: true, isMobile: true });
  await writer.goto(invite.url);
  await writer.getByRole("button").click();
  await writer.getByRole("link", { name: "Open the console" }).click();
  await writer.waitForURL(/\/console\/ws_/);
  await writer.goto(`${url}/console/${workspace}/assets`);
  await writer.getByText("that needs the permission assets:write").waitFor();
  await writer.getByRole("list", { name: "Assets" }).getByText("one.png").waitFor();
  assert.equal(await writer.getByText("Upload", { exact: true }).count(), 0);
  assert.equal(await writer.getByRole("checkbox", { name: /^Select/ }).count(), 0);
  await accessible(writer, "the library of a reader on a phone");
  await writer.getByRole("link", { name: /one\.png/ }).click();
  await writer.getByRole("complementary").getByText("Used in").waitFor();
  for (const name of ["Delete", "Replace", "Save"]) assert.equal(await writer.getByRole("button", { name, exact: true }).count(), 0, name);
  assert.equal(await writer.getByLabel("File name", { exact: true }).isEditable(), false);
  await writer.goto(`${url}/console/${workspace}/pieces/${slow.id}`);
  await drop(writer, writer.locator(".ProseMirror").getByText("Slow."), [image("forbidden.png")]);
  await writer.getByText("Your role lacks the permission assets:write.").waitFor();
  await accessible(writer, "a failed upload on a phone");

  // On a phone, an image is chosen with the toolbar.
  await writer.getByRole("button", { name: "Remove: forbidden.png" }).click();
  await writer.locator(".ProseMirror").getByText("Slow.").tap();
  await writer.getByRole("toolbar", { name: "Formatting" }).getByRole("button", { name: "Image" }).tap();
  await writer.getByRole("dialog", { name: "Image" }).getByRole("button", { name: "one.png" }).tap();
  await until(async () => (await slow.blocks()).some((block) => block.attrs?.src === asset.url), true);
  await page.setViewportSize(desk);
});
