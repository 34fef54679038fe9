import type { Reason, Schemas } from "./types.ts";

/** A response other than success, with the members of the problem (RFC 9457). */
export class GalleyError extends Error {
  override readonly name = "GalleyError";
  /** The status of the response. */
  readonly status: number;
  /** The cause, or `unknown` if the response is not of Galley, such as that of a proxy. */
  readonly reason: Reason | "unknown";
  /** The invalid fields and parameters. */
  readonly issues: Schemas["Issue"][];
  /** The request's id in the log of the server. */
  readonly requestId: string | null;
  /** All members of the problem. */
  readonly problem: Partial<Schemas["Problem"]>;
  /** True if an earlier attempt of the same request may have taken effect. */
  readonly isUncertain: boolean;

  constructor(
    status: number,
    problem: Partial<Schemas["Problem"]>,
    requestId: string | null = null,
    isUncertain = false,
  ) {
    super(problem.detail ?? `The server responds with ${status}, and not in the form of Galley.`);
    this.status = status;
    this.problem = problem;
    this.reason = problem.reason ?? "unknown";
    this.issues = problem.issues ?? [];
    this.requestId = problem.requestId ?? requestId;
    this.isUncertain = isUncertain;
  }
}
