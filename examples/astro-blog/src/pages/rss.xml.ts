import rss from "@astrojs/rss";
import type { APIContext } from "astro";
import { pathOf } from "../path";
import { dateOf, postsOf } from "../posts";

export async function GET({ site }: APIContext): Promise<Response> {
  const posts = await postsOf("en");
  const items = posts.map((post) => ({
    title: post.data.title,
    description: post.data.description ?? "",
    link: pathOf(post.id),
    pubDate: dateOf(post),
    content: post.rendered?.html ?? "",
  }));
  return rss({ title: "The blog", description: "The posts of the blog", site: site!, items });
}
