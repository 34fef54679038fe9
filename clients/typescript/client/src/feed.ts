/** The event feed as a stream (server-sent events). */
import { GalleyError } from "./error.ts";
import { backoff, retryAfter, sleep } from "./retry.ts";
import { problem, type Transport } from "./transport.ts";
import type { FeedEvent } from "./webhook.ts";

/** The options of a stream of events. */
export interface FollowOptions {
  /** The `sequence` of the event after which the stream begins; by default the oldest stored one. */
  after?: number | undefined;
  /** Ends the stream: the iteration throws its reason. */
  signal?: AbortSignal | undefined;
  /** Is called with the cause before each new connection, for a log. */
  onReconnect?: ((cause: unknown) => void) | undefined;
}

/** The time without data, of which heartbeats are a part, after which a connection counts as dead. */
const SILENCE = 45_000;

/** Follows the events after a position. Connects again from the last event after each failure. */
export async function* followEvents(
  transport: Transport,
  { after, signal, onReconnect }: FollowOptions = {},
): AsyncGenerator<FeedEvent, never> {
  let last = after;
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    const call = { method: "GET", path: "/events", headers: { accept: "text/event-stream" } };
    // A mistake in the token would fail for ever.
    const headers = await transport.headers(call);
    if (last !== undefined) headers.set("last-event-id", String(last));
    const connection = new Connection(signal);
    let [wait, cause]: [number, unknown] = [0, new Error("The server has closed the stream")];
    try {
      const response = await transport.fetch(call, headers, connection.signal);
      if (response.ok && response.headers.get("content-type")?.startsWith("text/event-stream") && response.body) {
        for await (const event of parse(response.body, connection, () => (failures = 0))) {
          signal?.throwIfAborted();
          last = event.sequence;
          yield event;
        }
      } else {
        wait = retryAfter(response.headers);
        const { status, headers } = response;
        throw problem({ status, headers, text: await response.text() });
      }
    } catch (error) {
      signal?.throwIfAborted();
      cause = error;
      const isTransient = !(error instanceof GalleyError) || error.status >= 500 || [408, 429].includes(error.status);
      if (!isTransient) throw error;
    } finally {
      connection.close();
    }
    onReconnect?.(cause);
    await sleep(Math.min(Math.max(wait, backoff(failures, transport.policy)), transport.policy.longest), signal);
  }
}

/** A connection, which ends after a silence, or with the caller's signal. */
class Connection {
  readonly #controller = new AbortController();
  readonly #given: AbortSignal | undefined;
  readonly #abort = () => this.#controller.abort(this.#given?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(given: AbortSignal | undefined) {
    this.#given = given;
    given?.addEventListener("abort", this.#abort);
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  restart(): void {
    clearTimeout(this.#timer);
    const expire = () => this.#controller.abort(new DOMException("The stream is silent", "TimeoutError"));
    this.#timer = setTimeout(expire, SILENCE);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#abort);
    this.#controller.abort();
  }
}

/** Parses the events of a stream. The server sends the data of an event as one line. */
async function* parse(
  body: ReadableStream<Uint8Array>,
  connection: Connection,
  onData: () => void,
): AsyncGenerator<FeedEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      connection.restart();
      onData();
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("data:")) yield JSON.parse(line.slice(5)) as FeedEvent;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
