import type { Reason, Schemas } from "./types.ts";

/** A response other than success, with the members of the problem (RFC 9457). */
export class GalleyError extends Error {
  override readonly name = "GalleyError";
  /** The status of the response. */
  readonly status: number;
  /** The cause, or `unknown` if a proxy has responded. */
  readonly reason: Reason | "unknown";
  /** The invalid fields and parameters. */
  readonly issues: Schemas["Issue"][];
  /** The request's id in the log of the server. */
  readonly requestId: string | null;
  /** All members of the problem. */
  readonly problem: Partial<Schemas["Problem"]>;

  constructor(status: number, problem: Partial<Schemas["Problem"]>, requestId: string | null = null) {
    super(problem.detail ?? `The server responds with ${status}.`);
    this.status = status;
    this.problem = problem;
    this.reason = problem.reason ?? "unknown";
    this.issues = problem.issues ?? [];
    this.requestId = problem.requestId ?? requestId;
  }
}
