/** The text of an error, for a person. */
import { ApiError, isUnreachable } from "../api/client";
import { t } from "../i18n";

export function messageOf(error: unknown): string {
  if (isUnreachable(error)) return t.unreachable;
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.status === 404) return t.notFound;
  if (error.reason === "insufficient_permissions") return `${t.forbidden} (${error.message})`;
  return error.message;
}
