//! The common parts of the document and of its operations: schemas, tags and permissions.

use galley_api_types::problem::ProblemBody;
use galley_api_types::{content, schemas};
use galley_application::Reason;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::{conditions, samples, shape, webhooks};
use crate::describe::EndpointFacts;
use crate::openapi::headers::{headers, parameters};
use crate::openapi::links::link_created_resources;
use crate::openapi::operation::OperationContext;
use crate::openapi::problems::problem_response;
use crate::openapi::responses::HTML;
use crate::openapi::tags::{API_DESCRIPTION, TAGS};

/// The name of the security scheme.
const TOKEN_SCHEME: &str = "accessToken";

/// The name of the scheme of sessions.
const SESSION_SCHEME: &str = "session";

/// Completes the document that utoipa generates from the routes.
pub(crate) fn complete(mut document: Value, facts: &[EndpointFacts]) -> Value {
    let mut all = document["components"]["schemas"].take();
    for (name, schema) in own_schemas() {
        all[name] = schema;
    }
    webhooks::add_event_data(&mut all);
    all["EventEnvelope"]["properties"]["data"] = webhooks::any_event_data();
    let reasons = Reason::ALL.iter().map(|reason| reason.as_str());
    all["Problem"]["properties"]["reason"]["enum"] = reasons.collect();
    document["components"] = json!({"schemas": all});
    document["webhooks"] = webhooks::section();
    shape::convert_to_3_1(&mut document);
    shape::inline_texts(&mut document);
    let schemas = document["components"]["schemas"].take();
    let mut schemas = require_in_responses(&document, schemas);
    conditions::add(&mut schemas);
    webhooks::add_examples(&mut document["webhooks"], &schemas);
    let mut paths = document["paths"].take();
    let mut responses = Map::new();
    for EndpointFacts { path, method, facts, .. } in facts {
        let method = &*method.as_str().to_ascii_lowercase();
        let has_get = paths[path].get("get").is_some();
        let operation = OperationContext { path, method, facts, has_get, schemas: &schemas };
        operation.complete(&mut paths[path][method], &mut responses);
    }
    link_created_resources(&mut paths);
    let used = |name: &str| operations(&paths).any(|operation| operation["tags"][0] == name);
    let tags: Vec<Value> = TAGS
        .iter()
        .filter(|(_, name, about)| !about.is_empty() && used(name))
        .map(|(_, name, about)| json!({"name": name, "description": about}))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Galley",
            "version": env!("CARGO_PKG_VERSION"),
            "description": API_DESCRIPTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": tags,
        "paths": paths,
        "webhooks": document["webhooks"],
        "components": {
            "securitySchemes": {
                TOKEN_SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An access token: `galley_` and 49 letters and digits. Each \
                                    operation lists the permission that the token must have.",
                },
                SESSION_SCHEME: {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "galley-session",
                    "description": "The cookie of a session, for pages of the service itself. Under \
                                    https its name is `__Host-galley-session`. The role of the \
                                    signed-in member must have the permission of the operation.",
                },
            },
            "parameters": parameters(),
            "headers": headers(),
            "responses": responses,
            "schemas": schemas,
        },
    })
}

/// Returns the schemas that no route refers to.
fn own_schemas() -> Vec<(String, Value)> {
    let mut list = Vec::new();
    ProblemBody::schemas(&mut list);
    list.push((ProblemBody::name().into(), ProblemBody::schema()));
    list.push((schemas::Created::name().into(), schemas::Created::schema()));
    webhooks::schemas(&mut list);
    let value = |schema| serde_json::to_value(schema).expect("schemas are JSON");
    let mut schemas: Vec<_> =
        list.into_iter().map(|(name, schema)| (name, value(schema))).collect();
    schemas.extend(content::schemas());
    schemas.extend(webhooks::bodies());
    schemas
}

/// Returns all operations of `paths`.
fn operations(paths: &Value) -> impl Iterator<Item = &Value> {
    let items = paths.as_object().into_iter().flatten();
    items.filter_map(|(_, item)| item.as_object()).flatten().map(|(_, operation)| operation)
}

/// Makes schemas of responses require the fields that are always present.
fn require_in_responses(document: &Value, mut schemas: Value) -> Value {
    let mut requests = Vec::new();
    for operation in operations(&document["paths"]) {
        shape::reachable(&operation["requestBody"], &schemas, &mut requests);
    }
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        if !requests.contains(name) {
            shape::require_nullable(schema);
        }
    }
    schemas
}

impl OperationContext<'_> {
    fn complete(&self, operation: &mut Value, responses: &mut Map<String, Value>) {
        let permissions: Vec<String> =
            self.facts.permissions.iter().map(ToString::to_string).collect();
        let name = self.tag();
        operation["tags"] = json!([name]);
        if self.facts.token {
            let about = operation["description"].as_str().unwrap_or_default();
            let needs = match &*permissions {
                [] => "Requires a valid token.".to_owned(),
                [permission] => format!("Requires the permission `{permission}`."),
                several => format!("Requires one of the permissions `{}`.", several.join("`, `")),
            };
            operation["description"] = format!("{about}\n\n{needs}").trim().into();
            // Each item is an alternative.
            let alternative = |permission: &String| json!({TOKEN_SCHEME: [permission]});
            let mut alternatives: Vec<Value> = match &*permissions {
                [] => vec![json!({TOKEN_SCHEME: []})],
                permissions => permissions.iter().map(alternative).collect(),
            };
            alternatives.push(json!({SESSION_SCHEME: []}));
            operation["security"] = Value::Array(alternatives);
        } else {
            operation["security"] = json!([]);
        }
        self.complete_parameters(operation);
        self.complete_body(operation);
        let mut operation_responses = self.successes(operation);
        for (status, reasons) in self.problems(operation) {
            let (name, mut response) = problem_response(status, &reasons);
            if let Some(page) = operation_responses.get_mut(status.as_str()) {
                // Errors of a submitted form are also returned as an HTML page.
                response["content"][HTML] = page["content"][HTML].clone();
                let of_page = page["description"].as_str().unwrap_or_default();
                let of_problem = response["description"].as_str().unwrap_or_default();
                response["description"] = Value::from(format!("{of_page} {of_problem}"));
                *page = response;
                continue;
            }
            operation_responses.insert(
                status.as_str().to_owned(),
                json!({"$ref": format!("#/components/responses/{name}")}),
            );
            responses.insert(name, response);
        }
        operation_responses.sort_keys();
        operation["responses"] = Value::Object(operation_responses);
        samples::add(operation, self.method, self.path, self.schemas);
    }

    /// Returns the name of the operation's group.
    fn tag(&self) -> &'static str {
        let first = self.path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let known = TAGS.iter().find(|(path, ..)| *path == first);
        known.unwrap_or_else(|| panic!("{first} has no line in TAGS")).1
    }
}
