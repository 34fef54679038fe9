/** An export of a group as Markdown files, which an import reads again. */
import { strToU8, zip, type Zippable } from "fflate";
import { client, type Group, nextCursor, type Piece, received } from "../api/client";

/** The pieces of a page. With content, a page has at most 100. */
const PAGE = 100;

/** Returns a part of a path that is valid on every file system. */
function part(text: string): string {
  const plain = text.replace(/[\p{Cc}/\\:*?"<>|]/gu, "-").slice(0, 100);
  return plain.replace(/^[.\s]+|[.\s]+$/g, "") || "_";
}

/** Returns a piece as Markdown with front matter. Each value is JSON, which is valid YAML as well. */
function textOf(piece: Piece, marksDrafts: boolean): string {
  const cover = { image: piece.coverUrl, alt: piece.coverAlt, width: piece.coverWidth };
  const present = Object.entries(cover).filter(([, value]) => value !== null);
  const usernames = piece.members.map((member) => member.profile?.username).filter((name) => name !== undefined);
  const fields: [string, unknown][] = [
    ["id", piece.id],
    ["title", piece.title],
    ["slug", piece.slug],
    // Without a date, an import would read one from some names.
    ["date", piece.date],
  ];
  if (marksDrafts && piece.publication.state !== "published") fields.push(["draft", true]);
  if (piece.description !== null) fields.push(["description", piece.description]);
  if (present.length > 0) fields.push(["cover", Object.fromEntries(present)]);
  if (piece.canonicalLink !== null) fields.push(["canonical", piece.canonicalLink]);
  if (piece.tags.length > 0) fields.push(["tags", piece.tags.map((tag) => tag.label)]);
  if (usernames.length > 0) fields.push(["members", usernames]);
  if (piece.customData !== null) fields.push(["customData", piece.customData]);
  // YAML has fewer characters than JSON.
  const escape = (text: string) => text.replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const lines = fields.map(([name, value]) => `${name}: ${escape(JSON.stringify(value))}\n`);
  return `---\n${lines.join("")}---\n\n${String(piece.content ?? "")}`;
}

class Export {
  isRunning = $state(false);
  done = $state(0);
  error = $state.raw<unknown>(null);

  /** Reads the pieces of a group and of those below it. Returns a zip archive, or null after an error. */
  async run(group: Group, groups: Group[], variants: { key: string }[]): Promise<Blob | null> {
    if (this.isRunning) return null;
    this.isRunning = true;
    this.error = null;
    this.done = 0;
    try {
      const files = new Map<string, string>();
      const names = new Map<string, string>();
      for await (const piece of this.#pieces(group, null)) {
        const path = [...this.#folders(piece.contentGroupId, group, groups), part(piece.slug)].join("/");
        const isTaken = [...names.values()].some((name) => name.toLowerCase() === path.toLowerCase());
        const name = isTaken ? `${path}-${piece.id}` : path;
        names.set(piece.id, name);
        // In a workspace that publishes nothing, all pieces are drafts.
        files.set(`${name}.md`, textOf(piece, true));
        this.done += 1;
      }
      for (const { key } of variants) {
        for await (const piece of this.#pieces(group, key)) {
          const name = names.get(piece.id);
          if (name !== undefined) files.set(`${name}.${key}.md`, textOf(piece, false));
        }
      }
      const content: Zippable = Object.fromEntries([...files].map(([name, text]) => [name, strToU8(text)]));
      const bytes = await new Promise<Uint8Array>((resolve, reject) => zip(content, { level: 6 }, (error, data) => (error ? reject(error) : resolve(data))));
      return new Blob([bytes as BlobPart], { type: "application/zip" });
    } catch (error) {
      this.error = error;
      return null;
    } finally {
      this.isRunning = false;
    }
  }

  async *#pieces(group: Group, variant: string | null): AsyncGenerator<Piece> {
    let cursor: string | null = null;
    do {
      const query: Record<string, unknown> = {
        contentGroupId: [group.id],
        subtree: true,
        sort: "createdAt",
        content: true,
        contentFormat: "markdown",
        perPage: PAGE,
        ...(variant === null ? {} : { variant, hasVariant: variant }),
        ...(cursor === null ? {} : { cursor }),
      };
      const { data, response } = await received(client.GET("/content-pieces/list", { params: { query } } as never));
      yield* data as unknown as Piece[];
      cursor = nextCursor(response);
    } while (cursor !== null);
  }

  /** Returns the names of the groups between the exported one and that of a piece. */
  #folders(id: string, top: Group, groups: Group[]): string[] {
    if (id === top.id) return [];
    const own = groups.find((group) => group.id === id);
    if (own === undefined) return [];
    const above = own.ancestors.slice(own.ancestors.indexOf(top.id) + 1);
    return [...above.map((one) => groups.find((group) => group.id === one)?.name ?? one), own.name].map(part);
  }
}

export const exportJob = new Export();
