// A browser for the tests: it fails a test on errors of the page, and on findings of axe-core.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const url = process.env.GALLEY_URL;
export const token = process.env.GALLEY_TOKEN;
const links = JSON.parse(process.env.GALLEY_LINKS);

export const desk = { width: 1280, height: 800 };
export const phone = { width: 390, height: 780 };

/** The time in ms after which a wait fails. It is long, as machines of CI have other work. */
const patience = 60_000;

const errors = [];

/** The requests of all pages that have neither a response nor an error. */
const pending = new Set();

/** Returns the path of a program, which may be a name in one of the folders of `PATH`. */
function programPath(name) {
  if (name.includes("/")) return name;
  return process.env.PATH.split(":").map((folder) => join(folder, name)).find(existsSync);
}

/** Starts Chromium. Its own sandbox does not start as root, as in containers. */
export async function launch() {
  return await chromium.launch({
    executablePath: programPath(process.env.GALLEY_TEST_CHROMIUM),
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

/** Opens a page in a browser profile of its own, in English. */
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: desk, locale: "en-US", ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  return await watched(await context.newPage());
}

/** Reports errors of a page. */
export function watched(page) {
  page.on("pageerror", (error) => errors.push(`${page.url()}: ${error.stack}`));
  page.on("console", (message) => {
    // Chromium reports each response of the status 4xx, and each request without a connection.
    const isExpected = /Failed to load resource/.test(message.text());
    if (message.type() === "error" && !isExpected) errors.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => pending.add(request));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => pending.delete(request));
  page.setDefaultTimeout(patience);
  return page;
}

/** Signs in with the next link of the operator. */
export async function signIn(page) {
  await page.goto(links.shift());
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(/\/console\/ws_/);
}

/** Sends a request with the access token of the owner. */
export async function api(method, path, body, bearer = token) {
  const headers = { authorization: `Bearer ${bearer}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
}

/** Waits until the page says that all edits are saved. */
export async function saved(page) {
  await page.locator('.save[data-state="saved"]').waitFor();
}

/** Returns the text of the editor. */
export const text = async (page) => await page.locator(".ProseMirror").innerText();

/** Places the cursor at the end of the block with this text. */
export async function clickEnd(page, words) {
  await page.locator(".ProseMirror").getByText(words, { exact: false }).first().click();
  await page.keyboard.press("End");
}

const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** The rules whose results depend on colors. All others find the same in the second scheme. */
const rulesOfColors = ["color-contrast", "link-in-text-block"];

/** Checks the page by the rules of WCAG 2.2 AA, in both color schemes. */
export async function accessible(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    // The debugger evaluates the script: the policy of the page allows none of the test.
    await page.evaluate(axeSource);
    const runOnly = colorScheme === "light" ? rules : { type: "rule", values: rulesOfColors };
    const found = await page.evaluate(async (runOnly) => {
      const results = await globalThis.axe.run(document, { runOnly });
      const nodes = (one) => one.nodes.map((node) => node.html.slice(0, 160)).join(" | ");
      return results.violations.map((one) => `${one.id}: ${nodes(one)}`);
    }, runOnly);
    assert.deepEqual(found, [], `axe: ${name}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Checks the page at the width of a desk and of a phone. */
export async function accessibleAtBothWidths(page, name) {
  await accessible(page, name);
  await page.setViewportSize(phone);
  await accessible(page, `${name} on a phone`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= phone.width, `${name} is ${width} px wide on a phone`);
  await page.setViewportSize(desk);
}

/** Waits until a value is as expected, and fails with the difference after a minute. */
export async function until(read, expected) {
  for (const end = Date.now() + patience; Date.now() < end; ) {
    if (JSON.stringify(await read()) === JSON.stringify(expected)) return;
    await new Promise((next) => setTimeout(next, 100));
  }
  assert.deepEqual(await read(), expected);
}

/** Waits until a server responds. */
export async function served(address) {
  await until(async () => await fetch(address).then((response) => response.ok, () => false), true);
}

/** Opens a page by the navigation. */
export async function go(page, name) {
  await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

/** Runs a test, and ends with its result. */
export async function run(test) {
  const browser = await launch();
  try {
    await test(browser);
    assert.deepEqual(errors, [], "errors of the pages");
  } catch (error) {
    console.error(error);
    if (errors.length > 0) console.error("errors of the pages:", errors);
    console.error("pending requests:", [...pending].map((request) => `${request.method()} ${request.url()}`));
    const pages = browser.contexts().flatMap((context) => context.pages());
    for (const [at, page] of pages.entries()) {
      console.error(`page ${at}: ${page.url()}\n${await page.locator("body").innerText().catch(() => "")}`);
    }
    process.exitCode = 1;
  } finally {
    await browser.close();
    // A server that a failed test left open would keep the process running.
    process.exit();
  }
}
