/** The policy of retries. */
export interface RetryPolicy {
  /** The limit on retries of a request. */
  retries: number;
  /** The longest back-off, and the longest `Retry-After` to wait for, in milliseconds. */
  longest: number;
}

const FIRST_BACKOFF = 250;

/** The longest time of a timer. A longer one would expire at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/** Statuses after which the request may succeed later. */
const TRANSIENT = [408, 429, 502, 503, 504];

/** Returns true for a status after which a request is repeated. */
export function isTransient(status: number): boolean {
  return TRANSIENT.includes(status);
}

/** Returns the back-off before a retry, from 0: it doubles, and is shortened by up to a half. */
export function backoff(retry: number, { longest }: RetryPolicy): number {
  return Math.min(FIRST_BACKOFF * 2 ** retry, longest) * (0.5 + Math.random() / 2);
}

/** Returns the time that `Retry-After` names, in milliseconds from now. */
export function retryAfter(headers: Headers): number {
  const value = headers.get("retry-after");
  if (value === null) return 0;
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Math.max(milliseconds, 0) || 0;
}

/** Waits, until the signal aborts. */
export function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
