// Starts Swagger UI on this service's own description. No validator: it would tell another host.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
