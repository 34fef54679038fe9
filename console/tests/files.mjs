// Files with scripts in them: nothing runs at their public addresses.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { launch, until, url } from "./harness.mjs";

const token = process.env.GALLEY_TOKEN;
const call = "console.log('it ran')";
const html = `<!DOCTYPE html><html><body onload="${call}"><script>${call}</script><img src=x onerror="${call}"></body></html>`;
const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="${call}"><script>${call}</script></svg>`;
const gif = "GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

const files = {
  "page.html": html,
  "page.png": html,
  "page.txt": `\n\n${html}`,
  "page.svg": svg,
  "page.xhtml": `<html xmlns="http://www.w3.org/1999/xhtml"><script>${call}</script></html>`,
  "page.xml": `<?xml version="1.0"?><?xml-stylesheet href="data:text/xml,x"?><x:script xmlns:x="http://www.w3.org/1999/xhtml">${call}</x:script>`,
  "behind.gif": gif + html,
  "comment.gif": gif.replace(";", `!\xfe\x7f${html.slice(0, 127)}\0;`),
  "script.js": call,
  "page.pdf": `%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(${call})>>>>endobj\ntrailer<</Root 1 0 R>>`,
};

const browser = await launch();
const context = await browser.newContext({ acceptDownloads: true });
const page = await context.newPage();
const ran = [];
page.on("console", (message) => message.text().includes("it ran") && ran.push(page.url()));
page.on("dialog", (dialog) => ran.push(dialog.message()));

let embedded = "";
const server = createServer((_, response) => {
  response.setHeader("Content-Type", "text/html");
  response.end(`<iframe src="${embedded}"></iframe><object data="${embedded}"></object><embed src="${embedded}">
    <img src="${embedded}"><script src="${embedded}"></script>`);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const site = `http://127.0.0.1:${server.address().port}/`;

for (const [name, text] of Object.entries(files)) {
  const body = Buffer.from(text, "latin1");
  const headers = { authorization: `Bearer ${token}`, prefer: "return=representation" };
  const response = await fetch(`${url}/assets?filename=${name}`, { method: "POST", headers, body });
  assert.equal(response.status, 201, name);
  const asset = await response.json();
  for (const address of [asset.url, `${asset.url}?w=320`]) {
    // A download ends the navigation with an error.
    await page.goto(address).catch((error) => assert.match(error.message, /Download is starting|ERR_ABORTED/));
    await page.waitForTimeout(50);
  }
  // A page without a policy of its own that embeds the file in each way.
  embedded = asset.url;
  await page.goto(site);
  await page.waitForTimeout(100);
}
assert.deepEqual(ran, []);
// The same page notices what does run.
embedded = `data:text/javascript,${encodeURIComponent(call)}`;
await page.goto(site);
await until(() => ran.length > 0, true);
await browser.close();
server.close();
