/** The address of the page, and navigation without loading another one. */

/** The pages besides lists and pieces. */
export const PAGES = ["members", "roles", "tags", "variants", "assets", "webhooks", "tokens", "activity", "import", "trash", "settings", "account"] as const;

/** The parameters that a list keeps while a piece is open beside it. */
const LIST_PARAMETERS = ["view", "sort", "subtree", "tag", "member", "missing", "state"];

export type PageName = (typeof PAGES)[number];

/** The parts of `/console/<workspace>/groups/<id>`, `/console/<workspace>/pieces/<id>`,
 * `/console/<workspace>/<page>` and `/console/<workspace>/assets/<id>`. */
export interface Route {
  workspace: string | null;
  view: "list" | "piece" | "page" | "unknown";
  page: PageName | null;
  /** The group whose pieces are listed; null for all pieces. */
  group: string | null;
  piece: string | null;
  /** The asset whose details are shown. */
  asset: string | null;
  query: URLSearchParams;
}

function parse(url: URL): Route {
  const [, root, workspace = null, kind, id, ...rest] = url.pathname.split("/");
  const query = url.searchParams;
  const listed = { workspace, group: query.get("group"), piece: null, page: null, asset: null, query };
  if (root === "" && workspace === null) return { ...listed, view: "list" };
  if (root !== "console" || rest.length > 0) return { ...listed, view: "unknown" };
  if (workspace === "" || workspace === null) return { ...listed, workspace: null, view: "list" };
  if (kind === undefined || kind === "") return { ...listed, group: null, view: "list" };
  if (kind === "groups" && id) return { ...listed, group: id, view: "list" };
  if (kind === "pieces" && id) return { ...listed, piece: id, view: "piece" };
  if (kind === "assets" && id) return { ...listed, page: "assets", asset: id, view: "page" };
  const page = PAGES.find((name) => name === kind && id === undefined);
  if (page !== undefined) return { ...listed, page, view: "page" };
  return { ...listed, view: "unknown" };
}

class Router {
  route = $state.raw(parse(new URL(location.href)));

  constructor() {
    addEventListener("popstate", () => (this.route = parse(new URL(location.href))));
    // Links within the console load no page.
    addEventListener("click", (event) => {
      if (event.defaultPrevented || event.button !== 0) return;
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const link = (event.target as Element | null)?.closest?.("a");
      if (!link || link.target !== "" || link.hasAttribute("download")) return;
      // A link in a text is no part of the page. In the editor, a click places the cursor.
      if (link.closest(".rich")) return event.preventDefault();
      const url = new URL(link.href);
      if (url.origin !== location.origin || !url.pathname.startsWith("/console/")) return;
      event.preventDefault();
      this.go(url.pathname + url.search);
    });
  }

  go(path: string, options: { replace?: boolean } = {}): void {
    if (options.replace) history.replaceState(null, "", path);
    else if (path !== location.pathname + location.search) history.pushState(null, "", path);
    this.route = parse(new URL(location.href));
  }

  /** Returns the address of a list of pieces, with the sort and the filters of the present one. */
  listPath(group: string | null = this.route.group): string {
    const place = group === null ? "" : `/groups/${group}`;
    return `/console/${this.route.workspace}${place}${this.search(null)}`;
  }

  /** Returns the address of a piece beside the present list. */
  piecePath(id: string): string {
    return `/console/${this.route.workspace}/pieces/${id}${this.search(this.route.group)}`;
  }

  /** Changes parameters of the query; null removes one. */
  setQuery(changes: Record<string, string | null>, options: { replace: boolean } = { replace: true }): void {
    const query = new URLSearchParams(this.route.query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    this.go(location.pathname + (text === "" ? "" : `?${text}`), options);
  }

  private search(group: string | null): string {
    const query = new URLSearchParams();
    if (group !== null) query.set("group", group);
    for (const name of LIST_PARAMETERS) {
      const value = this.route.query.get(name);
      if (value !== null) query.set(name, value);
    }
    const text = query.toString();
    return text === "" ? "" : `?${text}`;
  }
}

export const router = new Router();
