/** Requests with timeouts, retries and problems as errors. */
import { GalleyError } from "./error.ts";
import { backoff, isTransient, retryAfter, type RetryPolicy, sleep } from "./retry.ts";
import type { RequestOptions } from "./types.ts";

/** The options of a client. */
export interface ClientOptions {
  /** The address of the server, such as `https://galley.example.org`. */
  url: string;
  /** An access token, or a function that returns one. Without it, browsers send a session's cookie. */
  token?: string | (() => string | Promise<string>);
  /** The workspace of requests with a session. */
  workspace?: string;
  /** The timeout of an attempt, in milliseconds; 60,000 by default. */
  timeout?: number;
  /** The limit on retries of a request; 6 by default. */
  retries?: number;
  /** The longest time between two attempts, in milliseconds; 30,000 by default. */
  longestBackoff?: number;
  /** A function in place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** A request before its retries. */
export interface Call {
  method: string;
  /** The path with the query. */
  path: string;
  body?: BodyInit | undefined;
  headers?: Record<string, string>;
  options?: RequestOptions | undefined;
  /** False if a repeat could change something twice. */
  isRepeatable?: boolean;
}

/** The connection to a server. */
export class Transport {
  readonly #options: ClientOptions;
  readonly #base: string;
  readonly policy: RetryPolicy;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#base = new URL(options.url).href.replace(/\/$/, "");
    this.policy = { retries: options.retries ?? 6, longest: options.longestBackoff ?? 30_000 };
  }

  /** Sends a request, again after failures that may pass, and returns the successful response. */
  async send(call: Call): Promise<Response> {
    const signal = call.options?.signal;
    const isRepeatable = call.isRepeatable ?? true;
    for (let retry = 0; ; retry++) {
      const isLast = retry >= this.policy.retries;
      let response: Response;
      try {
        response = await this.attempt(call, AbortSignal.timeout(call.options?.timeout ?? this.#options.timeout ?? 60_000));
      } catch (error) {
        if (isLast || !isRepeatable || signal?.aborted) throw error;
        await sleep(backoff(retry, this.policy), signal);
        continue;
      }
      if (response.ok) return response;
      // The attempt before may have deleted the resource.
      if (retry > 0 && call.method === "DELETE" && response.status === 404) return response;
      const wait = retryAfter(response.headers);
      // The server has changed nothing if it limits the rate.
      const mayRepeat = isTransient(response.status) && (isRepeatable || response.status === 429);
      if (isLast || !mayRepeat || wait > this.policy.longest) throw await problem(response);
      await response.body?.cancel();
      await sleep(Math.max(wait, backoff(retry, this.policy)), signal);
    }
  }

  /** Sends a request once. */
  async attempt(call: Call, timeout?: AbortSignal): Promise<Response> {
    const { token, workspace, fetch: own } = this.#options;
    const options = call.options ?? {};
    const headers: Record<string, string> = { ...call.headers, ...options.headers };
    if (token !== undefined) headers["authorization"] = `Bearer ${typeof token === "string" ? token : await token()}`;
    const named = options.workspace ?? workspace;
    if (named !== undefined) headers["galley-workspace"] = named;
    const signals = [options.signal, timeout].filter((signal) => signal !== undefined);
    return (own ?? fetch)(this.#base + call.path, {
      method: call.method,
      headers,
      body: call.body ?? null,
      signal: AbortSignal.any(signals),
    });
  }
}

/** Returns the error of a response. A proxy's response has no problem. */
export async function problem(response: Response): Promise<GalleyError> {
  const text = await response.text();
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = {};
  }
  const members = typeof parsed === "object" && parsed !== null ? parsed : {};
  return new GalleyError(response.status, members, response.headers.get("x-request-id"));
}
