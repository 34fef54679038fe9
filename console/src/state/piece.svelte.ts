/** A piece that is edited: its fields, and the saves of their changes. */
import { ApiError, client, type ContentNode, isUnreachable, type Piece, received } from "../api/client";
import { deleteDraft, type Draft, draftKey, putDraft } from "./drafts";
import { canonical, type Choice, hasConflict, mergeDocuments, type Region, resolved } from "./merge";

/** The fields that the console edits, as requests have them. */
export interface Fields {
  title: string;
  slug: string;
  date: string | null;
  description: string | null;
  tags: string[];
  members: string[];
  coverUrl: string | null;
  coverAlt: string | null;
  canonicalLink: string | null;
  content: ContentNode;
}

export type FieldName = keyof Fields;

const NAMES: FieldName[] = ["title", "slug", "date", "description", "tags", "members", "coverUrl", "coverAlt", "canonicalLink", "content"];

/** `unsaved`: kept on this device, and sent soon. `rejected`: the server does not accept a value. */
export type SaveState = "saved" | "unsaved" | "saving" | "offline" | "conflict" | "rejected" | "signedOut" | "gone" | "failed";

/** Concurrent changes that the merge could not combine. */
export interface Conflict {
  author: string | null;
  /** The fields that both sides have changed. */
  fields: { name: FieldName; mine: unknown; theirs: unknown }[];
  regions: Region[];
}

/** The delay of a save after the last edit, and its maximum after the first one, in milliseconds. */
const SAVE_DELAY = 1_000;
const SAVE_DELAY_MAX = 5_000;

/** The delay of the copy on this device. */
const DRAFT_DELAY = 300;

/** The delays of attempts while the server can't be reached. */
const RETRY_DELAYS = [1_000, 2_000, 5_000, 10_000, 30_000];

interface Version {
  etag: string;
  fields: Fields;
}

function fieldsOf(piece: Piece): Fields {
  const ids = (items: { id: string }[]) => items.map((item) => item.id);
  return {
    title: piece.title,
    slug: piece.slug,
    date: piece.date ?? null,
    description: piece.description ?? null,
    tags: ids(piece.tags),
    members: ids(piece.members),
    coverUrl: piece.coverUrl ?? null,
    coverAlt: piece.coverAlt ?? null,
    canonicalLink: piece.canonicalLink ?? null,
    content: piece.content as unknown as ContentNode,
  };
}

const differs = (one: unknown, other: unknown) => canonical(one) !== canonical(other);

/** The document of the editor. */
export interface ContentSource {
  read(): ContentNode;
  /** Shows a document that was merged. */
  replace(content: ContentNode): void;
  /** Returns a document of the server with the attributes that the editor writes. */
  normalize(content: ContentNode): ContentNode;
}

async function fetchPiece(workspace: string, id: string): Promise<{ piece: Piece; etag: string }> {
  const query = { id, content: true };
  const headers = { "Galley-Workspace": workspace };
  const { data, response } = await received(client.GET("/content-pieces", { params: { query }, headers }));
  return { piece: data as Piece, etag: response.headers.get("etag") ?? "" };
}

export class PieceDocument {
  readonly workspace: string;
  readonly id: string;
  /** The piece as the server has it, without the edits. */
  piece = $state.raw() as Piece;
  fields = $state.raw() as Fields;
  state = $state<SaveState>("saved");
  /** The messages of the fields that the server rejects. */
  rejected = $state.raw<Partial<Record<FieldName, string>>>({});
  problem = $state.raw<ApiError | null>(null);
  conflict = $state.raw<Conflict | null>(null);
  /** The author whose changes were merged last. */
  mergedWith = $state<string | null>(null);

  #base: Version;
  #theirs: Version | null = null;
  #source: ContentSource | null = null;
  #isContentEdited = false;
  #firstEdit: number | null = null;
  #saveTimer: ReturnType<typeof setTimeout> | undefined;
  #draftTimer: ReturnType<typeof setTimeout> | undefined;
  #saving: Promise<void> | null = null;
  #attempts = 0;
  #isClosed = false;

  private constructor(workspace: string, piece: Piece, etag: string) {
    this.workspace = workspace;
    this.id = piece.id;
    this.piece = piece;
    this.fields = fieldsOf(piece);
    this.#base = { etag, fields: this.fields };
    addEventListener("online", this.#retryNow);
    addEventListener("pagehide", this.#keep);
  }

  static async open(workspace: string, id: string): Promise<PieceDocument> {
    const { piece, etag } = await fetchPiece(workspace, id);
    return new PieceDocument(workspace, piece, etag);
  }

  /** Connects the editor that shows the content. */
  connect(source: ContentSource): void {
    this.#source = source;
    const content = source.normalize(this.fields.content);
    this.fields = { ...this.fields, content };
    const base = source.normalize(this.#base.fields.content);
    this.#base = { ...this.#base, fields: { ...this.#base.fields, content: base } };
  }

  edit<N extends FieldName>(name: N, value: Fields[N]): void {
    if (!differs(this.fields[name], value)) return;
    this.fields = { ...this.fields, [name]: value };
    const { [name]: _, ...others } = this.rejected;
    this.rejected = others;
    this.#edited();
  }

  /** Notes that the editor's document has changed. It is read later, as that takes time. */
  contentEdited(): void {
    this.#isContentEdited = true;
    this.#edited();
  }

  /** Applies the edits of a draft of this device. */
  async restore(draft: Draft): Promise<void> {
    const base = { ...this.#base.fields, ...draft.base } as Fields;
    const mine = { ...base, ...draft.fields } as Fields;
    this.#merge(base, mine, this.#base, null);
    if (this.conflict === null) this.#edited();
    // The edits are this tab's own, before the draft of the other one is gone.
    await this.#store();
    if (draft.key !== draftKey(this.workspace, this.id)) await deleteDraft(draft.key);
  }

  #edited(): void {
    if (this.state !== "conflict" && this.state !== "gone") this.state = this.state === "offline" ? "offline" : "unsaved";
    const now = Date.now();
    this.#firstEdit ??= now;
    clearTimeout(this.#draftTimer);
    this.#draftTimer = setTimeout(this.#keep, DRAFT_DELAY);
    if (this.state === "unsaved") this.#schedule(Math.min(SAVE_DELAY, this.#firstEdit + SAVE_DELAY_MAX - now));
  }

  #schedule(delay: number): void {
    clearTimeout(this.#saveTimer);
    if (!this.#isClosed) this.#saveTimer = setTimeout(() => void this.save(), Math.max(0, delay));
  }

  #retryNow = (): void => {
    if (this.state === "offline" || this.state === "failed") this.#schedule(0);
  };

  /** Reads the editor's document, if it has changed. */
  #readContent(): void {
    if (!this.#isContentEdited || this.#source === null) return;
    this.#isContentEdited = false;
    this.fields = { ...this.fields, content: this.#source.read() };
  }

  #changedNames(): FieldName[] {
    return NAMES.filter((name) => differs(this.fields[name], this.#base.fields[name]));
  }

  /** Stores the unsaved edits on this device. */
  #keep = (): void => {
    // Without storage, as in some private windows, edits are on the server only.
    this.#store().catch(() => {});
  };

  async #store(): Promise<void> {
    this.#readContent();
    const names = this.#changedNames();
    if (names.length === 0) return;
    const pick = (fields: Fields) => Object.fromEntries(names.map((name) => [name, fields[name]]));
    const draft = {
      workspace: this.workspace,
      piece: this.id,
      editedAt: Date.now(),
      title: this.fields.title,
      base: pick(this.#base.fields),
      fields: pick(this.fields),
    };
    await putDraft(draft);
  }

  /** Saves the edits now. With `completes`, the revision is no autosave. */
  async save(options: { completes?: boolean } = {}): Promise<void> {
    clearTimeout(this.#saveTimer);
    if (this.#saving !== null) {
      await this.#saving;
      if (this.state === "saved" && this.#changedNames().length === 0 && !options.completes) return;
    }
    this.#saving = this.#send(options.completes === true).finally(() => (this.#saving = null));
    await this.#saving;
  }

  async #send(completes: boolean): Promise<void> {
    if (this.state === "conflict" || this.state === "gone") return;
    this.#readContent();
    const names = this.#changedNames().filter((name) => this.rejected[name] === undefined);
    if (names.length === 0 && !completes) {
      await this.#settled();
      return;
    }
    const sent = Object.fromEntries(names.map((name) => [name, this.fields[name]]));
    this.state = "saving";
    this.#firstEdit = null;
    try {
      const body = { id: this.id, ...sent, autosave: !completes } as never;
      // The page may show another workspace by now.
      const headers = {
        "If-Match": this.#base.etag,
        Prefer: "return=representation",
        "Galley-Workspace": this.workspace,
      };
      const { data, response } = await received(client.PUT("/content-pieces", { body, headers } as never));
      this.#attempts = 0;
      this.problem = null;
      this.piece = { ...(data as Piece), content: this.piece.content };
      this.#base = {
        etag: response.headers.get("etag") ?? this.#base.etag,
        fields: { ...this.#base.fields, ...sent },
      };
      await this.#settled();
    } catch (error) {
      await this.#failed(error);
    }
  }

  /** Sets the state after a response: saved, unless there are further edits. */
  async #settled(): Promise<void> {
    this.#readContent();
    const names = this.#changedNames();
    if (names.length === 0) {
      clearTimeout(this.#draftTimer);
      this.state = "saved";
      await deleteDraft(draftKey(this.workspace, this.id)).catch(() => {});
    } else if (names.every((name) => this.rejected[name] !== undefined)) {
      this.state = "rejected";
    } else {
      this.state = "unsaved";
      this.#schedule(SAVE_DELAY);
    }
  }

  async #failed(error: unknown): Promise<void> {
    this.#keep();
    if (isUnreachable(error)) {
      this.state = "offline";
      this.#schedule(RETRY_DELAYS[Math.min(this.#attempts++, RETRY_DELAYS.length - 1)]!);
      return;
    }
    if (!(error instanceof ApiError)) throw error;
    this.problem = error;
    if (error.status === 401) this.state = "signedOut";
    else if (error.status === 404) this.state = "gone";
    else if (error.status === 412) await this.#rebase();
    else if (error.status === 400 || error.status === 409) this.#reject(error);
    else {
      this.state = "failed";
      this.#schedule(RETRY_DELAYS.at(-1)!);
    }
  }

  /** Holds back the fields that the server rejects, and sends the others again. */
  #reject(error: ApiError): void {
    const held: Partial<Record<FieldName, string>> = {};
    for (const { path, message } of error.issues) {
      const name = NAMES.find((one) => one === path[0]);
      if (name !== undefined) held[name] = message;
    }
    if (error.reason === "slug_taken") held.slug = error.message;
    if (Object.keys(held).length === 0) {
      this.state = "failed";
      return;
    }
    this.rejected = { ...this.rejected, ...held };
    this.state = "rejected";
    if (this.#changedNames().some((name) => this.rejected[name] === undefined)) this.#schedule(0);
  }

  /** Merges the edits with a later version of the server. */
  async #rebase(): Promise<void> {
    try {
      const { piece, etag } = await fetchPiece(this.workspace, this.id);
      const fields = fieldsOf(piece);
      fields.content = this.#source?.normalize(fields.content) ?? fields.content;
      this.#readContent();
      this.piece = piece;
      this.#merge(this.#base.fields, this.fields, { etag, fields }, piece.updatedBy?.name ?? null);
      if (this.conflict === null) {
        this.state = "unsaved";
        this.#schedule(0);
      }
    } catch (error) {
      await this.#failed(error);
    }
  }

  #merge(base: Fields, mine: Fields, theirs: Version, author: string | null): void {
    const merged: Record<string, unknown> = { ...theirs.fields };
    const conflicts: Conflict["fields"] = [];
    let regions: Region[] = [];
    let isMerged = false;
    for (const name of NAMES) {
      const isOther = differs(theirs.fields[name], base[name]);
      isMerged ||= isOther;
      if (!differs(mine[name], base[name]) || !differs(mine[name], theirs.fields[name])) continue;
      if (!isOther) {
        merged[name] = mine[name];
      } else if (name === "content") {
        regions = mergeDocuments(base.content, mine.content, theirs.fields.content);
        merged.content = resolved(regions, []);
      } else {
        conflicts.push({ name, mine: mine[name], theirs: theirs.fields[name] });
        merged[name] = mine[name];
      }
    }
    if (conflicts.length > 0 || hasConflict(regions)) {
      this.#theirs = theirs;
      this.fields = { ...(merged as unknown as Fields), content: mine.content };
      this.conflict = { author, fields: conflicts, regions: regions.length > 0 ? regions : [{ kind: "agreed", blocks: (merged.content as ContentNode).content ?? [] }] };
      this.state = "conflict";
      return;
    }
    this.#base = theirs;
    this.#show(merged as unknown as Fields);
    if (isMerged) this.mergedWith = author;
  }

  /** Sets all fields, and shows the content in the editor. */
  #show(fields: Fields): void {
    const isOther = differs(fields.content, this.#source?.read() ?? this.fields.content);
    this.fields = fields;
    if (isOther) this.#source?.replace(fields.content);
    this.#isContentEdited = false;
  }

  /** Resolves the conflict with a choice for each field and each region of the content. */
  resolve(fieldChoices: Partial<Record<FieldName, Choice>>, choices: Choice[]): void {
    const { conflict } = this;
    if (conflict === null || this.#theirs === null) return;
    const fields: Record<string, unknown> = { ...this.fields, content: resolved(conflict.regions, choices) };
    for (const { name, theirs } of conflict.fields) if (fieldChoices[name] === "theirs") fields[name] = theirs;
    this.#base = this.#theirs;
    this.#theirs = null;
    this.conflict = null;
    this.state = "unsaved";
    this.#show(fields as unknown as Fields);
    this.#edited();
    this.#schedule(0);
  }

  /** Moves the piece to the end of another group. */
  async move(contentGroupId: string): Promise<void> {
    await this.save();
    const body = { id: this.id, contentGroupId } as never;
    const headers = { "Galley-Workspace": this.workspace };
    await received(client.PUT("/content-pieces", { body, headers } as never));
    await this.#rebase();
  }

  /** Reads the piece again after an action on the server, such as a publication. */
  async reload(): Promise<void> {
    const { piece } = await fetchPiece(this.workspace, this.id);
    this.piece = piece;
  }

  /** Shows the state of the server after an action that changes fields, such as a restoration. Edits
   * of the meantime are merged. */
  async adopt(): Promise<void> {
    await this.#rebase();
  }

  /** Saves the last edits, and ends the saves. */
  async close(): Promise<void> {
    if (this.state === "unsaved" || this.#isContentEdited) await this.save();
    this.#isClosed = true;
    clearTimeout(this.#saveTimer);
    clearTimeout(this.#draftTimer);
    removeEventListener("online", this.#retryNow);
    removeEventListener("pagehide", this.#keep);
    this.#keep();
  }
}
