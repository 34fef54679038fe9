import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  base: "/console/",
  plugins: [svelte()],
  build: {
    target: "es2022",
    assetsDir: "assets",
    // The content security policy forbids styles and scripts in the page, and `data:` addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    // `npm run dev` beside `galley serve --public-url http://localhost:5173`.
    proxy: { "^/(?!console)": "http://127.0.0.1:8080" },
  },
});
