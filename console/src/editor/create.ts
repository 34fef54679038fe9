/** The editor: TipTap with Galley's schema, and the menu of blocks. */
import { galleyExtensions, isImageAddress } from "@galley/tiptap";
import { Editor, Extension, getSchema, type Node, type Range } from "@tiptap/core";
import { BubbleMenu } from "@tiptap/extension-bubble-menu";
import { Placeholder } from "@tiptap/extensions";
import { Node as DocumentNode } from "@tiptap/pm/model";
import { TextSelection } from "@tiptap/pm/state";
import { Suggestion } from "@tiptap/suggestion";
import { client, type ContentNode, received } from "../api/client";
import { t } from "../i18n";
import { pastedFiles, positionOfDrop, uploadsPlugin } from "./uploads";

export interface Block {
  name: string;
  /** Further words that find it. */
  words: string;
  run: (editor: Editor, range: Range) => void;
}

/** The blocks of the menu. An image and a file are asked for. */
export function blocks(ask: { image: () => void; file: () => void }): Block[] {
  const at = (editor: Editor, range: Range) => editor.chain().focus().deleteRange(range);
  const b = t.blocks;
  return [
    { name: b.paragraph, words: "paragraph text", run: (e, r) => at(e, r).setParagraph().run() },
    { name: b.heading1, words: "h1", run: (e, r) => at(e, r).setHeading({ level: 1 }).run() },
    { name: b.heading2, words: "h2", run: (e, r) => at(e, r).setHeading({ level: 2 }).run() },
    { name: b.heading3, words: "h3", run: (e, r) => at(e, r).setHeading({ level: 3 }).run() },
    { name: b.bulletList, words: "ul list", run: (e, r) => at(e, r).toggleBulletList().run() },
    { name: b.orderedList, words: "ol list", run: (e, r) => at(e, r).toggleOrderedList().run() },
    { name: b.taskList, words: "todo check list", run: (e, r) => at(e, r).toggleTaskList().run() },
    { name: b.blockquote, words: "quote", run: (e, r) => at(e, r).toggleBlockquote().run() },
    { name: b.codeBlock, words: "code pre", run: (e, r) => at(e, r).toggleCodeBlock().run() },
    { name: b.table, words: "table", run: (e, r) => at(e, r).insertTable({ rows: 3, cols: 3, withHeaderRow: true }).run() },
    {
      name: b.image,
      words: "image picture",
      run: (e, r) => {
        at(e, r).run();
        ask.image();
      },
    },
    {
      name: b.file,
      words: "file attachment pdf audio video download",
      run: (e, r) => {
        at(e, r).run();
        ask.file();
      },
    },
    { name: b.rule, words: "hr rule divider", run: (e, r) => at(e, r).setHorizontalRule().run() },
  ];
}

/** Inserts an image, or changes the selected one. The cursor is behind it then, as a selected image
 * would be replaced by the next key. */
export function setImage(editor: Editor, image: { src: string; alt: string | null; width: number | null; height: number | null }): void {
  const chain = editor.chain().focus();
  (editor.isActive("image") ? chain.updateAttributes("image", image) : chain.insertContent({ type: "image", attrs: image }))
    .command(({ tr, state }) => {
      const after = tr.selection.to;
      if (tr.doc.nodeAt(after)?.isTextblock !== true) tr.insert(after, state.schema.nodes.paragraph!.create());
      tr.setSelection(TextSelection.create(tr.doc, after + 1));
      return true;
    })
    .run();
}

/** The state of the menu of blocks while it is open. */
export interface BlockMenu {
  query: string;
  range: Range;
  rect: DOMRect | null;
}

interface Options {
  element: HTMLElement;
  editable: boolean;
  content: ContentNode;
  selectionMenu: HTMLElement;
  tableMenu: HTMLElement;
  imageMenu: HTMLElement;
  onedit: () => void;
  /** A paste has left something out. */
  onloss: (losses: Loss[]) => void;
  onmenu: (menu: BlockMenu | null) => void;
  /** Returns true if the menu of blocks has used the key. */
  onmenukey: (event: KeyboardEvent) => boolean;
  onlink: () => void;
  /** Files are dropped or pasted, for a position of the document. */
  onfiles: (files: File[], pos: number) => void;
  /** The key that goes from a selected image to its tools. */
  onimagekey: () => boolean;
  /** Returns false if the key is for the menu of blocks. */
  onescape: () => boolean;
}

/** Returns true if a plain text is rather Markdown than prose. */
export function looksLikeMarkdown(text: string): boolean {
  return /^(#{1,6} |[-*+] |\d+[.)] |> |```|\|.+\|$)/m.test(text) || /\*\*[^*\n]+\*\*|\[[^\]\n]+\]\([^)\n]+\)/.test(text);
}

/** The extensions of the editor. An image without alternative text is decorative for screen readers. */
const extensions = () =>
  galleyExtensions().map((extension) =>
    extension.name === "image"
      ? (extension as Node).extend({ renderHTML: ({ HTMLAttributes }) => ["img", { ...HTMLAttributes, alt: (HTMLAttributes.alt as string | null) ?? "" }] })
      : extension,
  );

const schema = getSchema(galleyExtensions());

/** Returns a document with the attributes that the editor writes. */
export function normalize(content: ContentNode): ContentNode {
  return DocumentNode.fromJSON(schema, content).toJSON() as ContentNode;
}

export function createEditor(options: Options): Editor {
  const blockMenu = Extension.create({
    name: "blockMenu",
    // Its keys precede those of the extensions.
    priority: 1_000,
    addProseMirrorPlugins() {
      const open = (props: { query: string; range: Range; clientRect?: (() => DOMRect | null) | null }) =>
        options.onmenu({ query: props.query, range: props.range, rect: props.clientRect?.() ?? null });
      return [
        Suggestion({
          editor: this.editor,
          char: "/",
          startOfLine: true,
          allow: ({ state }) => !state.selection.$from.parent.type.spec.code,
          items: () => [],
          render: () => ({
            onStart: open,
            onUpdate: open,
            onExit: () => options.onmenu(null),
            onKeyDown: ({ event }) => options.onmenukey(event),
          }),
        }),
      ];
    },
    addKeyboardShortcuts() {
      return {
        "Mod-k": () => {
          options.onlink();
          return true;
        },
        // By default, the key selects the block around the cursor.
        Escape: () => options.onescape(),
        Tab: () => options.onimagekey(),
        // The key of the details, which would also raise the text.
        "Mod-.": () => true,
      };
    },
  });

  const editor = new Editor({
    element: options.element,
    editable: options.editable,
    // The style sheet has the rules, as the content security policy forbids others.
    injectCSS: false,
    extensions: [
      ...extensions(),
      Placeholder.configure({ placeholder: t.writeHere }),
      blockMenu,
      Extension.create({ name: "uploads", addProseMirrorPlugins: () => [uploadsPlugin()] }),
      BubbleMenu.configure({
        pluginKey: "selectionMenu",
        element: options.selectionMenu,
        shouldShow: ({ editor, from, to }) => (from !== to || editor.isActive("link")) && editor.isEditable && !editor.isActive("codeBlock") && !editor.isActive("image"),
      }),
      BubbleMenu.configure({
        pluginKey: "imageMenu",
        element: options.imageMenu,
        // Its field has the focus while the alternative text is edited.
        shouldShow: ({ editor, view, element }) => editor.isEditable && editor.isActive("image") && (view.hasFocus() || element.contains(document.activeElement)),
      }).extend({ name: "imageMenu" }),
      BubbleMenu.configure({
        pluginKey: "tableMenu",
        element: options.tableMenu,
        shouldShow: ({ editor, from, to }) => editor.isEditable && from === to && editor.isActive("table"),
        options: { placement: "top-start" },
      }).extend({ name: "tableMenu" }),
    ],
    content: options.content,
    enableContentCheck: true,
    editorProps: {
      attributes: { dir: "auto", "aria-label": t.text, role: "textbox", "aria-multiline": "true", spellcheck: "true" },
      handleDrop(view, event) {
        // Browsers offer an image that is dragged within the text as a file, too.
        const dropped = view.dragging === null ? pastedFiles(event.dataTransfer, isImageAddress) : [];
        if (dropped.length === 0) return false;
        const hasImages = dropped.some((file) => file.type.startsWith("image/"));
        options.onfiles(dropped, positionOfDrop(view, { left: event.clientX, top: event.clientY }, hasImages));
        return true;
      },
      handlePaste(view, event) {
        const data = event.clipboardData;
        const pasted = pastedFiles(data, isImageAddress);
        if (pasted.length > 0) {
          options.onloss([]);
          options.onfiles(pasted, view.state.selection.from);
          return true;
        }
        const text = data?.getData("text/plain") ?? "";
        const html = data?.getData("text/html") ?? "";
        options.onloss([]);
        if (html !== "") void findLosses(html).then(options.onloss);
        if (data === null || data.types.includes("text/html") || !looksLikeMarkdown(text)) return false;
        void pasteMarkdown(editor, text);
        return true;
      },
    },
    onUpdate: ({ transaction }) => {
      if (transaction.docChanged) options.onedit();
    },
  });
  return editor;
}

/** A kind of element or attribute that a paste has left out. */
export interface Loss {
  name: string;
  count: number;
}

/** The marks of clipboards and layouts, which are no part of the text. */
const NOISE = /^(meta|style|link|title|html|head|body|o:p|class|id|dir|lang|role|start|span|div|font|data-.*|aria-.*)$/;

/** Returns what pasted HTML has that a document of Galley can't hold. */
async function findLosses(html: string): Promise<Loss[]> {
  try {
    const body = { content: html, contentFormat: "html" } as never;
    const { data } = await received(client.POST("/content-pieces/convert", { body }));
    const counts = new Map<string, number>();
    for (const warning of data.conversionWarnings) {
      const name = warning.property ?? warning.attribute ?? warning.element;
      if (!NOISE.test(name)) counts.set(name, (counts.get(name) ?? 0) + warning.count);
    }
    return [...counts].map(([name, count]) => ({ name, count }));
  } catch {
    // Without the server, the paste stays as it is.
    return [];
  }
}

/** Inserts Markdown as the server would convert it. */
async function pasteMarkdown(editor: Editor, text: string): Promise<void> {
  let inserted: string | ContentNode[] = text;
  try {
    const body = { content: text, contentFormat: "markdown" } as never;
    const { data } = await received(client.POST("/content-pieces/convert", { body }));
    inserted = (data as unknown as { content: ContentNode }).content.content ?? [];
  } catch {
    // Without the server, the text is pasted as it is.
  }
  editor.chain().focus().insertContent(inserted).run();
}
