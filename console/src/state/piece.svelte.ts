/** A piece that is edited: its fields, and the saves of their changes. */
import { mergedFields } from "./custom_data";
import { ApiError, client, type ContentNode, isUnreachable, type Piece, received } from "../api/client";
import { t } from "../i18n";
import { closeDraft, deleteDraft, type Draft, openDraft, putDraft } from "./drafts";
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
  coverWidth: string | null;
  canonicalLink: string | null;
  /** JSON, as the server stores it. */
  customData: string | null;
  content: ContentNode;
}

export type FieldName = keyof Fields;

const NAMES: FieldName[] = ["title", "slug", "date", "description", "tags", "members", "coverUrl", "coverAlt", "coverWidth", "canonicalLink", "customData", "content"];

/** `unsaved`: kept on this device, and sent soon. `rejected`: the server does not accept a value. */
export type SaveState = "saved" | "unsaved" | "saving" | "offline" | "conflict" | "rejected" | "signedOut" | "gone" | "failed";

/** Concurrent changes that the merge could not combine. */
export interface Conflict {
  author: string | null;
  /** True if the edits of a draft were applied to a piece that has changed since. */
  isOfDraft?: boolean;
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

/** The limit of merges in one save, against a server or proxy that accepts no entity tag. */
const MERGE_LIMIT = 4;

/** The documents that are open, and those that are being closed. */
const openDocuments = new Set<PieceDocument>();
const closing = new Map<string, Promise<void>>();

/** Saves the edits of all open documents, as far as possible. */
export async function saveAll(): Promise<void> {
  await Promise.all([...openDocuments].map((piece) => piece.save()));
}

interface Version {
  etag: string;
  fields: Fields;
}

export function fieldsOf(piece: Piece): Fields {
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
    coverWidth: piece.coverWidth ?? null,
    canonicalLink: piece.canonicalLink ?? null,
    customData: (piece.customData as unknown as string | null) ?? null,
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

/** Returns the entity tag of a response. Proxies that compress make it a weak one, which matches
 * nothing; the version in it stays exact. */
function entityTag(response: Response): string {
  return (response.headers.get("etag") ?? "").replace(/^W\//, "");
}

/** Reads a piece, as it is in a variant. */
export async function fetchPiece(workspace: string, id: string, variant: string | null): Promise<{ piece: Piece; etag: string }> {
  const query = { id, content: true, ...(variant === null ? {} : { variant }) };
  const headers = { "Galley-Workspace": workspace };
  const { data, response } = await received(client.GET("/content-pieces", { params: { query }, headers }));
  return { piece: data as Piece, etag: entityTag(response) };
}

export class PieceDocument {
  readonly workspace: string;
  readonly id: string;
  /** The key of the variant whose overrides are edited; null for the piece itself. */
  readonly variant: string | null;
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
  /** The number of merges with changes by others. */
  merges = 0;

  readonly #draftKey = openDraft();
  /** The version that the edits are based on. */
  #base: Version;
  /** The version that a conflict is about. */
  #next: Version | null = null;
  /** The fields of a request without a response. The server may have them. */
  #unconfirmed: Partial<Fields> | null = null;
  #source: ContentSource | null = null;
  /** Outlives the editor, as the last save may need a merge. */
  #normalize = (content: ContentNode): ContentNode => content;
  #isContentEdited = false;
  #firstEdit: number | null = null;
  #saveTimer: ReturnType<typeof setTimeout> | undefined;
  #draftTimer: ReturnType<typeof setTimeout> | undefined;
  /** The requests of this document, one after another. */
  #queue: Promise<unknown> = Promise.resolve();
  #attempts = 0;
  #isClosed = false;

  /** True after the last save: further edits would not reach the server. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The part of a request that names the variant. */
  get #variantOnly(): { variant?: string } {
    return this.variant === null ? {} : { variant: this.variant };
  }

  private constructor(workspace: string, variant: string | null, piece: Piece, etag: string) {
    this.workspace = workspace;
    this.variant = variant;
    this.id = piece.id;
    this.piece = piece;
    this.fields = fieldsOf(piece);
    this.#base = { etag, fields: this.fields };
    openDocuments.add(this);
    addEventListener("online", this.#retryNow);
    addEventListener("pagehide", this.#keep);
  }

  static async open(workspace: string, id: string, variant: string | null): Promise<PieceDocument> {
    // The last save of the same piece comes first.
    await closing.get(id);
    const { piece, etag } = await fetchPiece(workspace, id, variant);
    return new PieceDocument(workspace, variant, piece, etag);
  }

  /** Connects the editor that shows the content. */
  connect(source: ContentSource): void {
    this.#source = source;
    this.#normalize = source.normalize;
    const content = source.normalize(this.fields.content);
    this.fields = { ...this.fields, content };
    const base = source.normalize(this.#base.fields.content);
    this.#base = { ...this.#base, fields: { ...this.#base.fields, content: base } };
  }

  /** Returns the names of the fields with the same value as in another version. */
  sameNames(other: Fields): FieldName[] {
    return NAMES.filter((name) => !differs(this.fields[name], name === "content" ? this.#normalize(other.content) : other[name]));
  }

  edit<N extends FieldName>(name: N, value: Fields[N]): void {
    if (!differs(this.fields[name], value)) return;
    this.fields = { ...this.fields, [name]: value };
    this.#accept(name);
    this.#edited();
  }

  /** Notes that the editor's document has changed. It is read later, as that takes time. */
  contentEdited(): void {
    this.#isContentEdited = true;
    if (this.rejected.content !== undefined) this.#accept("content");
    this.#edited();
  }

  /** Lets a field be sent again that the server has rejected. */
  #accept(name: FieldName): void {
    const { [name]: _, ...others } = this.rejected;
    this.rejected = others;
  }

  /** Applies the edits of a draft of this device to the present text. */
  async restore(draft: Draft): Promise<void> {
    this.#readContent();
    const base = { ...this.#base.fields, ...draft.base } as Fields;
    const mine = { ...base, ...draft.fields } as Fields;
    this.#merge(base, mine, this.fields, this.#base, null);
    if (this.conflict !== null) this.conflict = { ...this.conflict, isOfDraft: true };
    this.rejected = {};
    if (this.conflict === null) this.#edited();
    // The edits are this document's own, before the draft is gone.
    await this.#store();
    await deleteDraft(draft.key);
  }

  #edited(): void {
    if (this.state !== "conflict" && this.state !== "gone" && this.state !== "offline") this.state = "unsaved";
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
    await putDraft({
      key: this.#draftKey,
      workspace: this.workspace,
      piece: this.id,
      variant: this.variant,
      editedAt: Date.now(),
      title: this.fields.title,
      base: pick(this.#base.fields),
      fields: pick(this.fields),
    });
  }

  /** Runs requests one after another, as each needs the entity tag of the one before. */
  #run<T>(request: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(request);
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Saves the edits now. With `completes`, the revision is no autosave. */
  save(options: { completes?: boolean } = {}): Promise<void> {
    clearTimeout(this.#saveTimer);
    return this.#run(() => this.#send(options.completes === true));
  }

  /** Saves the edits, or throws if the server does not have them all. */
  async saveAllEdits(): Promise<void> {
    await this.save({ completes: true });
    if (this.state !== "saved") throw new Error(t.saveFirst);
  }

  async #send(completes: boolean): Promise<void> {
    for (let merges = 0; ; merges += 1) {
      if (this.state === "conflict" || this.state === "gone") return;
      this.#readContent();
      const names = this.#changedNames().filter((name) => this.rejected[name] === undefined);
      if (names.length === 0 && !completes) return await this.#settled();
      const sent = Object.fromEntries(names.map((name) => [name, this.fields[name]])) as Partial<Fields>;
      this.state = "saving";
      this.#firstEdit = null;
      try {
        await this.#put(sent, completes);
        return await this.#settled();
      } catch (error) {
        const isOutdated = error instanceof ApiError && error.status === 412 && merges < MERGE_LIMIT;
        if (!isOutdated) return await this.#failed(error, sent);
      }
      try {
        await this.#rebase();
      } catch (error) {
        return await this.#failed(error, null);
      }
    }
  }

  async #put(sent: Partial<Fields>, completes: boolean): Promise<void> {
    const body = { id: this.id, ...this.#variantOnly, ...sent, autosave: !completes } as never;
    // The page may show another workspace by now.
    const headers = {
      "If-Match": this.#base.etag,
      Prefer: "return=representation",
      "Galley-Workspace": this.workspace,
    };
    const { data, response } = await received(client.PUT("/content-pieces", { body, headers } as never));
    const piece = data as Piece | undefined;
    // Another server in between may have responded, as those of hotels do.
    if (piece?.id !== this.id) throw new TypeError("the response is not by Galley");
    this.#attempts = 0;
    this.#unconfirmed = null;
    this.problem = null;
    this.piece = { ...piece, content: this.piece.content };
    this.#base = { etag: entityTag(response), fields: { ...this.#base.fields, ...sent } };
  }

  /** Sets the state after a response: saved, unless there are further edits. */
  async #settled(): Promise<void> {
    this.#readContent();
    const names = this.#changedNames();
    if (names.length === 0) {
      clearTimeout(this.#draftTimer);
      this.state = "saved";
      await deleteDraft(this.#draftKey).catch(() => {});
    } else if (names.every((name) => this.rejected[name] !== undefined)) {
      this.state = "rejected";
    } else {
      this.state = "unsaved";
      this.#schedule(SAVE_DELAY);
    }
  }

  async #failed(error: unknown, sent: Partial<Fields> | null): Promise<void> {
    this.#keep();
    if (isUnreachable(error)) {
      this.#unconfirmed = sent ?? this.#unconfirmed;
      this.state = "offline";
      this.#schedule(RETRY_DELAYS[Math.min(this.#attempts++, RETRY_DELAYS.length - 1)]!);
      return;
    }
    if (!(error instanceof ApiError)) {
      this.state = "failed";
      throw error;
    }
    this.problem = error;
    if (error.status === 401) this.state = "signedOut";
    else if (error.status === 404) this.state = "gone";
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
    const { piece, etag } = await fetchPiece(this.workspace, this.id, this.variant);
    const fields = fieldsOf(piece);
    fields.content = this.#normalize(fields.content);
    this.#readContent();
    this.piece = piece;
    let base = this.#base.fields;
    let author = piece.updatedBy?.name ?? null;
    if (this.#unconfirmed !== null) {
      // The server has the edits of the request whose response was lost: they are no other's.
      const sent = this.#unconfirmed;
      const isOwn = NAMES.every((name) => !(name in sent) || !differs(fields[name], sent[name]));
      if (isOwn) {
        base = { ...base, ...sent };
        author = null;
      }
      this.#unconfirmed = null;
    }
    const isOther = NAMES.some((name) => differs(fields[name], base[name]));
    this.#merge(base, this.fields, fields, { etag, fields }, author);
    if (this.conflict !== null) return;
    this.state = "unsaved";
    if (isOther) {
      this.mergedWith = author ?? "";
      this.merges += 1;
    }
  }

  /** Merges `mine` and `theirs`, both changed since `base`. `next` is the version that the result is
   * based on. */
  #merge(base: Fields, mine: Fields, theirs: Fields, next: Version, author: string | null): void {
    const merged: Record<string, unknown> = { ...theirs };
    const conflicts: Conflict["fields"] = [];
    let regions: Region[] = [];
    for (const name of NAMES) {
      if (!differs(mine[name], base[name]) || !differs(mine[name], theirs[name])) continue;
      const data = name === "customData" ? mergedFields(base[name], mine[name], theirs[name]) : undefined;
      if (!differs(theirs[name], base[name])) {
        merged[name] = mine[name];
      } else if (name === "tags" || name === "members") {
        const [before, own, other] = [base[name], mine[name], theirs[name]];
        const kept = other.filter((id) => own.includes(id) || !before.includes(id));
        merged[name] = [...kept, ...own.filter((id) => !before.includes(id) && !other.includes(id))];
      } else if (data !== undefined) {
        merged[name] = data;
      } else if (name === "content") {
        regions = mergeDocuments(base.content, mine.content, theirs.content);
        merged.content = resolved(regions, []);
      } else {
        conflicts.push({ name, mine: mine[name], theirs: theirs[name] });
        merged[name] = mine[name];
      }
    }
    if (conflicts.length > 0 || hasConflict(regions)) {
      const agreed: Region = { kind: "agreed", blocks: (merged.content as ContentNode).content ?? [] };
      this.#next = next;
      this.fields = { ...(merged as unknown as Fields), content: mine.content };
      this.conflict = { author, fields: conflicts, regions: regions.length > 0 ? regions : [agreed] };
      this.state = "conflict";
      return;
    }
    this.#base = next;
    this.#next = null;
    this.conflict = null;
    this.#show(merged as unknown as Fields);
  }

  /** Compares the present text again with the present state of the server: both may have changed
   * since the conflict was found. */
  async review(): Promise<void> {
    await this.#run(async () => {
      const { conflict } = this;
      // The edits of a draft have another base, and are decided on at once.
      if (conflict === null || conflict.isOfDraft || this.#next === null) return;
      // The fields that were taken over from the server are no edits.
      const seen = this.#next.fields;
      const taken = NAMES.filter((name) => !differs(this.fields[name], seen[name])).map((name) => [name, seen[name]]);
      this.#base = { ...this.#base, fields: { ...this.#base.fields, ...Object.fromEntries(taken) } };
      try {
        await this.#rebase();
        if (this.conflict === null) await this.#settled();
      } catch {
        // Without the server, the conflict is that with its last known state.
        this.#readContent();
        this.#merge(this.#base.fields, this.fields, this.#next.fields, this.#next, conflict.author);
      }
    });
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
    if (conflict === null || this.#next === null) return;
    const fields: Record<string, unknown> = { ...this.fields, content: resolved(conflict.regions, choices) };
    for (const { name, theirs } of conflict.fields) if (fieldChoices[name] === "theirs") fields[name] = theirs;
    this.#base = this.#next;
    this.#next = null;
    this.conflict = null;
    this.rejected = {};
    this.state = "unsaved";
    this.#show(fields as unknown as Fields);
    this.#edited();
    this.#schedule(0);
  }

  /** Shows changes by others, unless there are own edits: their save merges them. */
  async refresh(): Promise<void> {
    await this.#run(async () => {
      if (this.state !== "saved" || this.#isContentEdited) return;
      await this.#rebase();
      await this.#settled();
    });
  }

  /** Moves the piece to the end of another group, with the custom data that the group requires. */
  async move(contentGroupId: string, customData?: string | null): Promise<void> {
    await this.saveAllEdits();
    const body = { id: this.id, contentGroupId, ...(customData === undefined ? {} : { customData }) } as never;
    const headers = { "Galley-Workspace": this.workspace };
    await this.#run(() => received(client.PUT("/content-pieces", { body, headers } as never)));
    await this.adopt();
  }

  /** Removes the override of a field, or of all, so that the piece's own value applies in the variant. */
  async useOriginal(names: FieldName[]): Promise<void> {
    await this.saveAllEdits();
    const body = { id: this.id, ...this.#variantOnly, ...Object.fromEntries(names.map((name) => [name, null])) } as never;
    const headers = { "Galley-Workspace": this.workspace };
    await this.#run(() => received(client.PUT("/content-pieces", { body, headers } as never)));
    await this.adopt();
  }

  /** Reads the piece again after an action on the server, such as a publication. */
  async reload(): Promise<void> {
    await this.#run(async () => {
      this.piece = (await fetchPiece(this.workspace, this.id, this.variant)).piece;
    });
  }

  /** Shows the state of the server after an action that changes fields, such as a restoration. Edits
   * of the meantime are merged. */
  async adopt(): Promise<void> {
    await this.#run(async () => {
      await this.#rebase();
      await this.#settled();
    });
    this.mergedWith = null;
  }

  /** Saves the last edits, and ends the saves. What can't be saved stays on this device. */
  close(): Promise<void> {
    this.#readContent();
    this.#keep();
    // The editor is gone from here on.
    this.#source = null;
    const isUnsaved = this.state !== "saved" && this.state !== "gone";
    const closed = (isUnsaved ? this.save() : this.#run(() => Promise.resolve())).catch(() => {}).then(async () => {
      this.#isClosed = true;
      clearTimeout(this.#saveTimer);
      clearTimeout(this.#draftTimer);
      removeEventListener("online", this.#retryNow);
      removeEventListener("pagehide", this.#keep);
      openDocuments.delete(this);
      await this.#store().catch(() => {});
      closeDraft(this.#draftKey);
    });
    const ended = closed.finally(() => {
      if (closing.get(this.id) === ended) closing.delete(this.id);
    });
    closing.set(this.id, ended);
    return ended;
  }
}
