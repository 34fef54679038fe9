/** Merges of concurrent changes of a document, by its top-level blocks. */
import { diff3Merge } from "node-diff3";
import type { ContentNode } from "../api/client";

/** Blocks that both sides have, or that each side has changed in another way. */
export type Region =
  | { kind: "agreed"; blocks: ContentNode[] }
  | { kind: "conflict"; mine: ContentNode[]; theirs: ContentNode[] };

const blocksOf = (document: ContentNode): string[] => (document.content ?? []).map((block) => canonical(block));

/** Returns JSON with sorted keys, so that equal nodes have equal texts. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}

const parsed = (blocks: string[]): ContentNode[] => blocks.map((text) => JSON.parse(text) as ContentNode);

/** Merges two changed documents with their common base. */
export function mergeDocuments(base: ContentNode, mine: ContentNode, theirs: ContentNode): Region[] {
  const regions = diff3Merge(blocksOf(mine), blocksOf(base), blocksOf(theirs), { excludeFalseConflicts: true });
  return regions.flatMap((region): Region[] => {
    if (region.conflict === undefined) return [{ kind: "agreed", blocks: parsed(region.ok ?? []) }];
    const { a, o, b } = region.conflict;
    if (a.length !== o.length || b.length !== o.length) return [conflict(a, b)];
    // Changes of neighbouring blocks are one region, in which each block has a counterpart.
    return o.map((before, at) => {
      if (a[at] === before || a[at] === b[at]) return { kind: "agreed", blocks: parsed([b[at]!]) };
      return b[at] === before ? { kind: "agreed", blocks: parsed([a[at]!]) } : conflict([a[at]!], [b[at]!]);
    });
  });
}

const conflict = (mine: string[], theirs: string[]): Region => ({ kind: "conflict", mine: parsed(mine), theirs: parsed(theirs) });

/** A choice for a conflict. */
export type Choice = "mine" | "theirs" | "both";

/** Returns the document with these choices, in the order of the conflicts. */
export function resolved(regions: Region[], choices: Choice[]): ContentNode {
  let at = 0;
  const content = regions.flatMap((region) => {
    if (region.kind === "agreed") return region.blocks;
    const choice = choices[at++] ?? "both";
    if (choice === "mine") return region.mine;
    return choice === "theirs" ? region.theirs : [...region.mine, ...region.theirs];
  });
  return { type: "doc", content: content.length === 0 ? [{ type: "paragraph" }] : content };
}

export const hasConflict = (regions: Region[]): boolean => regions.some((region) => region.kind === "conflict");
