/** The editor of a piece: saves edits after a pause, asks after changes by others, and publishes. */
import { type Client, GalleyError } from "@galley/client";
import { contentOf, galleyExtensions } from "@galley/tiptap";
import { type ChainedCommands, Editor } from "@tiptap/core";
import { find, message } from "./page.ts";

/** The time without edits after which the piece is saved, in milliseconds. */
const SAVE_DELAY = 1000;

/** The time after which a save is repeated that did not reach the server, in milliseconds. */
const RETRY_DELAY = 5000;

type Piece = Awaited<ReturnType<typeof readPiece>>;

export const readPiece = (galley: Client, id: string) => galley.getContentPiece({ id, content: true });

const title = find<HTMLInputElement>("#title");

/** An open piece. Each has an editor of its own, as the history of undo must not reach another piece. */
export class PieceEditor {
  readonly id: string;
  readonly #galley: Client;
  readonly #editor: Editor;
  readonly #onSave: (id: string, title: string) => void;
  #piece: Piece;
  #edits = 0;
  #saved = 0;
  #running: Promise<boolean> | null = null;
  #timer = 0;

  constructor(galley: Client, piece: Piece, onSave: (id: string, title: string) => void) {
    this.id = piece.id;
    this.#galley = galley;
    this.#piece = piece;
    this.#onSave = onSave;
    title.value = piece.title;
    title.oninput = () => this.#edited();
    this.#editor = new Editor({
      element: find("#editor"),
      extensions: galleyExtensions(),
      content: piece.content,
      enableContentCheck: true,
      editorProps: { attributes: { "aria-label": "Content", role: "textbox", "aria-multiline": "true" } },
      onUpdate: () => this.#edited(),
    });
    find("#mine").onclick = () => this.#attempt(() => this.#keepMine());
    find("#publish").onclick = () => this.#attempt(() => this.#publish());
    this.#addToolbar();
    this.#show("");
  }

  get isSaved(): boolean {
    return this.#edits === this.#saved;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#editor.destroy();
    find("#toolbar").replaceChildren();
  }

  /** Saves all edits. Returns false if some are left. One request runs at a time, as each needs the last version. */
  async save(): Promise<boolean> {
    clearTimeout(this.#timer);
    this.#running ??= this.#send().finally(() => (this.#running = null));
    return await this.#running;
  }

  #edited(): void {
    this.#edits += 1;
    this.#show("Not saved yet");
    this.#saveAfter(SAVE_DELAY);
  }

  #saveAfter(delay: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), delay);
  }

  async #send(): Promise<boolean> {
    while (!this.isSaved) {
      const edits = this.#edits;
      const sent = { title: title.value, content: contentOf(this.#editor) };
      this.#show("Saving …");
      try {
        await this.#galley.updateContentPiece({ id: this.id, ...sent, autosave: true }, { ifMatch: this.#piece });
      } catch (error) {
        if (!(await this.#isStored(error, sent))) return false;
      }
      this.#saved = edits;
      this.#show("Saved");
      this.#onSave(this.id, sent.title);
    }
    return true;
  }

  /** Shows why a save failed. Returns true if an earlier attempt, whose response was lost, has stored the same. */
  async #isStored(error: unknown, sent: { title: string; content: object }): Promise<boolean> {
    if (!(error instanceof GalleyError) || error.status >= 500) {
      this.#show(`Not saved: ${message(error)}`);
      this.#saveAfter(RETRY_DELAY);
      return false;
    }
    if (error.reason !== "precondition_failed") {
      this.#show(`Not saved: ${message(error)}`);
      return false;
    }
    const latest = await readPiece(this.#galley, this.id).catch(() => null);
    const isSame = latest?.title === sent.title && JSON.stringify(latest.content) === JSON.stringify(sent.content);
    if (isSame) this.#piece = latest;
    else this.#show("This piece was changed elsewhere.", true);
    return isSame;
  }

  /** Saves the edits over the change of the other editor, which stays in the history. */
  async #keepMine(): Promise<void> {
    this.#piece = await readPiece(this.#galley, this.id);
    this.#edits += 1;
    await this.save();
  }

  /** Publishes the piece as it is shown here. */
  async #publish(): Promise<void> {
    if (!(await this.save())) return;
    await this.#galley.publishContentPieces({ id: this.id }, { ifMatch: this.#piece });
    this.#show("Published");
  }

  async #attempt(action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      const isConflict = error instanceof GalleyError && error.reason === "precondition_failed";
      this.#show(isConflict ? "This piece was changed elsewhere." : message(error), isConflict);
    }
  }

  #show(status: string, isConflict = false): void {
    if (this.#editor?.isDestroyed) return;
    find("#status").textContent = status;
    find("#conflict").hidden = !isConflict;
  }

  #addToolbar(): void {
    const add = (label: string, run: (chain: ChainedCommands) => ChainedCommands, isActive?: () => boolean) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.onclick = () => run(this.#editor.chain().focus()).run();
      if (isActive) this.#editor.on("transaction", () => (button.ariaPressed = String(isActive())));
      find("#toolbar").append(button);
    };
    const marks = (name: string) => () => this.#editor.isActive(name);
    add("Bold", (chain) => chain.toggleBold(), marks("bold"));
    add("Italic", (chain) => chain.toggleItalic(), marks("italic"));
    add("Heading", (chain) => chain.toggleHeading({ level: 2 }), () => this.#editor.isActive("heading", { level: 2 }));
    add("List", (chain) => chain.toggleBulletList(), marks("bulletList"));
    add("Quote", (chain) => chain.toggleBlockquote(), marks("blockquote"));
    add("Code", (chain) => chain.toggleCodeBlock(), marks("codeBlock"));
    add("Link", (chain) => {
      const href = prompt("Address of the link", this.#editor.getAttributes("link").href ?? "https://");
      return href === null ? chain : href === "" ? chain.unsetLink() : chain.setLink({ href });
    }, marks("link"));
    add("Undo", (chain) => chain.undo());
    this.#addImageButton();
  }

  /** Adds the button that uploads an image as an asset, and inserts it behind the selection. */
  #addImageButton(): void {
    const input = Object.assign(document.createElement("input"), { type: "file", accept: "image/*", hidden: true });
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Image" });
    button.onclick = () => input.click();
    input.onchange = () =>
      this.#attempt(async () => {
        const [file] = input.files ?? [];
        if (file === undefined) return;
        input.value = "";
        this.#show("Uploading …");
        const { url, width, height } = await this.#galley.uploadAsset(file, { filename: file.name });
        if (this.#editor.isDestroyed) return;
        const image = { type: "image", attrs: { src: url, width, height } };
        this.#editor.chain().focus().insertContentAt(this.#editor.state.selection.to, image).run();
      });
    find("#toolbar").append(button, input);
  }
}
