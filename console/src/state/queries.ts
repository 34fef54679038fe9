/** The cached reads of the API. Each key begins with the workspace. */
import { createInfiniteQuery, createQuery, QueryCache, QueryClient } from "@tanstack/svelte-query";
import type { FieldSchema } from "./custom_data";
import { can } from "./permissions.svelte";
import { ApiError, allPages, client, type Group, nextCursor, type Piece, received } from "../api/client";

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      // The session has ended. Unsaved edits are kept on this device when the page is left.
      if (error instanceof ApiError && error.status === 401) location.assign("/sign-in");
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // Otherwise a result that arrives before a view reads it is missed.
      notifyOnChangeProps: "all",
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status < 500),
    },
  },
});

/** The pieces of a list: a page is some screens long. */
const PAGE = 100;

/** The fields of a row. Others, such as the custom data, may be large. */
const ROW_FIELDS = ["title", "publication", "updatedAt", "updatedBy", "date", "tags", "contentGroupId", "order", "members"] as const;

export interface PieceFilter {
  group: string | null;
  subtree: boolean;
  sort: string;
  tag: string | null;
  member: string | null;
  /** The key of a variant that the pieces lack. */
  missing: string | null;
  /** The state of the publication. */
  state: string | null;
}

/** The pages of a list, as the cache has them. */
export type PiecePages = { pages: { pieces: Piece[]; next: string | null; total: string | null }[]; pageParams: unknown[] };

/** Returns the key of a list of pieces. */
export const piecesKey = (workspace: string, filter: PieceFilter) => [...keys.pieces(workspace), filter];

export const keys = {
  groups: (workspace: string) => [workspace, "groups"],
  pieces: (workspace: string) => [workspace, "pieces"],
  tags: (workspace: string) => [workspace, "tags"],
};

const piecesOf = (workspace: string, filter: PieceFilter) => ({
  queryKey: piecesKey(workspace, filter),
  initialPageParam: null as string | null,
  queryFn: async ({ pageParam }: { pageParam: string | null }) => {
    const { group, subtree, sort, tag, member, missing, state } = filter;
    const query = {
      perPage: PAGE,
      fields: [...ROW_FIELDS],
      sort,
      ...(group === null ? {} : { contentGroupId: [group], subtree }),
      ...(tag === null ? {} : { tagId: [tag] }),
      ...(member === null ? {} : { memberId: member }),
      ...(missing === null ? {} : { withoutVariant: missing }),
      ...(state === null ? {} : { state }),
      ...(pageParam === null ? { total: true } : { cursor: pageParam }),
    };
    const headers = { "Galley-Workspace": workspace };
    const { data, response } = await received(client.GET("/content-pieces/list", { params: { query }, headers } as never));
    return { pieces: data as unknown as Piece[], next: nextCursor(response), total: response.headers.get("total-count") };
  },
  getNextPageParam: (page: { next: string | null }) => page.next,
});

export function createPieces(workspace: () => string, filter: () => PieceFilter, isEnabled = () => true) {
  return createInfiniteQuery(() => ({ ...piecesOf(workspace(), filter()), enabled: isEnabled() }));
}

/** Returns the filter that an address states. */
export function filterOf(route: { group: string | null; query: URLSearchParams }): PieceFilter {
  return {
    group: route.group,
    subtree: route.query.get("subtree") !== "false",
    sort: route.query.get("sort") ?? "-updatedAt",
    tag: route.query.get("tag"),
    member: route.query.get("member"),
    missing: route.query.get("missing"),
    state: route.query.get("state"),
  };
}

/** Reads the first page of a list before its view exists. */
export function prefetchPieces(workspace: string, filter: PieceFilter): void {
  void queryClient.prefetchInfiniteQuery(piecesOf(workspace, filter));
}

/** Returns a group and all groups below it. */
function withDescendants(group: Group): Group[] {
  const below = (group.descendants as (Group | string)[]).filter((one) => typeof one !== "string");
  return [group, ...below.flatMap(withDescendants)];
}

const groupsOf = (workspace: string) => ({
  queryKey: keys.groups(workspace),
  queryFn: async () => {
    const top = await allPages((query) => client.GET("/content-groups/list", { params: { query: { ...query, subtree: true } } }));
    return top.flatMap(withDescendants);
  },
});

export function createGroups(workspace: () => string) {
  return createQuery(() => ({ ...groupsOf(workspace()), enabled: can("contentGroups:read") }));
}

/** Returns the first group, for a new piece without another place. A workspace without groups gets
 * one of this name. */
export async function firstGroup(workspace: string, name: string): Promise<string> {
  const groups = await queryClient.ensureQueryData(groupsOf(workspace));
  if (groups[0] !== undefined) return groups[0].id;
  const { data } = await received(client.POST("/content-groups", { body: { name } } as never));
  void queryClient.invalidateQueries({ queryKey: keys.groups(workspace) });
  return (data as { id: string }).id;
}

/** The schema of custom data that applies to the pieces of a group. */
export const schemaOf = (workspace: string, group: string) => ({
  queryKey: [workspace, "groups", group, "schema"],
  queryFn: async () => {
    const headers = { "Galley-Workspace": workspace };
    const { data } = await received(client.GET("/content-groups/schema", { params: { query: { id: group } }, headers }));
    return (data.customDataSchema ?? null) as FieldSchema | null;
  },
});

/** Another piece of a group with this slug, in the variant that is edited. */
export function createSlugOwner(workspace: () => string, piece: () => { id: string; variant: string | null; group: string; slug: string }) {
  return createQuery(() => {
    const { id, variant, group, slug } = piece();
    const query = { contentGroupId: [group], slug, fields: ["title"], perPage: 2, ...(variant === null ? {} : { variant }) };
    return {
      queryKey: [workspace(), "slug", group, variant, slug],
      enabled: slug !== "",
      queryFn: async () => (await received(client.GET("/content-pieces/list", { params: { query } } as never))).data as unknown as Piece[],
      select: (found: Piece[]) => found.find((one) => one.id !== id) ?? null,
    };
  });
}

export function createMembers(workspace: () => string) {
  return createQuery(() => ({
    queryKey: [workspace(), "members"],
    enabled: can("workspaceMemberships:read"),
    queryFn: () => allPages((query) => client.GET("/workspace-memberships/list-members", { params: { query } })),
  }));
}

export function createRoles(workspace: () => string) {
  return createQuery(() => ({
    queryKey: [workspace(), "roles"],
    enabled: can("roles:read"),
    queryFn: () => allPages((query) => client.GET("/roles/list", { params: { query } })),
  }));
}

export function createVariants(workspace: () => string) {
  return createQuery(() => ({
    queryKey: [workspace(), "variants"],
    enabled: can("variants:read"),
    queryFn: () => allPages((query) => client.GET("/variants/list", { params: { query } })),
  }));
}

export function createTags(workspace: () => string) {
  return createQuery(() => ({
    queryKey: keys.tags(workspace()),
    enabled: can("tags:read"),
    queryFn: () => allPages((query) => client.GET("/tags/list", { params: { query } })),
  }));
}
