/** The HTML of pieces on a page: ids of headings, and images in several sizes. */

/** A heading of a piece. */
export interface Heading {
  depth: number;
  slug: string;
  text: string;
}

/** The widths of renditions that the server makes, in pixels. */
export type RenditionWidth = 320 | 640 | 960 | 1280 | 1920;

/** The sizes of images that Galley stores. */
export interface ImageOptions {
  /** The widths of renditions. */
  widths: readonly RenditionWidth[];
  /** The attribute `sizes`. */
  sizes: string;
}

/** The formats that have renditions. */
const RASTER = /\.(?:jpe?g|png|webp|avif)$/i;

/** Returns the address of a rendition, or null for an image of another server or format. */
function asset(src: string, url: string): string | null {
  const base = url.replace(/\/$/, "");
  const address = src.startsWith("/a/") ? base + src : src;
  const [plain = ""] = address.split("?");
  return plain.startsWith(`${base}/a/`) && RASTER.test(plain) ? plain : null;
}

/** Adds the widths of renditions to images of the server. */
export function withImageSizes(html: string, url: string, { widths, sizes }: ImageOptions): string {
  return html.replace(/<img src="([^"]*)"/g, (image, src: string) => {
    const plain = asset(src, url);
    if (plain === null) return src.startsWith("/a/") ? `<img src="${url.replace(/\/$/, "")}${src}"` : image;
    const set = widths.map((width) => `${plain}?w=${width} ${width}w`).join(", ");
    const largest = Math.max(...widths);
    return `<img src="${plain}?w=${largest}" srcset="${set}" sizes="${sizes}" loading="lazy"`;
  });
}

/** Adds an id to each heading, as anchors and tables of contents need it. */
export function withHeadingIds(html: string): { html: string; headings: Heading[] } {
  const headings: Heading[] = [];
  const counts = new Map<string, number>();
  const changed = html.replace(/<h([1-6])([^>]*)>(.*?)<\/h\1>/gs, (_, depth: string, attributes: string, inner: string) => {
    const text = plainText(inner);
    const base = text.toLowerCase().trim().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "section";
    const count = counts.get(base) ?? 0;
    counts.set(base, count + 1);
    const slug = count === 0 ? base : `${base}-${count}`;
    headings.push({ depth: Number(depth), slug, text });
    return `<h${depth} id="${slug}"${attributes}>${inner}</h${depth}>`;
  });
  return { html: changed, headings };
}

const ENTITIES: Record<string, string> = { lt: "<", gt: ">", quot: '"', nbsp: "\u00a0", amp: "&" };

function plainText(html: string): string {
  return html.replace(/<[^>]*>/g, "").replace(/&(lt|gt|quot|nbsp|amp);/g, (_, name: string) => ENTITIES[name] ?? "");
}
