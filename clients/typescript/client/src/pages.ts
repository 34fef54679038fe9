/** A page of a list. */
export interface Page<Item> {
  /** The items. */
  items: Item[];
  /** The number of items on all pages with `total: true`, else `null`. Beyond 10,000 it is a bound. */
  total: number | null;
  /** The entity tag. */
  etag: string | null;
}

/** The pages of a list. Each use requests them anew, one after another. */
export class Pages<Item> implements AsyncIterable<Item> {
  readonly #read: (next: string | null) => Promise<{ page: Page<Item>; next: string | null }>;

  constructor(read: (next: string | null) => Promise<{ page: Page<Item>; next: string | null }>) {
    this.#read = read;
  }

  /** Iterates over all items. */
  async *[Symbol.asyncIterator](): AsyncIterator<Item> {
    for await (const { items } of this.byPage()) yield* items;
  }

  /** Iterates over the pages. */
  async *byPage(): AsyncGenerator<Page<Item>> {
    let next: string | null = null;
    do {
      const read: { page: Page<Item>; next: string | null } = await this.#read(next);
      next = read.next;
      yield read.page;
    } while (next !== null);
  }

  /** Returns the first page. */
  async first(): Promise<Page<Item>> {
    return (await this.#read(null)).page;
  }

  /** Returns the items of all pages. */
  async all(): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of this) items.push(item);
    return items;
  }
}
