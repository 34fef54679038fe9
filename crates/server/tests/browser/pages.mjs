// Checks the HTML pages in a real browser with axe-core: in the viewports of a phone and a desktop,
// with the light and the dark color scheme. Follows an invite from its link to the token, without
// scripts of the pages. In a copy of this folder:
//
//   npm install --no-save puppeteer-core axe-core
//   node pages.mjs <URL> <TOKEN> <OUTBOX> <DIRECTORY FOR SCREENSHOTS>
//
// URL is a running Galley without a mail server, TOKEN a token of an Admin, OUTBOX its `outbox`.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [url, token, outbox, directory] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
let problems = 0;

async function call(method, path, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  return answer.json();
}

const roles = await call("GET", "/roles/list");
let number = 0;

// Sends an invite, and returns the link in its mail.
async function invited() {
  number += 1;
  const email = `ann-${Date.now()}-${number}@example.org`;
  const role = roles.find((role) => role.name === "Editor");
  await call("POST", "/workspace-memberships", { email, name: "Ann Example", roleId: role.id });
  for (;;) {
    const files = existsSync(outbox) ? readdirSync(outbox) : [];
    for (const file of files.filter((file) => file.endsWith(".eml"))) {
      const mail = readFileSync(`${outbox}/${file}`, "utf8").replaceAll("=\r\n", "").replaceAll("=3D", "=");
      if (mail.includes(email)) return mail.match(/http\S+\/invite\?code=[\w-]+/)[0];
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// Checks a page for accessibility and width. `other` is the selector of third-party markup, which
// is not checked.
async function look(page, name, other) {
  await page.screenshot({ path: `${directory}/${name}.png`, fullPage: true });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  await page.evaluate(axe);
  const { violations } = await page.evaluate((other) => window.axe.run({ exclude: other ? [other] : [] }), other);
  for (const { id, help, nodes } of violations) {
    console.log(`${name}: ${id}: ${help}: ${nodes.map((node) => node.html).join(" ")}`);
  }
  if (wide) console.log(`${name}: wider than the window`);
  problems += violations.length + Number(wide);
}

for (const [device, width, height] of [["phone", 360, 740], ["desk", 1280, 900]]) {
  for (const scheme of ["light", "dark"]) {
    const page = await browser.newPage();
    // Bypasses the pages' content security policy, which allows no script, so that axe-core runs.
    await page.setBypassCSP(true);
    await page.setViewport({ width, height, isMobile: device === "phone", hasTouch: device === "phone" });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    const name = (what) => `${what}-${device}-${scheme}`;
    const link = await invited();
    await page.goto(link);
    await look(page, name("invite"));
    await page.$eval("#username", (input) => (input.value = "a b"));
    await Promise.all([page.waitForNavigation(), page.click("button")]);
    await look(page, name("refused"));
    await page.$eval("#username", (input, value) => (input.value = value), `ann-${Date.now()}`);
    // Submits the form with the keyboard.
    await page.focus("#username");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    await look(page, name("accepted"));
    const shown = await page.$eval(".secret", (element) => element.textContent.trim());
    const own = await fetch(`${url}/profile`, { headers: { authorization: `Bearer ${shown}` } });
    if (own.status !== 200) throw new Error(`the token is answered ${own.status}`);
    // A reload sends the form again.
    await page.reload();
    const again = await page.$eval(".secret", (element) => element.textContent.trim());
    if (again !== shown) throw new Error("the form sent again shows another token");
    await page.goto(link);
    await look(page, name("used"));
    await page.goto(`${url}/invite?code=x`);
    await look(page, name("unknown"));
    await page.goto(`${url}/problems/invite_ended`);
    await look(page, name("problem"));
    await page.goto(`${url}/problems`);
    await look(page, name("problems"));
    await page.goto(`${url}/docs`);
    await page.waitForSelector(".opblock");
    await look(page, name("docs"), "#swagger-ui");
    await page.close();
  }
}
// Without the bypass, the page must not violate its content security policy.
const strict = await browser.newPage();
strict.on("console", (message) => {
  console.log(`console: ${message.text()}`);
  problems += 1;
});
await strict.goto(await invited());
await browser.close();
console.log(problems ? `${problems} problems` : "no problems");
process.exit(problems ? 1 : 0);
