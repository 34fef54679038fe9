/** Webhooks: the events, and the verification of requests (Standard Webhooks). */
import type { Schemas } from "./types.ts";

/** An event of a webhook. Its `type` distinguishes the resources in `data`. */
export type WebhookEvent = Schemas[Extract<keyof Schemas, `${string}Event`>];

/** An event of the feed. */
export type FeedEvent = WebhookEvent extends infer Event ? (Event extends object ? Omit<Event, "webhookId" | "test"> : never) : never;

/** The limit on signatures of a request that are verified. Galley sends two after a rotation. */
const SIGNATURES = 4;

/** A request that no webhook of the secret has sent, or an old one. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

/** A request of a webhook: that of `fetch`, or the parts of another one. */
export type WebhookRequest =
  | Request
  | { headers: Headers | Record<string, string | string[] | undefined>; body: string | Uint8Array };

/** The options of a verification. */
export interface VerifyOptions {
  /** The largest difference of the clocks, in seconds; 300 by default. */
  tolerance?: number | undefined;
}

/**
 * Verifies the signature and the time of a request, and returns its event. The body must be as
 * received. Several secrets are tried in turn, as after a rotation.
 */
export async function verifyWebhook(
  request: WebhookRequest,
  secret: string | readonly string[],
  { tolerance = 300 }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const { headers } = request;
  const header = (name: string) => {
    const value = isHeaders(headers)
      ? headers.get(name)
      : Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
    if (typeof value !== "string") throw new WebhookVerificationError(`the header ${name} is missing`);
    return value;
  };
  const [id, timestamp, signatures] = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(age <= tolerance)) throw new WebhookVerificationError("the timestamp is too far from the clock");
  const given = "arrayBuffer" in request ? new Uint8Array(await request.arrayBuffer()) : request.body;
  if (typeof given !== "string" && !ArrayBuffer.isView(given)) {
    throw new TypeError("the body must be text or bytes, as received and not parsed");
  }
  const body = typeof given === "string" ? encode(given) : given;
  const prefix = encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  const decoded = signatures.split(" ", SIGNATURES).map((signature) => {
    const [version, text = ""] = signature.split(",");
    return version === "v1" ? decode(text) : null;
  });
  for (const one of typeof secret === "string" ? [secret] : secret) {
    const key = await importKey(one);
    for (const signature of decoded) {
      if (signature?.length === 32 && (await crypto.subtle.verify("HMAC", key, signature, signed))) {
        return JSON.parse(new TextDecoder().decode(body)) as WebhookEvent;
      }
    }
  }
  throw new WebhookVerificationError("no signature is valid");
}

/** Returns true for `Headers`, also those of another implementation. */
function isHeaders(headers: WebhookRequest["headers"]): headers is Headers {
  return typeof headers["get"] === "function";
}

function importKey(secret: string): Promise<CryptoKey> {
  const prefix = "whsec_";
  const bytes = secret.startsWith(prefix) ? decode(secret.slice(prefix.length)) : encode(secret);
  if (bytes === null || bytes.length === 0) throw new TypeError("the secret is not valid");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Decodes base64, or returns null. */
function decode(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}
