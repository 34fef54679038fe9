// The same program on the client that @hey-api/openapi-ts generates.
import { client } from "./generated/hey-api/client.gen.js";
import {
  createContentPiece,
  getContentPiece,
  listContentGroups,
  listEvents,
} from "./generated/hey-api/sdk.gen.js";
import type {
  BlockNode,
  ContentPieceAddedEvent,
  EventEnvelope,
  Problem,
} from "./generated/hey-api/types.gen.js";

client.setConfig({ baseUrl: "http://127.0.0.1:8080", auth: () => "galley_token" });

function describe(problem: Problem): string {
  return problem.reason === "not_found" ? "gone" : `${problem.status} ${problem.detail}`;
}

function levels(blocks: BlockNode[]): number[] {
  return blocks.flatMap((block) => {
    if (block.type === "heading") return [block.attrs.level];
    if (block.type === "blockquote") return levels(block.content ?? []);
    return [];
  });
}

/** A webhook's receiver. */
export function received(event: ContentPieceAddedEvent): string {
  return event.data.slug;
}

export function slugOf(event: EventEnvelope): string | undefined {
  return "slug" in event.data ? event.data.slug : undefined;
}

export async function run(): Promise<number[]> {
  const groups = await listContentGroups();
  const group = groups.data?.[0];
  if (group === undefined) throw new Error("there is no content group");
  const created = await createContentPiece({
    body: {
      title: "Typed",
      slug: "typed",
      tags: [],
      members: [],
      contentGroupId: group.id,
      customData: { pinned: true },
      content: "<h2>Two</h2>",
    },
  });
  if (created.data === undefined) throw new Error(describe(created.error));
  const piece = await getContentPiece({ query: { id: created.data.id, content: true } });
  const events = await listEvents({ query: { after: 0 } });
  const slugs: (string | undefined)[] = (events.data ?? []).map(slugOf);
  const content = piece.data?.content;
  if (content === undefined || typeof content === "string") throw new Error(slugs.join());
  return levels(content.content ?? []);
}
