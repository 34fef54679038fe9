/**
 * Starts an example with a server and sample content: `node examples/start.mjs tiptap-editor`.
 *
 * The server and its data are in `target/examples`. `GALLEY_PROGRAM` names a program to use; else the
 * release build of this repository is. `--build` builds the example, and ends.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const names = ["astro-blog", "tiptap-editor"];
const [name, ...flags] = process.argv.slice(2);
if (!names.includes(name) || flags.some((flag) => flag !== "--build")) {
  console.error(`usage: node examples/start.mjs ${names.join("|")} [--build]`);
  process.exit(2);
}
const folder = join(root, "examples", name);
const origin = name === "astro-blog" ? "http://localhost:4321" : "http://localhost:5173";
const client = join(root, "clients/typescript/client");
const astro = join(root, "clients/typescript/astro");

/** Runs a command to its end, and returns its output if `stdout` is `pipe`. */
function run(command, args, { cwd = root, env = {}, stdout = "inherit" } = {}) {
  const stdio = ["ignore", stdout, "inherit"];
  const { status, error, stdout: output } = spawnSync(command, args, { cwd, stdio, env: { ...process.env, ...env } });
  if (error?.code === "ENOENT") console.error(`${command} is not installed`);
  if (status !== 0) process.exit(1);
  return output?.toString().trim();
}

const npm = (args, cwd) => run("npm", [...args, "--no-audit", "--no-fund"], { cwd });

function buildPackages() {
  console.log("\n# Packages");
  if (!existsSync(join(root, "node_modules/vite"))) npm(["ci", "--ignore-scripts"]);
  npm(["run", "build", "--silent", "--workspace", "@galley/client", "--workspace", "@galley/tiptap"]);
  if (name !== "astro-blog") return;
  if (!existsSync(join(astro, "node_modules/astro"))) {
    npm(["install", "--no-save", "--ignore-scripts", client, "astro@5.18.2", "typescript@5.9.3"], astro);
  }
  run("npx", ["tsc", "-p", "tsconfig.build.json"], { cwd: astro });
  if (!existsSync(join(folder, "node_modules/astro"))) npm(["install", "--no-save", "--ignore-scripts", client, astro], folder);
}

function program() {
  if (process.env.GALLEY_PROGRAM) return process.env.GALLEY_PROGRAM;
  console.log("\n# Server (the first build takes some minutes)");
  run("cargo", ["build", "--release", "--package", "galley"]);
  return join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "release/galley");
}

async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Starts a server with the sample content, and returns its address, a token and its process. */
async function startServer() {
  const galley = program();
  const data = join(root, "target/examples", name);
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data, { recursive: true });
  const url = `http://127.0.0.1:${await freePort()}`;
  const env = { GALLEY_DATA_DIR: data, GALLEY_PUBLIC_URL: url, GALLEY_CORS_ORIGINS: origin, GALLEY_LOG: "error" };
  run(galley, ["init", "--workspace", "Harbour", "--email", "owner@localhost"], { env, stdout: "ignore" });
  run(galley, ["import", join(root, "examples/content"), "--variants", "en,de"], { env });
  const view = name === "astro-blog" ? ["--view", "published", "--permission", "contentPieces:read"] : [];
  const token = run(galley, ["token", "create", "--name", name, ...view], { env, stdout: "pipe" });
  const args = ["serve", "--listen", new URL(url).host];
  const server = spawn(galley, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "inherit"] });
  server.on("exit", (status) => status && process.exit(status));
  process.on("exit", () => server.kill());
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit());
  while (!(await fetch(`${url}/readyz`).then((response) => response.ok, () => false))) {
    await new Promise((next) => setTimeout(next, 100));
  }
  const link = run(galley, ["sign-in", "--email", "owner@localhost"], { env, stdout: "pipe" });
  console.log(`\nThe server is ${url}. Sign in to its console within 15 minutes: ${link}`);
  return { url, token };
}

buildPackages();
const { url, token } = await startServer();
const env = { ...process.env, GALLEY_URL: url, GALLEY_TOKEN: token, PUBLIC_GALLEY_URL: url, PUBLIC_GALLEY_TOKEN: token };
console.log(`\n# ${name}`);
if (name === "tiptap-editor") console.log(`Open ${origin}/#${new URLSearchParams({ url, token })} and press "Sign in"\n`);
const task = flags.includes("--build") ? "build" : "dev";
const example = spawn("npm", ["run", task], { cwd: folder, env, stdio: "inherit", detached: true });
example.on("exit", (status) => process.exit(status ?? 0));
// npm does not pass signals on to its child, so the group gets them.
process.on("exit", () => {
  try {
    process.kill(-example.pid);
  } catch {
    // It has ended.
  }
});
