/** The event feed as a stream (server-sent events). */
import { backoff, isTransient, retryAfter, sleep } from "./retry.ts";
import { problem, type Transport } from "./transport.ts";
import type { FeedEvent } from "./webhook.ts";

/** The options of a stream of events. */
export interface FollowOptions {
  /** The `sequence` of the event after which the stream begins; by default the oldest stored one. */
  after?: number;
  /** Ends the stream: the iteration throws its reason. */
  signal?: AbortSignal;
}

/** The time without data, of which heartbeats are a part, after which a connection counts as dead. */
const SILENCE = 45_000;

/** Follows the events after a position. Connects again from the last event after each failure. */
export async function* followEvents(
  transport: Transport,
  { after, signal }: FollowOptions = {},
): AsyncGenerator<FeedEvent, never> {
  let last = after;
  for (let failures = 0; ; failures++) {
    let wait = 0;
    const silence = new AbortController();
    const timer = new Timer(() => silence.abort(new DOMException("The stream is silent", "TimeoutError")));
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last !== undefined) headers["last-event-id"] = String(last);
      const call = { method: "GET", path: "/events", headers, options: signal ? { signal } : {} };
      const response = await transport.attempt(call, silence.signal);
      if (response.ok && response.body !== null) {
        for await (const event of parse(response.body, () => timer.restart())) {
          failures = 0;
          last = event.sequence;
          yield event;
        }
      } else if (isTransient(response.status)) {
        wait = retryAfter(response.headers);
        await response.body?.cancel();
      } else {
        throw await problem(response);
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    } finally {
      timer.stop();
      silence.abort();
    }
    await sleep(Math.max(wait, backoff(failures, transport.policy)), signal);
  }
}

/** A timer that begins again with each sign of life. */
class Timer {
  readonly #expire: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(expire: () => void) {
    this.#expire = expire;
    this.restart();
  }

  restart(): void {
    this.stop();
    this.#timer = setTimeout(this.#expire, SILENCE);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Parses the events of a stream. The server sends the data of an event as one line. */
async function* parse(body: ReadableStream<Uint8Array>, onData: () => void): AsyncGenerator<FeedEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
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
