/** Uploads in a text. Their places are decorations, so the document has finished images only: no save
 * and no draft contains the preview of one. */
import { closeHistory } from "@tiptap/pm/history";
import { Fragment, type Node as DocumentNode, Slice } from "@tiptap/pm/model";
import { type EditorState, Plugin, PluginKey, TextSelection, type Transaction } from "@tiptap/pm/state";
import { dropPoint } from "@tiptap/pm/transform";
import { Decoration, DecorationSet, type EditorView } from "@tiptap/pm/view";
import type { Editor } from "@tiptap/core";
import { mount, unmount } from "svelte";
import type { Asset } from "../api/client";
import { isImage } from "../state/assets";
import { files, type PreparedFile } from "../state/files.svelte";
import type { Upload } from "../state/uploads.svelte";
import UploadPlaceholder from "./UploadPlaceholder.svelte";

interface Place {
  id: string;
  pos: number;
  /** Null while questions about the files are open. */
  upload: Upload | null;
  /** True if the image behind the place gets the address of the asset. */
  replaces: boolean;
}

type Change =
  | { kind: "add"; place: Place }
  /** Gives each of the uploads a place. */
  | { kind: "start"; id: string; uploads: Upload[] }
  | { kind: "remove"; id: string }
  /** The transaction inserts the asset of a place. */
  | { kind: "insert"; id: string }
  | { kind: "move"; positions: Map<string, number> };

const key = new PluginKey<Place[]>("uploads");

const placesOf = (state: EditorState): Place[] => key.getState(state) ?? [];

const change = (tr: Transaction, value: Change) => tr.setMeta(key, value);

function apply(tr: Transaction, places: Place[]): Place[] {
  const done = tr.getMeta(key) as Change | undefined;
  // Text that is typed at a place is behind it. Files that are dropped together keep their order.
  const inserted = done?.kind === "insert" ? places.findIndex(({ id }) => id === done.id) : -1;
  const isBefore = (place: Place, at: number) => !place.replaces && (inserted === -1 || at <= inserted);
  const next = tr.docChanged ? places.map((place, at) => ({ ...place, pos: tr.mapping.map(place.pos, isBefore(place, at) ? -1 : 1) })) : places;
  switch (done?.kind) {
    case "add":
      return [...next, done.place];
    case "start":
      return next.flatMap((place) => (place.id === done.id ? done.uploads.map((upload) => ({ ...place, id: upload.key, upload })) : [place]));
    case "remove":
    case "insert":
      return next.filter(({ id }) => id !== done.id);
    case "move":
      return next.map((place) => ({ ...place, pos: done.positions.get(place.id) ?? place.pos }));
    default:
      return next;
  }
}

/** Shows a placeholder at each place. */
export function uploadsPlugin(): Plugin<Place[]> {
  const shown = new WeakMap<Node, Record<string, unknown>>();
  return new Plugin<Place[]>({
    key,
    state: { init: () => [], apply },
    props: {
      decorations: (state) => {
        const widgets = placesOf(state).flatMap(({ id, pos, upload }, at) => {
          if (upload === null) return [];
          const render = (view: EditorView) => {
            const element = document.createElement("div");
            element.className = "upload";
            // A cancelled upload has no place; the editor has the focus again.
            const onend = () => {
              view.dispatch(change(view.state.tr, { kind: "remove", id }));
              view.focus();
            };
            shown.set(element, mount(UploadPlaceholder, { target: element, props: { upload, onend } }));
            return element;
          };
          const destroy = (element: Node) => {
            const component = shown.get(element);
            if (component !== undefined) void unmount(component);
          };
          // Widgets of one position are ordered by their side.
          return [Decoration.widget(pos, render, { key: id, side: -1 + at / 10_000, stopEvent: () => true, ignoreSelection: true, destroy })];
        });
        return DecorationSet.create(state.doc, widgets);
      },
    },
  });
}

export interface UploadRequest {
  files: readonly File[];
  pos: number;
  replaces?: boolean;
  /** Starts the upload of a file. */
  start: (file: PreparedFile) => Upload;
}

/** Uploads files, and inserts each at its place when it is there. */
export async function insertFiles(editor: Editor, { files: chosen, pos, replaces = false, start }: UploadRequest): Promise<void> {
  const id = `place-${Math.random()}`;
  const dispatch = (value: Change) => editor.view.dispatch(change(editor.state.tr, value));
  dispatch({ kind: "add", place: { id, pos, upload: null, replaces } });
  const prepared = await files.prepare(chosen, true);
  if (editor.isDestroyed) return;
  const started = prepared.map(start);
  dispatch({ kind: "start", id, uploads: started });
  for (const upload of started) {
    void upload.finished.then((asset) => {
      if (editor.isDestroyed) return;
      if (asset === null) dispatch({ kind: "remove", id: upload.key });
      else insertUpload(editor, upload.key, asset);
    });
  }
}

/** Returns the attributes of an image node that shows an asset. */
export function imageAttributes(asset: Asset): { src: string; alt: string | null; width: number | null; height: number | null } {
  return { src: asset.url, alt: asset.alt, width: asset.width, height: asset.height };
}

function insertUpload(editor: Editor, id: string, asset: Asset): void {
  const { state, view } = editor;
  const place = placesOf(state).find((one) => one.id === id);
  if (place === undefined) return;
  const tr = change(closeHistory(state.tr), { kind: "insert", id });
  const old = place.replaces ? state.doc.nodeAt(place.pos) : null;
  if (old?.type.name === "image" && isImage(asset)) {
    tr.setNodeMarkup(place.pos, null, { ...old.attrs, ...imageAttributes(asset), alt: (old.attrs.alt as string | null) || asset.alt });
  } else {
    insertAt(tr, place.pos, asset);
  }
  view.dispatch(tr);
}

/** Inserts an asset: an image as such, and another file as a link. */
function insertAt(tr: Transaction, pos: number, asset: Asset): void {
  const { schema } = tr.doc.type;
  const { image, paragraph } = schema.nodes as Record<string, NonNullable<(typeof schema.nodes)[string]>>;
  if (!isImage(asset)) {
    const link = schema.text(asset.filename, [schema.marks.link!.create({ href: asset.url })]);
    const { parent } = tr.doc.resolve(pos);
    if (parent.inlineContent && !parent.type.spec.code) tr.insert(pos, link);
    else tr.replaceRangeWith(pos, pos, paragraph!.create(null, link));
    return;
  }
  const { $from: start, empty } = tr.selection;
  // An empty paragraph is replaced by the image, and the cursor is to be behind it.
  const isReplaced = empty && start.parent === tr.doc.resolve(pos).parent && start.parent.isTextblock && start.parent.content.size === 0;
  const node = image!.create(imageAttributes(asset));
  tr.replaceRangeWith(pos, pos, node);
  let at = -1;
  tr.doc.descendants((one, position) => {
    if (one === node) at = position;
    return at === -1;
  });
  if (at === -1) return;
  const end = at + node.nodeSize;
  const $end = tr.doc.resolve(end);
  // Without a block behind it, the next key would replace the image.
  if ($end.nodeAfter === null || (isReplaced && !$end.nodeAfter.isTextblock)) tr.insert(end, paragraph!.create());
  if (isReplaced) tr.setSelection(TextSelection.create(tr.doc, end + 1));
}

/** Returns the position of files that are dropped at a point of the screen. */
export function positionOfDrop(view: EditorView, point: { left: number; top: number }, hasImages: boolean): number {
  const at = view.posAtCoords(point)?.pos ?? view.state.doc.content.size;
  if (!hasImages) return at;
  const image = view.state.schema.nodes.image!.create({ src: "/" });
  return dropPoint(view.state.doc, at, new Slice(Fragment.from(image), 0, 0)) ?? at;
}

/** Keeps the places when the document is replaced as a whole, as after a merge. */
export function keepPlaces(editor: Editor, replace: () => void): void {
  const { doc: before } = editor.state;
  const places = placesOf(editor.state);
  replace();
  if (places.length === 0) return;
  const position = positionAfter(before, editor.state.doc);
  const positions = new Map(places.map(({ id, pos }) => [id, position(pos)]));
  editor.view.dispatch(change(editor.state.tr, { kind: "move", positions }));
}

/** Returns the function of positions from one document to another. Positions in a part that differs go
 * to its end. */
function positionAfter(before: DocumentNode, after: DocumentNode): (pos: number) => number {
  const start = before.content.findDiffStart(after.content);
  const ends = before.content.findDiffEnd(after.content);
  if (start === null || ends === null) return (pos) => pos;
  // In repeated text, the two searches overlap.
  const overlap = Math.max(0, start - Math.min(ends.a, ends.b));
  const [endBefore, endAfter] = [ends.a + overlap, ends.b + overlap];
  return (pos) => (pos <= start ? pos : pos >= endBefore ? pos + endAfter - endBefore : endAfter);
}

/** Returns the files of a paste or a drop that has no other content. A page or a document has its images
 * by address, and also as files. */
export function pastedFiles(data: DataTransfer | null, isAddress: (src: string) => boolean): File[] {
  const all = [...(data?.files ?? [])];
  const html = data?.getData("text/html") ?? "";
  if (all.length === 0 || html === "") return all;
  const { body } = new DOMParser().parseFromString(html, "text/html");
  const images = [...body.querySelectorAll("img")];
  const isOnlyImages = body.textContent?.trim() === "" && images.length > 0;
  return isOnlyImages && !images.some((one) => isAddress(one.getAttribute("src") ?? "")) ? all : [];
}
