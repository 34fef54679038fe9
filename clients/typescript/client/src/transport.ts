/** Requests with timeouts, retries and problems as errors. */
import { GalleyError } from "./error.ts";
import { backoff, isTransient, LONGEST_TIMER, retryAfter, type RetryPolicy, sleep } from "./retry.ts";
import type { RequestOptions, Schemas } from "./types.ts";

/** The options of a client. */
export interface ClientOptions {
  /** The address of the server, such as `https://galley.example.org`. */
  url: string;
  /** An access token, or a function that returns one. Without it, browsers send a session's cookie. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** The workspace of requests with a session. */
  workspace?: string | undefined;
  /** The timeout of an attempt, in milliseconds; 60,000 by default, and none for uploads. */
  timeout?: number | undefined;
  /** The limit on retries of a request; 6 by default. */
  retries?: number | undefined;
  /** The longest time between two attempts, in milliseconds; 30,000 by default. */
  longestBackoff?: number | undefined;
  /** A function in place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/** A request before its retries. */
export interface Call {
  method: string;
  /** The path with the query. */
  path: string;
  body?: string | Blob | ArrayBuffer | ArrayBufferView | undefined;
  headers?: Record<string, string>;
  options?: RequestOptions | undefined;
  /** The timeout of an attempt without one in the options. */
  timeout?: number;
}

/** A response whose body was received. */
export interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

/** Reasons of failures after which the server has certainly changed nothing. */
const CERTAIN = ["overloaded", "not_ready", "request_timeout", "rate_limited", "storage_full"];

/** The connection to a server. */
export class Transport {
  readonly #options: ClientOptions;
  /** The address without a trailing slash. */
  readonly base: string;
  readonly policy: RetryPolicy;

  constructor(options: ClientOptions) {
    this.#options = options;
    const url = new URL(options.url);
    if (!/^https?:$/.test(url.protocol)) throw new TypeError(`url must begin with https:// or http://, not ${url.protocol}`);
    if (url.username || url.password || url.search || url.hash) {
      throw new TypeError("url must be the address of a server, without user, query and fragment");
    }
    this.base = url.href.replace(/\/$/, "");
    this.policy = { retries: options.retries ?? 6, longest: options.longestBackoff ?? 30_000 };
  }

  /** Sends a request, again after failures that may pass, and returns the successful response. */
  async send(call: Call): Promise<Reply> {
    const signal = call.options?.signal;
    // All attempts have the same token, as idempotency keys belong to a token.
    const headers = await this.headers(call);
    let isUncertain = false;
    for (let retry = 0; ; retry++) {
      const isLast = retry >= this.policy.retries;
      let reply: Reply;
      try {
        reply = await this.#attempt(call, headers);
      } catch (error) {
        if (isLast || signal?.aborted || error instanceof RedirectError) throw error;
        isUncertain = true;
        await sleep(backoff(retry, this.policy), signal);
        continue;
      }
      if (reply.status >= 200 && reply.status < 300) return reply;
      const error = problem(reply, isUncertain);
      // An earlier attempt has deleted the resource.
      if (isUncertain && call.method === "DELETE" && error.reason === "not_found") return { ...reply, text: "" };
      const wait = retryAfter(reply.headers);
      if (isLast || !isTransient(reply.status) || wait > this.policy.longest) throw error;
      isUncertain ||= reply.status !== 429 && !CERTAIN.includes(error.reason);
      await sleep(Math.max(wait, backoff(retry, this.policy)), signal);
    }
  }

  /** Returns the headers of a request. */
  async headers(call: Call): Promise<Headers> {
    const { token, workspace } = this.#options;
    const headers = new Headers(call.headers);
    if (token !== undefined) {
      const text = typeof token === "string" ? token : await token();
      // The error of `Headers` would contain the token.
      if (!/^[\x21-\x7e]+$/.test(text)) throw new TypeError("token has characters that tokens never have");
      headers.set("authorization", `Bearer ${text}`);
    }
    const named = call.options?.workspace ?? workspace;
    if (named !== undefined) headers.set("galley-workspace", named);
    for (const [name, value] of Object.entries(call.options?.headers ?? {})) {
      if (name.toLowerCase() === "prefer") headers.append(name, value);
      else headers.set(name, value);
    }
    return headers;
  }

  /** Sends a request once. Its body is not read yet. */
  async fetch(call: Call, headers: Headers, signal: AbortSignal): Promise<Response> {
    const { method, path, body } = call;
    // A redirect could send the body, which may have secrets, to another host.
    const init = { method, headers, body: (body ?? null) as BodyInit | null, signal, redirect: "manual" } as const;
    const response = await (this.#options.fetch ?? fetch)(this.base + path, init);
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      await response.body?.cancel();
      throw new RedirectError(`${this.base} redirects${to(response)}: use the address that it redirects to as url`);
    }
    return response;
  }

  async #attempt(call: Call, headers: Headers): Promise<Reply> {
    const controller = new AbortController();
    const given = call.options?.signal;
    const abort = () => controller.abort(given?.reason);
    if (given?.aborted) abort();
    given?.addEventListener("abort", abort);
    const timeout = call.options?.timeout ?? call.timeout ?? this.#options.timeout ?? 60_000;
    const expire = () => controller.abort(new DOMException(`No response within ${timeout} ms`, "TimeoutError"));
    const timer = timeout < LONGEST_TIMER ? setTimeout(expire, timeout) : undefined;
    try {
      const response = await this.fetch(call, headers, controller.signal);
      return { status: response.status, headers: response.headers, text: await response.text() };
    } finally {
      clearTimeout(timer);
      given?.removeEventListener("abort", abort);
    }
  }
}

/** A redirect, which is not followed. */
class RedirectError extends TypeError {}

function to(response: Response): string {
  const location = response.headers.get("location");
  return location === null ? "" : ` to ${location}`;
}

/** Returns the JSON of a successful response, or nothing without a body. */
export function json({ status, headers, text }: Reply): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new GalleyError(status, {}, headers.get("x-request-id"));
  }
}

/** Returns the error of a response. A proxy's response has no problem. */
export function problem({ status, headers, text }: Reply, isUncertain = false): GalleyError {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = {};
  }
  const isProblem = typeof parsed === "object" && parsed !== null && "reason" in parsed;
  const members = isProblem ? (parsed as Partial<Schemas["Problem"]>) : {};
  return new GalleyError(status, members, headers.get("x-request-id"), isUncertain);
}
