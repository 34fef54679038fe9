// Writes the screenshots of docs/images: node screenshots.mjs FOLDER, with the variables of the tests.
import { api, desk, open, phone, run, signIn } from "./harness.mjs";

const folder = process.argv[2] ?? ".";

const posts = [
  ["Harbour opens after two years of works", "published", "News"],
  ["Ten walks along the coast", "published", "Travel"],
  ["The baker who gets up at noon", "changed", "People"],
  ["Ferries run on Sundays again", "published", "News"],
  ["A recipe for rye bread", "draft", "Food"],
  ["What the tide leaves behind", "draft", "Travel"],
  ["Council votes on the new school", "published", "News"],
  ["Letters from the lighthouse", "draft", "People"],
];

const text = `
<p>The old quay was closed for <strong>two years</strong>. On Saturday the first boats came back, and with them the
fish market, which had moved to the car park behind the station.</p>
<h2>What is new</h2>
<ul><li><p>A crane for boats up to twelve tons</p></li><li><p>Power and water at every berth</p></li></ul>
<table><tr><th>Day</th><th>Market</th></tr><tr><td>Wednesday</td><td>7 to 13 h</td></tr><tr><td>Saturday</td><td>6 to 14 h</td></tr></table>
<blockquote><p>We did not believe in it any more, says Ida Holm, who sells eels here in the third generation.</p></blockquote>
<pre><code class="language-js">const tide = await harbour.tide("2026-11-27");</code></pre>`;

await run(async (browser) => {
  const [group] = await api("GET", "/content-groups/list");
  await api("PUT", "/workspace", { name: "The Harbour Times" });
  for (const name of ["Features", "Newsletter"]) await api("POST", "/content-groups", { name, ancestor: group.id });
  const tags = {};
  for (const [label, color] of [["News", "blue"], ["Travel", "teal"], ["People", "orange"], ["Food", "amber"]]) {
    tags[label] = (await api("POST", "/tags", { label, color })).id;
  }
  await api("POST", "/variants", { key: "de", label: "German" });
  const groups = (await api("GET", "/content-groups/list?subtree=true"))[0].descendants.map((one) => one.id);
  for (const [at, [title, state, tag]] of posts.toReversed().entries()) {
    const slug = title.toLowerCase().replaceAll(" ", "-");
    const contentGroupId = [group.id, ...groups][at % 3];
    const piece = { title, slug, tags: [tags[tag]], members: [], contentGroupId, content: text };
    const { id } = await api("POST", "/content-pieces", piece);
    if (state !== "draft") await api("POST", "/content-pieces/publish", { id });
    if (state === "changed") await api("PUT", "/content-pieces", { id, description: "A portrait" });
  }

  const page = await open(browser, { viewport: desk });
  await signIn(page);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const shot = async (name) => {
      await page.waitForTimeout(400);
      await page.screenshot({ path: `${folder}/console-${name}-${colorScheme}.png` });
    };
    await page.setViewportSize(desk);
    await page.getByRole("link", { name: "All pieces" }).click();
    await page.getByRole("link", { name: /Harbour opens/ }).click();
    await page.locator(".ProseMirror").waitFor();
    if (!(await page.getByRole("heading", { name: "Details" }).isVisible())) await page.getByRole("button", { name: "Details" }).click();
    await shot("editor");
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByLabel("Variant").selectOption({ index: 1 });
    await page.getByRole("region", { name: "Original" }).getByText("Harbour opens").waitFor();
    await shot("variant");
    for (const name of ["Members", "Roles", "Tags", "Variants", "Webhooks", "Tokens", "Activity", "Import", "Trash", "Settings", "Account"]) {
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
      if (["Members", "Roles", "Activity", "Import"].includes(name)) await shot(name.toLowerCase());
    }
    await page.getByRole("link", { name: "All pieces" }).click();
    await page.getByRole("button", { name: "Board", exact: true }).click();
    await page.getByRole("region", { name: "Posts / Features" }).waitFor();
    await shot("board");
    await page.getByRole("button", { name: "List", exact: true }).click();
    await page.getByRole("link", { name: "All pieces" }).click();
    await page.setViewportSize(phone);
    await shot("phone-list");
    await page.getByRole("link", { name: /Harbour opens/ }).click();
    await page.locator(".ProseMirror").waitFor();
    if (await page.getByRole("heading", { name: "Details" }).isVisible()) await page.getByRole("button", { name: "Close" }).click();
    await shot("phone-editor");
    await page.getByRole("link", { name: "Back to the list" }).click();
  }
});
