/** The replacement of an asset: each piece that refers to it gets the address of another one. */
import { ApiError, type Asset, client, type ContentNode, type Piece, received } from "../api/client";
import { t } from "../i18n";
import { type AssetUse, keyOf, outdateAssets } from "./assets";
import { fetchPiece } from "./piece.svelte";
import { queryClient } from "./queries";

/** The limit of attempts while others change the same piece. */
const ATTEMPTS = 2;

export interface Failure {
  use: AssetUse;
  error: unknown;
}

/** Replaces the addresses of an asset. The host may be another one meanwhile, and the name of the file as
 * well; a rendition stays one. */
export interface Replacer {
  /** Replaces a complete address. */
  address: (address: string) => string;
  /** Replaces all addresses in a text. */
  text: (text: string) => string;
}

export function replacer(before: Asset, after: Asset): Replacer {
  const path = `/a/${keyOf(before.url) ?? ""}/`;
  const next = (rendition: string | undefined) => after.url + (after.width === null ? "" : (rendition ?? ""));
  const host = `(?:https?://[^\\s"'<>()/]+(?:/[^\\s"'<>()/?#]+)*)?`;
  // Punctuation at the end belongs to the sentence.
  const name = `(?:[^\\s"'<>()?#\\\\]*[^\\s"'<>()?#\\\\.,;:!])?`;
  const pattern = new RegExp(`${host}${path}${name}(\\?[wf]=[\\w&=]+)?`, "g");
  return {
    address: (address) => (address.includes(path) ? next(/\?[wf]=[\w&=]+/.exec(address)?.[0]) : address),
    text: (text) => text.replace(pattern, (_, rendition: string | undefined) => next(rendition)),
  };
}

/** Returns a node with other addresses. The size of an image is that of the new one. */
function replaceNode(node: ContentNode, replace: Replacer, after: Asset): ContentNode {
  const replaced = (attrs: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(attrs).map(([name, value]) => [name, (name === "src" || name === "href") && typeof value === "string" ? replace.address(value) : value]));
  const result = { ...node };
  if (node.attrs !== undefined) {
    const attrs = replaced(node.attrs);
    const hasSize = attrs.width != null || attrs.height != null;
    if (attrs.src !== node.attrs.src && hasSize) Object.assign(attrs, { width: after.width, height: after.height });
    result.attrs = attrs;
  }
  if (node.marks !== undefined) result.marks = node.marks.map((mark) => (mark.attrs === undefined ? mark : { ...mark, attrs: replaced(mark.attrs) }));
  if (node.content !== undefined) result.content = node.content.map((child) => replaceNode(child, replace, after));
  return result;
}

/** Returns the fields of a piece that change. */
export function changesOf(piece: Piece, replace: Replacer, after: Asset): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  const set = (name: string, before: unknown, replaced: (text: string) => string) => {
    if (typeof before === "string" && replaced(before) !== before) changes[name] = replaced(before);
  };
  set("coverUrl", piece.coverUrl, replace.address);
  set("description", piece.description, replace.text);
  set("customData", piece.customData, replace.text);
  const isSized = changes.coverUrl !== undefined && /^\d+$/.test(piece.coverWidth ?? "");
  if (isSized) changes.coverWidth = after.width === null ? null : String(after.width);
  const content = piece.content as unknown as ContentNode | null;
  if (content) {
    const replaced = replaceNode(content, replace, after);
    if (JSON.stringify(replaced) !== JSON.stringify(content)) changes.content = replaced;
  }
  return changes;
}

export class Replacement {
  isRunning = $state(false);
  isDone = $state(false);
  done = $state(0);
  total = $state(0);
  /** The number of pieces and variants that have the new address. */
  changed = $state(0);
  failures = $state.raw<Failure[]>([]);
  /** Published revisions and pieces in the trash, which keep the old address. */
  kept = $state.raw<AssetUse[]>([]);

  async run(workspace: string, before: Asset, after: Asset, uses: AssetUse[]): Promise<void> {
    const current = uses.filter(({ place }) => place === "current");
    // The piece itself comes first: after it, a variant has the old address in its own values only.
    const ordered = [...current.filter(({ variantId }) => variantId === null), ...current.filter(({ variantId }) => variantId !== null)];
    this.isRunning = true;
    this.isDone = false;
    this.done = 0;
    this.changed = 0;
    this.failures = [];
    this.total = ordered.length;
    this.kept = uses.filter(({ place }) => place !== "current");
    for (const use of ordered) {
      try {
        // The values of a variant include those of its piece.
        const isBlocked = use.variantId !== null && this.failures.some((one) => one.use.variantId === null && one.use.contentPieceId === use.contentPieceId);
        if (isBlocked) throw new Error(t.assets.originalFirst);
        await replaceIn(workspace, use, before, after);
        this.changed += 1;
      } catch (error) {
        this.failures = [...this.failures, { use, error }];
      }
      this.done += 1;
    }
    this.isRunning = false;
    this.isDone = true;
    outdateAssets(workspace);
    void queryClient.invalidateQueries({ queryKey: [workspace, "pieces"] });
  }
}

async function replaceIn(workspace: string, use: AssetUse, before: Asset, after: Asset): Promise<void> {
  const replace = replacer(before, after);
  const { contentPieceId: id, variantId } = use;
  for (let attempt = 1; ; attempt += 1) {
    const { piece, etag } = await fetchPiece(workspace, id, variantId);
    const changes = changesOf(piece, replace, after);
    if (Object.keys(changes).length === 0) {
      // Another person may have changed the piece meanwhile.
      if (JSON.stringify(piece).includes(keyOf(before.url) ?? before.url)) throw new Error(t.assets.notReplaceable);
      return;
    }
    const body = { id, ...(variantId === null ? {} : { variant: variantId }), ...changes };
    const headers = { "If-Match": etag, "Galley-Workspace": workspace };
    try {
      await received(client.PUT("/content-pieces", { body, headers } as never));
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 412)) throw error;
      if (attempt === ATTEMPTS) throw new Error(t.assets.changedMeanwhile);
    }
  }
}
