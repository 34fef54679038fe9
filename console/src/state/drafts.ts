/** Unsaved edits on this device, until the server has acknowledged them. */
import { type DBSchema, type IDBPDatabase, openDB } from "idb";

/** The edits of one piece in one tab of the browser. */
export interface Draft {
  key: string;
  /** The user who made the edits. Others of this browser do not see them. */
  user: string;
  workspace: string;
  piece: string;
  tab: string;
  /** The time of the last edit, in milliseconds. */
  editedAt: number;
  title: string;
  /** The fields as they were before the edits. */
  base: Record<string, unknown>;
  /** The edited fields. */
  fields: Record<string, unknown>;
}

interface Store extends DBSchema {
  drafts: { key: string; value: Draft; indexes: { piece: [string, string] } };
}

let opened: Promise<IDBPDatabase<Store>> | null = null;

function store(): Promise<IDBPDatabase<Store>> {
  opened ??= openDB<Store>("galley", 1, {
    upgrade(database) {
      database.createObjectStore("drafts", { keyPath: "key" }).createIndex("piece", ["workspace", "piece"]);
    },
    terminated() {
      opened = null;
    },
  });
  return opened;
}

/** The name of this tab. A reload keeps it, and a new tab has another. */
const tab = (() => {
  const known = sessionStorage.getItem("galley-tab");
  // A duplicated tab copies the storage, but is no reload.
  const isReload = performance.getEntriesByType("navigation").some((one) => (one as PerformanceNavigationTiming).type !== "navigate");
  const name = known !== null && isReload ? known : Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
  sessionStorage.setItem("galley-tab", name);
  return name;
})();

const lockName = (name: string) => `galley-tab-${name}`;

// The lock tells other tabs that this one is open. Browsers offer locks to secure pages only.
void navigator.locks?.request(lockName(tab), () => new Promise<never>(() => {}));

let user = "";

/** Sets the user who is signed in. */
export function useDraftsOf(id: string): void {
  user = id;
}

export function draftKey(workspace: string, piece: string): string {
  return `${user} ${workspace} ${piece} ${tab}`;
}

export async function putDraft(draft: Omit<Draft, "key" | "tab" | "user">): Promise<void> {
  await (await store()).put("drafts", { ...draft, user, tab, key: draftKey(draft.workspace, draft.piece) });
}

export async function deleteDraft(key: string): Promise<void> {
  await (await store()).delete("drafts", key);
}

/** Returns the drafts of a workspace that no open tab works on, newest first. */
export async function abandonedDrafts(workspace: string): Promise<Draft[]> {
  const all = await (await store()).getAll("drafts");
  const held = (await navigator.locks?.query())?.held ?? [];
  const open = new Set(held.map((lock) => lock.name));
  return all
    .filter((draft) => draft.user === user && draft.workspace === workspace)
    .filter((draft) => draft.tab === tab || !open.has(lockName(draft.tab)))
    .sort((one, other) => other.editedAt - one.editedAt);
}
