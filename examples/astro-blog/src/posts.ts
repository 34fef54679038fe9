import { type CollectionEntry, getCollection } from "astro:content";

export type Post = CollectionEntry<"posts">;

/** The languages of the site. The first one has no prefix in addresses. */
export const LOCALES = ["en", "de"];

/** Returns the posts of a language, the newest first. */
export async function postsOf(locale: string): Promise<Post[]> {
  const posts = await getCollection("posts", ({ data }) => data.locale === locale);
  return posts.sort((a, b) => dateOf(b).getTime() - dateOf(a).getTime());
}

/** Returns the date of a post. */
export function dateOf({ data }: Post): Date {
  return data.date ?? data.createdAt;
}

/** Returns the address of a tag. */
export function tagPath(label: string): string {
  return `/tags/${label.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}/`;
}
