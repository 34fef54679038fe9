/** The editor of a piece: loads it, saves edits after a pause, and asks after changes by others. */
import { type Client, GalleyError } from "@galley/client";
import { contentOf, galleyExtensions } from "@galley/tiptap";
import { type ChainedCommands, Editor } from "@tiptap/core";

/** The time without edits after which the piece is saved, in milliseconds. */
const SAVE_DELAY = 1000;

type Piece = Awaited<ReturnType<typeof read>>;

const read = (galley: Client, id: string) => galley.getContentPiece({ id, content: true });

export function find<Found extends HTMLElement = HTMLElement>(selector: string): Found {
  const found = document.querySelector<Found>(selector);
  if (found === null) throw new Error(`${selector} is not in the page`);
  return found;
}

const title = find<HTMLInputElement>("#title");

export class PieceEditor {
  /** Called after each save. */
  onSave = () => {};

  readonly #galley: Client;
  readonly #editor: Editor;
  #piece: Piece | null = null;
  #edits = 0;
  #saved = 0;
  #running: Promise<void> | null = null;
  #timer = 0;

  constructor(galley: Client) {
    this.#galley = galley;
    this.#editor = new Editor({
      element: find("#editor"),
      extensions: galleyExtensions(),
      enableContentCheck: true,
      editorProps: { attributes: { "aria-label": "Content", role: "textbox", "aria-multiline": "true" } },
      onUpdate: () => this.#edited(),
    });
    title.oninput = () => this.#edited();
    find("#theirs").onclick = () => this.#piece && void this.#load(this.#piece.id);
    find("#mine").onclick = () => void this.#keepMine();
    find("#publish").onclick = () => void this.#publish();
    addEventListener("beforeunload", (event) => {
      if (this.#edits !== this.#saved) event.preventDefault();
    });
    this.#addToolbar();
  }

  get pieceId(): string | null {
    return this.#piece?.id ?? null;
  }

  /** Saves the open piece, and opens another. */
  async open(id: string): Promise<void> {
    await this.#save();
    if (this.#edits === this.#saved) await this.#load(id);
  }

  async #load(id: string): Promise<void> {
    const piece = await read(this.#galley, id);
    this.#piece = piece;
    title.value = piece.title;
    this.#editor.commands.setContent(piece.content, { emitUpdate: false });
    this.#edits = this.#saved = 0;
    find("section").hidden = false;
    this.#show("");
  }

  #edited(): void {
    this.#edits += 1;
    this.#show("Not saved yet");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#save(), SAVE_DELAY);
  }

  /** Saves all edits. One request runs at a time, so that saves follow each other. */
  async #save(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#running;
    if (this.#piece === null || this.#edits === this.#saved) return;
    this.#running = this.#send(this.#piece);
    await this.#running;
  }

  async #send(piece: Piece): Promise<void> {
    const edits = this.#edits;
    const change = { id: piece.id, title: title.value, content: contentOf(this.#editor), autosave: true };
    this.#show("Saving …");
    try {
      await this.#galley.updateContentPiece(change, { ifMatch: piece });
      this.#saved = edits;
      this.#show(this.#edits === edits ? "Saved" : "Not saved yet");
      this.onSave();
    } catch (error) {
      if (!(error instanceof GalleyError)) this.#show("Not saved: the server cannot be reached");
      else if (error.reason === "precondition_failed") this.#show("This piece was changed elsewhere.", true);
      else this.#show(`Not saved: ${error.message}`);
    } finally {
      this.#running = null;
    }
  }

  /** Saves the edits over the change of the other editor, which stays in the history. */
  async #keepMine(): Promise<void> {
    if (this.#piece === null) return;
    this.#piece = await read(this.#galley, this.#piece.id);
    await this.#save();
  }

  async #publish(): Promise<void> {
    await this.#save();
    if (this.#piece === null || this.#edits !== this.#saved) return;
    try {
      await this.#galley.publishContentPieces({ id: this.#piece.id });
      this.#show("Published");
    } catch (error) {
      this.#show(error instanceof GalleyError ? error.message : "Not published: the server cannot be reached");
    }
  }

  #show(status: string, isConflict = false): void {
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

  /** Adds the button that uploads an image as an asset, and inserts it. */
  #addImageButton(): void {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = "image/*";
    input.hidden = true;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Image";
    button.onclick = () => input.click();
    input.onchange = async () => {
      const [file] = input.files ?? [];
      if (file === undefined) return;
      this.#show("Uploading …");
      try {
        const { url, width, height } = await this.#galley.uploadAsset(file, { filename: file.name });
        this.#editor.chain().focus().setImage({ src: url, ...(width && height ? { width, height } : {}) }).run();
      } catch (error) {
        this.#show(error instanceof GalleyError ? error.message : "The image was not uploaded");
      }
      input.value = "";
    };
    find("#toolbar").append(button, input);
  }
}
