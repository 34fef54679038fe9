import { galleyLoader } from "@galley/astro";
import { defineCollection } from "astro:content";

const { GALLEY_URL, GALLEY_TOKEN } = process.env;
const loader = galleyLoader({ url: GALLEY_URL!, token: GALLEY_TOKEN!, locale: "en", variants: ["de"] });
export const collections = { posts: defineCollection({ loader }) };
