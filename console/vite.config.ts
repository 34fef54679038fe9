import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

/** The sources of the package, which need no build. */
const tiptap = fileURLToPath(new URL("../clients/typescript/tiptap/src/index.ts", import.meta.url));

export default defineConfig({
  base: "/console/",
  plugins: [svelte()],
  resolve: { alias: { "@galley/tiptap": tiptap } },
  build: {
    target: "es2022",
    assetsDir: "assets",
    // The content security policy forbids styles and scripts in the page, and `data:` addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // For the notices of releases.
    license: { fileName: "licenses.md" },
  },
  server: {
    // `npm run dev` beside `galley serve --public-url http://localhost:5173`.
    proxy: { "^/(?!console)": "http://127.0.0.1:8080" },
  },
});
