// Reads {"trees": [{name, json}], "markdown": [{name, markdown, html}]} and prints what is wrong: trees that
// TipTap's schema rejects, and Markdown that other renderers show with another text.
import { readFileSync } from "node:fs";
import { createNodeFromContent } from "@tiptap/core";
import { HtmlRenderer, Parser } from "commonmark";
import { marked } from "marked";
import { schema, window } from "./tiptap.mjs";

const input = JSON.parse(readFileSync(0, "utf8"));
const wrong = [];

for (const { name, json } of input.trees) {
  try {
    createNodeFromContent(json, schema, { errorOnInvalidContent: true }).check();
  } catch (error) {
    wrong.push(`${name}: TipTap: ${error.message}${error.cause ? `: ${error.cause.message}` : ""}`);
  }
}

const textOf = (html) => {
  const page = new window.DOMParser().parseFromString(`<body>${html}</body>`, "text/html");
  return page.body.textContent.replace(/\s/gu, "");
};

// commonmark.js knows no tables, tasks and strikethrough, and shows their signs: then letters and digits count.
const isGithubs = (html) => /<table|<s>|data-type="taskList"/.test(html);
const lettersOf = (text) => text.replace(/\[[ x]?\]/g, "").replace(/[^\p{L}\p{N}]/gu, "");

const renderers = {
  commonmark: (markdown) => new HtmlRenderer().render(new Parser().parse(markdown)),
  marked: (markdown) => marked.parse(markdown, { gfm: true }),
};

for (const { name, markdown, html } of input.markdown) {
  for (const [renderer, render] of Object.entries(renderers)) {
    // To marked a line separator ends a line, and to CommonMark not.
    if (renderer === "marked" && /[\u2028\u2029]/.test(markdown)) continue;
    const read = renderer === "commonmark" && isGithubs(html) ? (text) => lettersOf(textOf(text)) : textOf;
    const [found, expected] = [read(render(markdown)), read(html)];
    if (found !== expected) {
      let at = 0;
      while (found[at] === expected[at]) at += 1;
      const excerpt = (text) => text.slice(Math.max(0, at - 20), at + 40);
      wrong.push(`${name}: ${renderer}: ${excerpt(found)} instead of ${excerpt(expected)}`);
    }
  }
}

console.log(JSON.stringify(wrong));
