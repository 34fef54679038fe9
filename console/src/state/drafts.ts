/** Unsaved edits on this device, until the server has acknowledged them. */
import { type DBSchema, type IDBPDatabase, openDB } from "idb";

/** The unsaved edits of one piece, by one page. */
export interface Draft {
  key: string;
  /** The user who made the edits. Others of this browser do not see them. */
  user: string;
  workspace: string;
  piece: string;
  /** The key of the variant; null for the piece itself. */
  variant: string | null;
  /** The name of the page's lock. */
  page: string;
  /** The time of the last edit, in milliseconds. */
  editedAt: number;
  title: string;
  /** The fields as they were before the edits. */
  base: Record<string, unknown>;
  /** The edited fields. */
  fields: Record<string, unknown>;
}

interface Store extends DBSchema {
  drafts: { key: string; value: Draft };
}

let opened: Promise<IDBPDatabase<Store>> | null = null;

function store(): Promise<IDBPDatabase<Store>> {
  opened ??= openDB<Store>("galley", 1, {
    upgrade(database) {
      database.createObjectStore("drafts", { keyPath: "key" });
    },
    terminated() {
      opened = null;
    },
  });
  return opened;
}

function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
}

/** The name of this page: a reload and a duplicate have others. */
const page = `galley-page-${randomName()}`;

// The lock tells other pages that this one is open. Browsers offer locks to secure pages only.
void navigator.locks?.request(page, () => new Promise<never>(() => {}));

/** The keys of the documents that are open in this page. */
const openKeys = new Set<string>();

let user = "";

/** Sets the user who is signed in. */
export function useDraftsOf(id: string): void {
  user = id;
}

/** Returns the key of a document that is opened. */
export function openDraft(): string {
  const key = randomName();
  openKeys.add(key);
  return key;
}

/** Notes that a document is closed. Its draft, if there is one, is offered again. */
export function closeDraft(key: string): void {
  openKeys.delete(key);
}

export async function putDraft(draft: Omit<Draft, "page" | "user">): Promise<void> {
  await (await store()).put("drafts", { ...draft, user, page });
}

export async function deleteDraft(key: string): Promise<void> {
  await (await store()).delete("drafts", key);
}

/** Returns the drafts of a workspace that no open document works on, newest first. */
export async function abandonedDrafts(workspace: string): Promise<Draft[]> {
  const all = await (await store()).getAll("drafts");
  const held = (await navigator.locks?.query())?.held ?? [];
  const pages = new Set(held.map((lock) => lock.name));
  return all
    .filter((draft) => draft.user === user && draft.workspace === workspace)
    .filter((draft) => (draft.page === page ? !openKeys.has(draft.key) : !pages.has(draft.page)))
    .sort((one, other) => other.editedAt - one.editedAt);
}
