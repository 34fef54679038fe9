/** The event stream of the workspace, which keeps the cached reads fresh. */
import { client, received } from "../api/client";
import { queryClient } from "./queries";

/** The delay in which the events of one change are collected, in milliseconds. */
const COLLECT = 500;

const RECONNECT = 10_000;

/** The reads that each type of event outdates. */
const OUTDATED: Record<string, string[]> = {
  assetAdded: ["assets"],
  assetRemoved: ["assets"],
  contentPieceAdded: ["pieces"],
  contentPieceUpdated: ["pieces"],
  contentPieceRemoved: ["pieces", "trash"],
  contentPiecePublished: ["pieces"],
  contentPieceUnpublished: ["pieces"],
  contentGroupAdded: ["groups"],
  contentGroupChanged: ["groups"],
  contentGroupMoved: ["groups", "pieces"],
  contentGroupRemoved: ["groups", "pieces", "trash"],
  memberInvited: ["members"],
  memberAdded: ["members"],
  memberRemoved: ["members", "pieces"],
  tagChanged: ["tags", "pieces"],
  variantChanged: ["variants"],
};

/** The views that follow one piece. */
const followers = new Set<(piece: string) => void>();

/** Calls a function with the id of each piece that changes. Returns the function that ends it. */
export function onPieceChange(follower: (piece: string) => void): () => void {
  followers.add(follower);
  return () => followers.delete(follower);
}

/** Follows the events while the page is visible, as a browser has few connections to one server.
 * Returns the function that ends it. */
export function followEvents(workspace: string): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isEnded = false;
  /** Raised by each opening and closing. A response of an earlier one opens nothing. */
  let generation = 0;
  const outdated = new Set<string>();

  function refresh() {
    for (const name of outdated) void queryClient.invalidateQueries({ queryKey: [workspace, name] });
    outdated.clear();
  }

  function outdate(event: MessageEvent<string>) {
    if (/^contentPiece(Updated|Published|Unpublished)$/.test(event.type)) {
      const { data } = JSON.parse(event.data) as { data: { id: string } };
      for (const follower of followers) follower(data.id);
    }
    for (const name of [...(OUTDATED[event.type] ?? []), "activity"]) outdated.add(name);
    clearTimeout(timer);
    timer = setTimeout(refresh, COLLECT);
  }

  function close() {
    generation += 1;
    source?.close();
    source = null;
  }

  async function open() {
    const own = (generation += 1);
    try {
      const headers = { "Galley-Workspace": workspace };
      const { data: position } = await received(client.GET("/events/position", { headers }));
      const { data: ticket } = await received(client.POST("/events/ticket", { headers }));
      if (own !== generation || isEnded) return;
      source = new EventSource(`/events?after=${position.sequence}&ticket=${encodeURIComponent(ticket.ticket)}`);
      for (const type of Object.keys(OUTDATED)) source.addEventListener(type, outdate);
      source.onerror = () => {
        // A ticket serves one connection. Reads on focus fill the gap.
        close();
        retry();
      };
    } catch {
      if (own === generation) retry();
    }
  }

  function retry() {
    const own = generation;
    setTimeout(() => {
      if (own !== generation || isEnded || document.hidden) return;
      outdated.add("pieces");
      refresh();
      void open();
    }, RECONNECT);
  }

  const visibility = () => (document.hidden ? close() : void open());
  document.addEventListener("visibilitychange", visibility);
  if (!document.hidden) void open();
  return () => {
    isEnded = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", visibility);
    close();
  };
}

