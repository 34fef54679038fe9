/** The client of the public API. Each request names the workspace of the page. */
import createClient from "openapi-fetch";
import type { components, paths } from "../../generated/schema";

export type Piece = components["schemas"]["ContentPiece"];
export type Group = components["schemas"]["ContentGroup"];
export type Asset = components["schemas"]["Asset"];
export type SearchHit = components["schemas"]["SearchHit"];
export type Highlight = components["schemas"]["Highlight"];

/** The node of a document, as TipTap has it. */
export interface ContentNode {
  type: string;
  attrs?: Record<string, unknown>;
  content?: ContentNode[];
  marks?: { type: string; attrs?: Record<string, unknown> }[];
  text?: string;
}

let workspace: string | null = null;

/** Sets the workspace of all further requests. */
export function useWorkspace(id: string | null): void {
  workspace = id;
}

/** The timeout of a request. A dead connection would otherwise block the saves behind it. */
const TIMEOUT = 30_000;

export const client = createClient<paths>({
  credentials: "same-origin",
  fetch: (request) => fetch(request, { signal: AbortSignal.timeout(TIMEOUT) }),
});

client.use({
  onRequest({ request }) {
    if (workspace !== null && !request.headers.has("Galley-Workspace")) request.headers.set("Galley-Workspace", workspace);
    return request;
  },
});

interface Problem {
  reason: string;
  title: string;
  detail: string;
  requestId: string;
  issues?: { path: (string | number)[]; message: string }[];
}

/** A response other than success. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly title: string;
  readonly requestId: string;
  readonly issues: { path: (string | number)[]; message: string }[];

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? `The server responds with ${status}.`);
    this.status = status;
    this.reason = problem.reason ?? "unknown";
    this.title = problem.title ?? "";
    this.requestId = problem.requestId ?? "";
    this.issues = problem.issues ?? [];
  }
}

/** Returns true if the custom data of a piece violate the schema of its group. */
export function asksCustomData(error: unknown): boolean {
  return error instanceof ApiError && error.issues.some((issue) => issue.path[0] === "customData");
}

interface Result<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the data and the response of a request, or throws an `ApiError`. Without a response from
 * the server, `fetch` throws a `TypeError`. */
export async function received<T>(request: Promise<Result<T>>): Promise<{ data: T; response: Response }> {
  const { data, error, response } = await request;
  if (response.ok) return { data: data as T, response };
  const problem = typeof error === "object" && error !== null ? (error as Partial<Problem>) : {};
  throw new ApiError(response.status, problem);
}

/** Returns true if the server could not be reached, or was not ready, or if another server has
 * responded, as those of hotels do. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof ApiError) return [408, 429, 502, 503, 504].includes(error.status);
  if (error instanceof DOMException) return error.name === "TimeoutError" || error.name === "AbortError";
  return error instanceof TypeError || error instanceof SyntaxError;
}

/** Returns the cursor of the next page, or null on the last one. */
export function nextCursor(response: Response): string | null {
  const link = /<([^>]*)>;\s*rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  return link === undefined ? null : new URL(link, location.origin).searchParams.get("cursor");
}

/** Reads all pages of a list. */
export async function allPages<T>(
  page: (query: { perPage: number; cursor?: string }) => Promise<Result<T[]>>,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const query = cursor === null ? { perPage: 1000 } : { perPage: 1000, cursor };
    const { data, response } = await received(page(query));
    items.push(...data);
    cursor = nextCursor(response);
  } while (cursor !== null);
  return items;
}
