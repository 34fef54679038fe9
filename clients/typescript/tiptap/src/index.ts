/**
 * TipTap extensions whose schema is exactly that of Galley's content: every tree that Galley returns
 * loads, and every document of the editor can be stored.
 */
import type { ContentTree } from "@galley/client";
import type { Editor, Extensions } from "@tiptap/core";
import { Code } from "@tiptap/extension-code";
import { Highlight } from "@tiptap/extension-highlight";
import { Image } from "@tiptap/extension-image";
import { TaskItem, TaskList } from "@tiptap/extension-list";
import { Subscript } from "@tiptap/extension-subscript";
import { Superscript } from "@tiptap/extension-superscript";
import { TableKit } from "@tiptap/extension-table";
import { StarterKit } from "@tiptap/starter-kit";
// Imports without names stay in the declarations, which have the types of the commands by them.
import "@tiptap/extension-highlight";
import "@tiptap/extension-image";
import "@tiptap/extension-list";
import "@tiptap/extension-subscript";
import "@tiptap/extension-superscript";
import "@tiptap/extension-table";
import "@tiptap/starter-kit";

/** The schemes that a link may have. Addresses without a scheme are relative, and allowed, too. */
const LINK_SCHEMES = ["http", "https", "ftp", "ftps", "mailto", "tel", "sms"];

/** The schemes that the address of an image may have. */
const IMAGE_SCHEMES = ["http", "https"];

function hasScheme(address: string, schemes: readonly string[]): boolean {
  // Browsers ignore control characters and white space in front of the scheme and in it.
  const bare = address.replace(/[\u0000-\u0020\u007f-\u00a0\u1680\u180e\u2000-\u2029\u205f\u3000]/g, "");
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(bare)?.[1];
  return scheme === undefined || schemes.includes(scheme.toLowerCase());
}

/** Returns true if Galley stores a link with this address. */
export function isLinkAddress(address: string): boolean {
  return hasScheme(address, LINK_SCHEMES);
}

/** Returns true if Galley stores an image with this address. */
export function isImageAddress(address: string): boolean {
  return address.trim() !== "" && hasScheme(address, IMAGE_SCHEMES);
}

const SafeImage = Image.extend({
  parseHTML() {
    return [
      {
        tag: "img[src]",
        getAttrs: (element) => isImageAddress(element.getAttribute("src") ?? "") && null,
      },
    ];
  },
});

/** Returns a color that Galley stores, or null: no variables, and no functions besides these. */
function plainColor(color: string | null): string | null {
  const isPlain = color !== null && /^(?:#[0-9a-f]{3,8}|[a-z]+|(?:rgb|hsl)a?\([^()]*\))$/i.test(color.trim());
  return isPlain && (globalThis.CSS?.supports("color", color) ?? true) ? color : null;
}

const SafeHighlight = Highlight.extend({
  addAttributes() {
    const inherited = this.parent?.() ?? {};
    const { color } = inherited as Record<string, { parseHTML?: (element: HTMLElement) => string | null }>;
    return { ...inherited, color: { ...color, parseHTML: (element: HTMLElement) => plainColor(color?.parseHTML?.(element) ?? null) } };
  },
});

/** Returns the extensions of Galley's schema. */
export function galleyExtensions(): Extensions {
  return [
    // Without defaults, a link keeps the attributes that its author wrote.
    StarterKit.configure({
      code: false,
      link: {
        HTMLAttributes: { target: null, rel: null, class: null },
        isAllowedUri: isLinkAddress,
        openOnClick: false,
        defaultProtocol: "https",
      },
    }),
    // Inline code may carry other marks, such as a link.
    Code.extend({ excludes: "" }),
    SafeHighlight.configure({ multicolor: true }),
    SafeImage,
    TaskList,
    TaskItem.configure({ nested: true }),
    Subscript,
    Superscript,
    TableKit,
  ];
}

/** Returns the document of an editor with these extensions, as the content of a piece. */
export function contentOf(editor: Pick<Editor, "getJSON">): ContentTree {
  // The types of TipTap don't know the nodes of a schema.
  return editor.getJSON() as unknown as ContentTree;
}
