import { GalleyError } from "./error.ts";
import { followEvents, type FollowOptions } from "./feed.ts";
import { OPERATIONS } from "./generated/operations.ts";
import { Pages } from "./pages.ts";
import { type ClientOptions, json, type Reply, Transport } from "./transport.ts";
import type { Operations, Representation, RequestOptions, Schemas, WorkspaceTypes } from "./types.ts";
import type { FeedEvent } from "./webhook.ts";

/** The fields of an uploaded file. */
export interface Upload {
  /** The name of the file. */
  filename: string;
  /** The text in place of an image. */
  alt?: string | undefined;
  /** The group to which the asset belongs. */
  contentGroupId?: string | undefined;
}

/** A client of a server. */
export type Client<Types extends WorkspaceTypes = WorkspaceTypes> = Operations<Types> & {
  /** Uploads a file in one request. */
  uploadAsset(file: Blob | ArrayBuffer | ArrayBufferView, upload: Upload, options?: RequestOptions): Promise<Schemas["Asset"]>;
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
    uploadAsset: async (body: Blob | ArrayBuffer | ArrayBufferView, upload: Upload, options?: RequestOptions) => {
      const headers = { ...keyOf(options), "content-type": "application/octet-stream", prefer: "return=representation" };
      const path = `/assets${query({ ...upload })}`;
      return remember(await transport.send({ method: "POST", path, body, headers, options, timeout: Infinity }));
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

/**
 * Runs a change on the latest version of a resource, and again while another writer is first. If an attempt
 * may have taken effect, it is not run again.
 */
export async function retryOnConflict<Value>(change: () => Promise<Value>, attempts = 5): Promise<Value> {
  for (let left = attempts - 1; ; left--) {
    try {
      return await change();
    } catch (error) {
      const isConflict = error instanceof GalleyError && error.reason === "precondition_failed";
      if (left <= 0 || !isConflict || error.isUncertain) throw error;
    }
  }
}

function list(transport: Transport, path: string, input?: Parameters, options?: RequestOptions): Pages<unknown> {
  return new Pages(async (next) => {
    const call = { method: "GET", path: next ?? path + query(input), headers: preferences(options), options };
    const reply = await transport.send(call);
    const { headers } = reply;
    const total = headers.get("total-count");
    const page = {
      items: json(reply) as unknown[],
      total: total === null ? null : parseInt(total, 10),
      etag: tagOf(headers),
    };
    return { page, next: nextPath(headers.get("link"), transport.base) };
  });
}

/** Returns the path of the next page (RFC 8288). A proxy may have made the link absolute. */
function nextPath(link: string | null, base: string): string | null {
  for (const [, target = "", parameters = ""] of (link ?? "").matchAll(/<([^>]*)>([^<]*)/g)) {
    if (!/;\s*rel="?next\b/i.test(parameters)) continue;
    const path = target.startsWith(`${base}/`) ? target.slice(base.length) : target;
    if (!path.startsWith("/") || path.startsWith("//")) throw new TypeError(`The next page has another address: ${target}`);
    return path;
  }
  return null;
}

async function run(
  transport: Transport,
  method: string,
  path: string,
  input: Parameters | undefined,
  options: (RequestOptions & Partial<Representation>) | undefined,
): Promise<unknown> {
  const hasBody = method === "PUT" || method === "POST";
  const headers: Record<string, string> = {
    ...preferences(options),
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...(method === "POST" ? keyOf(options) : {}),
  };
  const { ifMatch } = options ?? {};
  if (ifMatch !== undefined) headers["if-match"] = versionOf(ifMatch);
  const body = hasBody ? JSON.stringify(input ?? {}) : undefined;
  const reply = await transport.send({ method, path: hasBody ? path : path + query(input), body, headers, options });
  // The next change with the same resource follows this one.
  const tag = tagOf(reply.headers);
  if (typeof ifMatch === "object" && tag !== null) tags.set(ifMatch, tag);
  return method === "DELETE" || reply.status === 204 ? undefined : remember(reply);
}

/** Returns the resource of a response, and remembers its entity tag. */
function remember(reply: Reply): unknown {
  const value = json(reply);
  const tag = tagOf(reply.headers);
  if (tag !== null && typeof value === "object" && value !== null) tags.set(value, tag);
  return value;
}

/** Returns the entity tag. A proxy may have weakened it; the server compares its version only. */
function tagOf(headers: Headers): string | null {
  return headers.get("etag")?.replace(/^W\//, "") ?? null;
}

/** Returns the header of the key with which a repeat changes nothing more. */
function keyOf(options: RequestOptions | undefined): Record<string, string> {
  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0"));
  return { "idempotency-key": options?.idempotencyKey ?? random().join("") };
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
    // The server would ignore the parameter, and return everything.
    if (Array.isArray(value) && value.length === 0) throw new TypeError(`${name} is an empty list`);
    const text = value instanceof Date ? value.toISOString() : Array.isArray(value) ? value.join(",") : String(value);
    parameters.set(name, text);
  }
  return parameters.size > 0 ? `?${parameters}` : "";
}
