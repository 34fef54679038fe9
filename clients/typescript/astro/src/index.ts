import type { Loader, LoaderContext } from "astro/loaders";
import { z } from "astro/zod";
import { type Client, createClient, GalleyError, type Input, type Schemas, type WorkspaceTypes } from "@galley/client";
import { type ImageOptions, withHeadingIds, withImageSizes } from "./html.ts";

export type { ImageOptions, RenditionWidth } from "./html.ts";

/** The filters of the pieces in a collection, as the list of the API has them. */
type Filters = Pick<Input<"listContentPieces">, "contentGroupId" | "subtree" | "tagId" | "allTags" | "memberId">;

/** The options of a collection. */
export interface GalleyLoaderOptions<Types extends WorkspaceTypes = WorkspaceTypes> extends Filters {
  /** The address of the server. */
  url: string;
  /** An access token. One of the published view loads published pieces only. */
  token: string;
  /** The language of the pieces themselves, such as `en`: `locale` of their entries. */
  locale?: string;
  /** The variants to load as well: a piece has an entry for each one in which it has overrides. */
  variants?: readonly Types["variant"][];
  /** The sizes of images that Galley stores; `false` leaves images as they are. */
  images?: ImageOptions | false;
  /** The id of an entry; by default the slug, in a variant `<variant>/<slug>`. */
  entryId?: (entry: PieceEntry<Types>) => string;
}

/** The data of an entry. */
export type PieceEntry<Types extends WorkspaceTypes = WorkspaceTypes> = Omit<
  Schemas["ContentPiece"],
  "content" | "customData" | "date" | "createdAt" | "updatedAt"
> & {
  customData: Types["customData"] | null;
  date: Date | null;
  createdAt: Date;
  updatedAt: Date;
  /** The key of the variant, or the language of the pieces themselves. */
  locale: string | null;
};

/** The sizes of images by default: the widths of phones and of columns, twice for dense screens. */
const IMAGES: ImageOptions = { widths: [640, 960, 1280], sizes: "(max-width: 45rem) 100vw, 45rem" };

/** The limit on ids in a request. */
const IDS = 100;

/** Returns true for an id that is a path below the site: slugs may have any characters but white space. */
function isPath(id: string): boolean {
  return !/[\\?#\p{C}]/u.test(id) && id.split("/").every((part) => !["", ".", ".."].includes(part));
}

/** A version of the form of entries. Another one loads all pieces again. */
const VERSION = 2;

/**
 * Loads the pieces of Galley into a content collection. After the first build, only the pieces that were
 * changed since then are requested.
 */
export function galleyLoader<Types extends WorkspaceTypes = WorkspaceTypes>(
  options: GalleyLoaderOptions<Types>,
): Loader & { schema: z.ZodType<PieceEntry<Types>> } {
  return {
    name: "galley",
    schema: z.custom<PieceEntry<Types>>(),
    load: (context: LoaderContext) => new Loading(options, context).load(),
  } as Loader & { schema: z.ZodType<PieceEntry<Types>> };
}

/** A load of a collection. */
class Loading<Types extends WorkspaceTypes> {
  readonly #options: GalleyLoaderOptions<Types>;
  readonly #context: LoaderContext;
  readonly #client: Client<Types>;

  constructor(options: GalleyLoaderOptions<Types>, context: LoaderContext) {
    this.#options = options;
    this.#context = context;
    this.#client = createClient<Types>({ url: options.url, token: options.token });
  }

  async load(): Promise<void> {
    const { meta, logger, store } = this.#context;
    const { token: _, ...rest } = this.#options;
    const configuration = this.#context.generateDigest({ ...rest, entryId: String(rest.entryId), version: VERSION });
    // Changes during the load are loaded again by the next one.
    const { sequence } = await this.#client.getEventPosition();
    const labels = await this.#labels();
    const position = meta.get("configuration") === configuration ? meta.get("position") : undefined;
    const changed = position === undefined ? null : await this.#changedSince(Number(position), labels);
    const written = new Set<string>();
    if (changed === null) {
      for await (const entry of this.#entries()) await this.#write(entry, written);
      for (const id of store.keys()) if (!written.has(id)) store.delete(id);
      logger.info(`${written.size} entries loaded`);
    } else {
      const ids = [...changed];
      for (let start = 0; start < ids.length; start += IDS) {
        for await (const entry of this.#entries(ids.slice(start, start + IDS))) await this.#write(entry, written);
      }
      for (const [id, { data }] of store.entries()) {
        if (changed.has(data["id"] as string) && !written.has(id)) store.delete(id);
      }
      logger.info(changed.size === 0 ? "nothing has changed" : `${changed.size} changed pieces loaded`);
    }
    meta.set("configuration", configuration);
    meta.set("position", String(sequence));
    meta.set("labels", JSON.stringify(labels));
  }

  /** Returns the labels and colors of tags by id. Tokens of the published view see no events of tags. */
  async #labels(): Promise<Record<string, string>> {
    const labels: Record<string, string> = {};
    try {
      for await (const tag of this.#client.listTags({ perPage: 1000 })) labels[tag.id] = `${tag.color} ${tag.label}`;
    } catch (error) {
      if (!(error instanceof GalleyError && error.reason === "insufficient_permissions")) throw error;
    }
    return labels;
  }

  /** Returns the ids of the pieces that were changed after an event; null if all must be loaded. */
  async #changedSince(after: number, labels: Record<string, string>): Promise<Set<string> | null> {
    const changed = new Set<string>();
    try {
      for await (const event of this.#client.listEvents({ after, perPage: 1000 })) {
        if (event.type.startsWith("contentPiece")) changed.add((event.data as { id: string }).id);
        else if (["variantChanged", "contentGroupMoved", "contentGroupRemoved"].includes(event.type)) return null;
      }
    } catch (error) {
      const reasons = ["events_forgotten", "after_beyond_newest", "insufficient_permissions"];
      if (!(error instanceof GalleyError && reasons.includes(error.reason))) throw error;
      this.#context.logger.warn(`All pieces are loaded: ${error.message}`);
      return null;
    }
    const before = JSON.parse(this.#context.meta.get("labels") ?? "{}") as Record<string, string>;
    const renamed = new Set(Object.keys(before).filter((id) => before[id] !== labels[id]));
    for (const { data } of this.#context.store.values()) {
      const piece = data as unknown as PieceEntry<Types>;
      if (piece.tags.some(({ id }) => renamed.has(id))) changed.add(piece.id);
    }
    return changed;
  }

  /** Lists pieces with their content, in all variants. */
  async *#entries(ids?: string[]): AsyncGenerator<{ entry: PieceEntry<Types>; html: string }> {
    const { contentGroupId, subtree, tagId, allTags, memberId, variants = [], locale = null } = this.#options;
    const given = { contentGroupId, subtree, tagId, allTags, memberId, ids };
    const filters = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    for (const variant of [null, ...variants]) {
      const inVariant = variant === null ? {} : { variant, hasVariant: variant };
      const list = this.#client.listContentPieces({
        ...filters,
        ...inVariant,
        content: true,
        contentFormat: "html",
        customData: "object",
        perPage: 100,
      });
      for await (const { content, date, createdAt, updatedAt, ...piece } of list) {
        const times = { date: date === null ? null : new Date(date), createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) };
        yield { entry: { ...piece, ...times, locale: variant ?? locale } as PieceEntry<Types>, html: content };
      }
    }
  }

  async #write({ entry, html }: { entry: PieceEntry<Types>; html: string }, written: Set<string>): Promise<void> {
    const { store, parseData, generateDigest, logger } = this.#context;
    const { images = IMAGES, url, locale = null, entryId } = this.#options;
    const own = entry.locale === locale ? entry.slug : `${entry.locale}/${entry.slug}`;
    const id = entryId?.(entry) ?? own;
    if (!isPath(id)) {
      logger.warn(`The piece ${entry.id} is left out: its id "${id}" is no path. Change its slug, or use the option entryId.`);
      return;
    }
    if (written.has(id)) logger.warn(`Several pieces have the id "${id}". Use unique slugs, or the option entryId.`);
    written.add(id);
    const sized = images === false ? html : withImageSizes(html, url, images);
    const rendered = withHeadingIds(sized);
    const digest = generateDigest({ ...entry, html: rendered.html });
    const data = await parseData({ id, data: entry as unknown as Record<string, unknown> });
    store.set({ id, data, digest, rendered: { html: rendered.html, metadata: { headings: rendered.headings, imagePaths: [] } } });
  }
}
