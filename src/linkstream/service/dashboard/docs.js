/** Starts Swagger UI (/docs) on the description of the service. The token is not kept. */

const { SwaggerUIBundle } = /** @type {any} */ (globalThis);

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  filter: true,
  persistAuthorization: false,
  validatorUrl: null,
});
