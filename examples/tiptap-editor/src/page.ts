/** Parts of the page. */
import { GalleyError } from "@galley/client";

export function find<Found extends HTMLElement = HTMLElement>(selector: string): Found {
  const found = document.querySelector<Found>(selector);
  if (found === null) throw new Error(`${selector} is not in the page`);
  return found;
}

/** Returns an error for people. */
export function message(error: unknown): string {
  if (error instanceof GalleyError) return error.status === 401 ? "the access token is not valid" : error.message;
  const isOfNetwork = error instanceof TypeError || error instanceof DOMException;
  return isOfNetwork ? "the server cannot be reached, or does not allow this page (cors-origins)" : String(error);
}
