// The API reference: its search, samples and test requests, on a desk and on a phone.
import assert from "node:assert/strict";
import { api, desk, open, phone, run, url } from "./harness.mjs";

await run(async (browser) => {
  for (const options of [{ viewport: desk, colorScheme: "dark" }, { viewport: phone, colorScheme: "light" }]) {
    const page = await open(browser, options);
    const foreign = [];
    page.on("request", (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith("data:")) foreign.push(request.url());
    });
    await page.goto(`${url}/docs#tag/tags/POST/tags`);
    const operation = page.locator('[id$="tag/tags/POST/tags"]').first();
    await operation.getByRole("heading", { name: "Create a tag" }).waitFor();

    // A sample in TypeScript, beside that for curl.
    await operation.getByText("curl", { exact: true }).first().waitFor();
    await operation.getByRole("button", { name: /Shell Curl/i }).click();
    await page.getByText("TypeScript", { exact: true }).first().click();
    await operation.getByText("createTag").first().waitFor();

    // The search.
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").or(page.getByPlaceholder(/Search/)).first().fill("unpublish");
    await page.getByRole("dialog").getByText("/content-pieces/unpublish").first().waitFor();
    await page.keyboard.press("Escape");

    // A request with the token that was typed, and with no header of an example.
    const before = (await api("GET", "/tags/list")).length;
    await operation.getByRole("button", { name: /Test Request/ }).click();
    const client = page.getByRole("dialog");
    await client.locator("[data-placeholder=Token], [placeholder=Token]").first().click();
    await page.keyboard.type(process.env.GALLEY_TOKEN);
    const sent = page.waitForRequest((request) => request.method() === "POST");
    await client.getByRole("button", { name: /Send/ }).first().click();
    const headers = await (await sent).allHeaders();
    assert.deepEqual(["prefer", "idempotency-key", "galley-workspace"].filter((name) => name in headers), []);
    await client.getByText("201 Created").first().waitFor();
    assert.equal((await api("GET", "/tags/list")).length, before + 1);

    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= options.viewport.width, `the page is ${width} px wide`);
    assert.deepEqual(foreign, [], "requests to other hosts");
  }
});
