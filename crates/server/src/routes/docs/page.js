// Scalar's API reference of this service. Nothing is requested from other hosts.
const response = await fetch("/openapi.json");
const content = await response.json();

// Scalar would send the examples of all optional parameters with a test request, such as an `If-Match`.
const operations = Object.values(content.paths).flatMap((path) => Object.values(path));
const inline = operations.flatMap((operation) => operation.parameters ?? []).filter(({ $ref }) => $ref === undefined);
for (const parameter of [...inline, ...Object.values(content.components.parameters)]) {
  const { name, required, example, schema } = parameter;
  const value = example ?? schema.examples?.[0] ?? schema.default;
  if (required || name === "query" || value === undefined) continue;
  delete parameter.example;
  parameter.examples = { example: { value, "x-disabled": true } };
}

Scalar.createApiReference("#reference", {
  content,
  authentication: { preferredSecurityScheme: "accessToken" },
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  documentDownloadType: "direct",
  persistAuth: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  telemetry: false,
  withDefaultFonts: false,
});
