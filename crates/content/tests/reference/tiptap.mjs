// The schema of the content tree in TipTap's own words, and its way from HTML and back.
import { JSDOM } from "jsdom";

export const { window } = new JSDOM("<!doctype html>");
Object.assign(globalThis, {
  window,
  document: window.document,
  Node: window.Node,
  Element: window.Element,
  HTMLElement: window.HTMLElement,
  DOMParser: window.DOMParser,
});

const load = async (name) => await import(name);
const { getSchema } = await load("@tiptap/core");
const { DOMParser, DOMSerializer } = await load("@tiptap/pm/model");
const { StarterKit } = await load("@tiptap/starter-kit");
const { Code } = await load("@tiptap/extension-code");
const { TableKit } = await load("@tiptap/extension-table");
const { Image } = await load("@tiptap/extension-image");
const { TaskItem, TaskList } = await load("@tiptap/extension-list");
const { Highlight } = await load("@tiptap/extension-highlight");
const { Subscript } = await load("@tiptap/extension-subscript");
const { Superscript } = await load("@tiptap/extension-superscript");

export const schema = getSchema([
  // A link has what its author wrote, and code may be linked.
  StarterKit.configure({ code: false, link: { HTMLAttributes: { target: null, rel: null, class: null } } }),
  Code.extend({ excludes: "" }),
  Image,
  TableKit,
  TaskList,
  TaskItem.configure({ nested: true }),
  Highlight.configure({ multicolor: true }),
  Subscript,
  Superscript,
]);

export function treeOf(html) {
  const text = `<!DOCTYPE html><html><body>${html}</body></html>`;
  const page = new window.DOMParser().parseFromString(text, "text/html");
  return DOMParser.fromSchema(schema).parse(page.body).toJSON();
}

export function htmlOf(tree) {
  const content = schema.nodeFromJSON(tree).content;
  const box = window.document.createElement("div");
  box.append(DOMSerializer.fromSchema(schema).serializeFragment(content, { document: window.document }));
  return box.innerHTML;
}
