/** Generates the types of the API and the table of its operations from `openapi.json`. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTypescript, { astToString } from "openapi-typescript";

const folder = new URL("../src/generated/", import.meta.url);
const document = JSON.parse(await readFile(new URL("../../../../openapi.json", import.meta.url), "utf8"));

/** Returns true for the media type of requests and responses that the table can express. */
const isJson = (message) => !message?.content || "application/json" in message.content;

/** Returns the kind of an operation: its method, or `LIST` for a list in pages. */
function kind(method, operation) {
  const success = Object.entries(operation.responses).filter(([status]) => status.startsWith("2"));
  const body = operation.requestBody;
  const hasHtml = success.some(([, response]) => !isJson(response));
  if (success.length === 0 || hasHtml || !isJson(body)) return null;
  const paged = (operation.parameters ?? []).some(({ name }) => name === "perPage");
  return paged ? "LIST" : method.toUpperCase();
}

const rows = [];
for (const [path, item] of Object.entries(document.paths)) {
  for (const method of ["get", "put", "post", "delete"]) {
    const operation = item[method];
    const found = operation && kind(method, operation);
    if (found && !path.includes("{")) rows.push([operation.operationId, found, path]);
  }
}

await mkdir(folder, { recursive: true });
const header = "// Generated from openapi.json by scripts/generate.mjs.\n";
const types = astToString(await openapiTypescript(document, { defaultNonNullable: false }));
await writeFile(new URL("schema.ts", folder), `${header}\n${types}`);
const table = rows.map((row) => `  ${JSON.stringify(row)},\n`).join("");
await writeFile(
  new URL("operations.ts", folder),
  `${header}\n/** The name, the kind and the path of each operation with JSON bodies. */\nexport const OPERATIONS = [\n${table}] as const;\n`,
);
