import { GalleyError } from "./error.ts";
import { followEvents, type FollowOptions } from "./feed.ts";
import { OPERATIONS } from "./generated/operations.ts";
import { Pages } from "./pages.ts";
import { type ClientOptions, Transport } from "./transport.ts";
import type { Operations, Representation, RequestOptions, Schemas, WorkspaceTypes } from "./types.ts";
import type { FeedEvent } from "./webhook.ts";

/** The fields of an uploaded file. */
export interface Upload {
  /** The name of the file. */
  filename: string;
  /** The text in place of an image. */
  alt?: string;
  /** The group to which the asset belongs. */
  contentGroupId?: string;
}

/** A client of a server. */
export type Client<Types extends WorkspaceTypes = WorkspaceTypes> = Operations<Types> & {
  /** Uploads a file in one request. A failed upload is not repeated, as it may have arrived. */
  uploadAsset(file: Blob | BufferSource, upload: Upload, options?: RequestOptions): Promise<Schemas["Asset"]>;
  /** Follows the events of the workspace, and connects again after failures. */
  followEvents(options?: FollowOptions): AsyncGenerator<FeedEvent, never>;
};

type Parameters = Record<string, unknown>;

/** The entity tags of resources that a client has read. */
const tags = new WeakMap<object, string>();

/** Returns the entity tag of a resource as this client read it or changed it last. */
export function etagOf(resource: object): string | undefined {
  return tags.get(resource);
}

/** Creates a client. Nothing is requested yet. */
export function createClient<Types extends WorkspaceTypes = WorkspaceTypes>(options: ClientOptions): Client<Types> {
  const transport = new Transport(options);
  const client: Record<string, unknown> = {
    uploadAsset: async (file: Blob | BufferSource, { ...upload }: Upload, given?: RequestOptions) => {
      const headers = { "content-type": "application/octet-stream", prefer: "return=representation" };
      const path = `/assets${query({ ...upload })}`;
      const call = { method: "POST", path, body: file as BodyInit, headers, options: given, isRepeatable: false };
      return (await transport.send(call)).json();
    },
    followEvents: (given?: FollowOptions) => followEvents(transport, given),
  };
  for (const [name, kind, path] of OPERATIONS) {
    client[name] =
      kind === "LIST"
        ? (input?: Parameters, given?: RequestOptions) => list(transport, path, input, given)
        : (input?: Parameters, given?: RequestOptions & Partial<Representation>) => run(transport, kind, path, input, given);
  }
  return client as unknown as Client<Types>;
}

/** Runs a change on the latest version of a resource, and again while another writer is first. */
export async function retryOnConflict<Value>(change: () => Promise<Value>, attempts = 5): Promise<Value> {
  for (let left = attempts - 1; ; left--) {
    try {
      return await change();
    } catch (error) {
      const isConflict = error instanceof GalleyError && error.reason === "precondition_failed";
      if (left <= 0 || !isConflict) throw error;
    }
  }
}

function list(transport: Transport, path: string, input?: Parameters, options?: RequestOptions): Pages<unknown> {
  return new Pages(async (next) => {
    const call = { method: "GET", path: next ?? path + query(input), headers: preferences(options), options };
    const response = await transport.send(call);
    const total = response.headers.get("total-count");
    const page = {
      items: await response.json(),
      total: total === null ? null : parseInt(total, 10),
      etag: response.headers.get("etag"),
    };
    return { page, next: /<(\/(?!\/)[^>]*)>; *rel="?next/.exec(response.headers.get("link") ?? "")?.[1] ?? null };
  });
}

async function run(
  transport: Transport,
  method: string,
  path: string,
  input: Parameters | undefined,
  options: (RequestOptions & Partial<Representation>) | undefined,
): Promise<unknown> {
  const hasBody = method === "PUT" || method === "POST";
  const headers = preferences(options);
  if (hasBody) headers["content-type"] = "application/json";
  if (method === "POST") headers["idempotency-key"] = options?.idempotencyKey ?? crypto.randomUUID();
  const { ifMatch } = options ?? {};
  if (ifMatch !== undefined) headers["if-match"] = versionOf(ifMatch);
  const body = hasBody ? JSON.stringify(input ?? {}) : undefined;
  const call = { method, path: hasBody ? path : path + query(input), body, headers, options };
  const response = await transport.send(call);
  const tag = response.headers.get("etag");
  // The next change with the same resource follows this one.
  if (typeof ifMatch === "object" && tag !== null) tags.set(ifMatch, tag);
  if (method === "DELETE" || response.status === 204) {
    await response.body?.cancel();
    return undefined;
  }
  const value: unknown = await response.json();
  if (tag !== null && typeof value === "object" && value !== null) tags.set(value, tag);
  return value;
}

function versionOf(resource: object | string): string {
  const tag = typeof resource === "string" ? resource : tags.get(resource);
  if (tag === undefined) throw new TypeError("ifMatch is no resource that this client has read by itself");
  return tag;
}

function preferences(options: (RequestOptions & Partial<Representation>) | undefined): Record<string, string> {
  const preferred: string[] = [];
  if (options?.return !== undefined) preferred.push(`return=${options.return}`);
  if (options?.maxAge !== undefined) preferred.push(`max-age=${options.maxAge}`);
  return preferred.length > 0 ? { prefer: preferred.join(", ") } : {};
}

/** Returns the query of a path. */
function query(input: Parameters | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(input ?? {})) {
    if (value === undefined || value === null) continue;
    const text = value instanceof Date ? value.toISOString() : Array.isArray(value) ? value.join(",") : String(value);
    parameters.set(name, text);
  }
  return parameters.size > 0 ? `?${parameters}` : "";
}
