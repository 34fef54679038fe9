/** Changes of several pieces at once, and of their order. */
import { ApiError, client, type Piece, received } from "../api/client";
import { keys, type PieceFilter, type PiecePages, queryClient } from "./queries";

/** The limit of concurrent requests of one batch. */
const CONCURRENCY = 4;

/** The limit of attempts while others change the same piece. */
const ATTEMPTS = 4;

/** One operation on many resources: its progress, and the resources on which it failed. */
export class Batch<T = Piece> {
  isRunning = $state(false);
  done = $state(0);
  total = $state(0);
  failures = $state.raw<{ item: T; error: unknown }[]>([]);

  /** Runs an operation on each of them. Returns true if all have succeeded. */
  async run(items: readonly T[], operation: (item: T) => Promise<unknown>): Promise<boolean> {
    if (this.isRunning) return false;
    this.isRunning = true;
    this.done = 0;
    this.total = items.length;
    this.failures = [];
    const waiting = [...items];
    const worker = async () => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
        try {
          await operation(item);
        } catch (error) {
          this.failures = [...this.failures, { item, error }];
        }
        this.done += 1;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    this.isRunning = false;
    return this.failures.length === 0;
  }
}

export const deletePiece = (id: string) => received(client.DELETE("/content-pieces", { params: { query: { id } } } as never));

export const unpublishPiece = (id: string) => received(client.POST("/content-pieces/unpublish", { body: { id } } as never));

/** Takes a piece back from the trash. */
export const undeletePiece = (id: string) => received(client.POST("/content-pieces/undelete", { body: { id } } as never));

/** Publishes a piece now, or at a time; null cancels the schedule. */
export const publishPiece = (id: string, at?: string | null) =>
  received(client.POST("/content-pieces/publish", { body: { id, ...(at === undefined ? {} : { at }) } } as never));

/** Moves a piece to the end of a group. */
export const movePiece = (id: string, contentGroupId: string) =>
  received(client.PUT("/content-pieces", { body: { id, contentGroupId } } as never));

/** Selects the lists of single other groups. */
const isOtherGroup = (group: string) => (query: { queryKey: readonly unknown[] }) => {
  const filter = query.queryKey[2] as PieceFilter | undefined;
  return filter !== undefined && !filter.subtree && filter.group !== null && filter.group !== group;
};

/** The moves that wait for those before them, as each refers to a neighbour. */
let placing = Promise.resolve();
let waiting = 0;

/** Moves pieces before a position of a group's list in its own order. The list shows it at once, and
 * the order of the server returns after an error. */
export async function placePieces(workspace: string, key: readonly unknown[], group: string, moved: Piece[], before: number): Promise<void> {
  const ids = new Set(moved.map((piece) => piece.id));
  void queryClient.cancelQueries({ queryKey: keys.pieces(workspace) });
  const shown = queryClient.getQueryData<PiecePages>(key);
  const present = (shown?.pages ?? []).flatMap((page) => page.pieces);
  const rest = (pieces: Piece[]) => pieces.filter((piece) => !ids.has(piece.id));
  const above = rest(present.slice(0, before));
  const order = [...above, ...moved, ...rest(present.slice(before))];
  if (shown !== undefined) {
    const pages = shown.pages.map((page, at) => {
      const start = shown.pages.slice(0, at).reduce((sum, one) => sum + one.pieces.length, 0);
      const isLast = at === shown.pages.length - 1;
      return { ...page, pieces: order.slice(start, isLast ? undefined : start + page.pieces.length) };
    });
    queryClient.setQueriesData<PiecePages>({ queryKey: keys.pieces(workspace), predicate: isOtherGroup(group) }, (other) =>
      other === undefined ? other : { ...other, pages: other.pages.map((page) => ({ ...page, pieces: rest(page.pieces) })) },
    );
    queryClient.setQueryData<PiecePages>(key, { ...shown, pages });
  }
  waiting += 1;
  const done = placing.then(async () => {
    let referenceId = above.at(-1)?.id ?? null;
    for (const piece of moved) {
      const body = { id: piece.id, contentGroupId: group, referenceId };
      await received(client.PUT("/content-pieces", { body } as never));
      referenceId = piece.id;
    }
  });
  placing = done.catch(() => {});
  try {
    await done;
  } finally {
    waiting -= 1;
    // A read between two moves would show the order before the second one.
    if (waiting === 0) await queryClient.invalidateQueries({ queryKey: keys.pieces(workspace) });
  }
}

/** Adds a tag to a piece, or removes it. The tags that others set meanwhile stay. */
export async function setTag(id: string, tag: string, isSet: boolean): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { data, response } = await received(client.GET("/content-pieces", { params: { query: { id } } } as never));
    const present = (data as unknown as Piece).tags.map((one) => one.id);
    if (present.includes(tag) === isSet) return;
    const tags = isSet ? [...present, tag] : present.filter((one) => one !== tag);
    const headers = { "If-Match": (response.headers.get("etag") ?? "*").replace(/^W\//, "") };
    try {
      await received(client.PUT("/content-pieces", { body: { id, tags }, headers } as never));
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 412 && attempt < ATTEMPTS)) throw error;
    }
  }
}
