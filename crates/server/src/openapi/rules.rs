//! The common parts of operations: headers, conditional requests and problem responses.

use axum::http::StatusCode;
use galley_api_types::problem::ProblemBody;
use galley_api_types::{content, schemas};
use galley_application::Reason;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::{conditions, examples, samples, shape, webhooks};
use crate::describe::{EndpointFacts, HandlerFacts};
use crate::extract::known_parameters::UNDESCRIBED_PARAMETER;
use crate::openapi::headers::{
    RATE_LIMIT_HEADERS, headers, optional_header, parameters, refer_to_headers,
};
use crate::openapi::links::{has_parameter, link_created_resources};
use crate::openapi::problems::{documented_reasons, problem_response};
use crate::openapi::tags::{API_DESCRIPTION, TAGS};
use crate::problem::texts;

const JSON: &str = "application/json";

const HTML: &str = "text/html";

const FORM: &str = "application/x-www-form-urlencoded";

/// The media type of a form with a file.
const UPLOAD_FORM: &str = "multipart/form-data";

/// The media type of a part of a resumable upload.
const UPLOAD_PART: &str = "application/offset+octet-stream";

/// The name of the security scheme.
const TOKEN_SCHEME: &str = "accessToken";

/// The name of the scheme of sessions.
const SESSION_SCHEME: &str = "session";

/// The fields that examples show only in responses to creations.
const CREATION_ONLY_FIELDS: [&str; 2] = ["token", "warning"];

/// The operations that convert the content of pieces.
const CONVERTING_OPERATIONS: [(&str, &str); 3] =
    [("/content-pieces", "post"), ("/content-pieces", "put"), ("/content-pieces/batch", "post")];

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

/// An operation to complete.
struct OperationContext<'a> {
    path: &'a str,
    method: &'a str,
    facts: &'a HandlerFacts,
    /// True if its path has a GET as well.
    has_get: bool,
    schemas: &'a Value,
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

    fn complete_parameters(&self, operation: &mut Value) {
        let mut parameters: Vec<Value> = Vec::new();
        let given = operation["parameters"].as_array().into_iter().flatten();
        for parameter in given.filter(|given| given["name"] != UNDESCRIBED_PARAMETER) {
            // A route's own parameter overrides the shared one of the same name.
            match parameters.iter_mut().find(|known| known["name"] == parameter["name"]) {
                Some(known) => *known = parameter.clone(),
                None => parameters.push(parameter.clone()),
            }
        }
        for parameter in &mut parameters {
            if parameter["in"] == "query" && parameter["required"] != true {
                parameter["allowEmptyValue"] = true.into();
            }
            if parameter["name"] == "lastId" && parameter["schema"].get("pattern").is_none() {
                let pattern = self.pattern_of_items(operation);
                assert!(pattern.is_string(), "{}: lastId has no pattern", self.path);
                parameter["schema"]["pattern"] = pattern;
            }
            if let (None, Some(about)) =
                (parameter.get("description"), parameter["schema"].get("description").cloned())
            {
                parameter["description"] = about;
            }
            let schema = &mut parameter["schema"];
            schema.as_object_mut().map(|schema| schema.shift_remove("description"));
            // A parameter is present or absent, never null.
            if let Some(types) = schema["type"].as_array() {
                schema["type"] = types.first().cloned().unwrap_or_default();
            }
            if let Some([_, named]) = schema["anyOf"].as_array().map(Vec::as_slice) {
                *schema = named.clone();
            }
        }
        let mut common = Vec::new();
        if self.facts.token {
            common.push("GalleyWorkspace");
        }
        if self.method == "get" {
            common.push("IfNoneMatch");
        }
        if self.facts.if_match {
            common.push("IfMatch");
        }
        if self.facts.resumable {
            common.push("TusResumable");
        }
        if self.facts.prefer {
            common.push("Prefer");
        }
        if self.facts.allows_stale {
            common.push("PreferMaxAge");
        }
        if self.facts.idempotent {
            common.push("IdempotencyKey");
        }
        let refer = |name| json!({"$ref": format!("#/components/parameters/{name}")});
        parameters.extend(common.into_iter().map(refer));
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
    }

    /// Returns the pattern of the identifiers in the list of the response.
    fn pattern_of_items(&self, operation: &Value) -> Value {
        let list = &operation["responses"]["200"]["content"][JSON]["schema"];
        self.resource(&list["items"])["properties"]["id"]["pattern"].clone()
    }

    fn complete_body(&self, operation: &mut Value) {
        let content = &mut operation["requestBody"]["content"];
        let has_form =
            [FORM, UPLOAD_FORM, UPLOAD_PART].iter().any(|form| content.get(*form).is_some());
        match content.get_mut(JSON) {
            Some(body) => self.add_example(body),
            None if has_form => {}
            None => {
                operation.as_object_mut().map(|operation| operation.shift_remove("requestBody"));
            }
        }
    }

    /// Adds an example to a body, unless it has some.
    fn add_example(&self, body: &mut Value) {
        if ["example", "examples"].iter().all(|key| body.get(key).is_none())
            && let Some(example) = examples::example_of(&body["schema"], self.schemas)
        {
            body["example"] = example;
        }
    }

    /// Returns the responses with a status below 400, and HTML pages of any status.
    fn successes(&self, operation: &Value) -> Map<String, Value> {
        let mut answers = Map::new();
        let given = operation["responses"].as_object().into_iter().flatten();
        for (status, answer) in given {
            let is_page = answer["content"].get(HTML).is_some();
            if status.as_str() >= "400" && !is_page {
                continue;
            }
            let mut answer = answer.clone();
            let schema = answer["content"].get(JSON).map(|body| body["schema"].clone());
            if let (Some(resource), "201", true) = (&schema, &**status, self.facts.prefer) {
                let created = self.created_schema(resource);
                answer["content"][JSON]["schema"] = json!({"anyOf": [created, resource]});
                answer["content"][JSON]["examples"] = json!({
                    "minimal": {"value": self.created(resource)},
                    "representation": {"value": examples::example_of(resource, self.schemas)},
                });
            } else if let Some(body) =
                answer.get_mut("content").and_then(|content| content.get_mut(JSON))
            {
                self.add_example(body);
                if self.facts.effect(self.method) != "post" {
                    remove_creation_only_fields(&mut body["example"]);
                }
            }
            if status.as_str() < "400" {
                answer["description"] = self.describe(status).into();
            }
            let own = answer["headers"].take();
            answer["headers"] = self.headers(status, operation);
            for (name, header) in own.as_object().into_iter().flatten() {
                answer["headers"][name] = header.clone();
            }
            answers.insert(status.clone(), answer);
        }
        let writes = matches!(self.facts.effect(self.method), "put" | "delete");
        if writes && (self.facts.prefer || answers.is_empty()) {
            self.add_bodyless_response(&mut answers, "204", operation);
        }
        if self.method == "get" && !self.is_private() {
            self.add_bodyless_response(&mut answers, "304", operation);
        }
        answers
    }

    fn add_bodyless_response(
        &self,
        answers: &mut Map<String, Value>,
        status: &str,
        operation: &Value,
    ) {
        let headers = self.headers(status, operation);
        let answer = json!({"description": self.describe(status), "headers": headers});
        answers.insert(status.to_owned(), answer);
    }

    /// Returns the example of a creation's response without a preference: the identifier, and the
    /// fields that are shown once.
    fn created(&self, resource: &Value) -> Value {
        let whole = examples::example_of(resource, self.schemas).unwrap_or_default();
        let fields =
            self.creation_only_fields(resource).map(|name| (name.to_owned(), whole[name].clone()));
        Value::Object([("id".to_owned(), whole["id"].clone())].into_iter().chain(fields).collect())
    }

    /// Returns the schema of the example from [`Self::created`].
    fn created_schema(&self, resource: &Value) -> Value {
        let created = json!({"$ref": "#/components/schemas/Created"});
        let more: Vec<_> = self.creation_only_fields(resource).collect();
        if more.is_empty() {
            return created;
        }
        let mut schema = self.schemas["Created"].clone();
        for name in more {
            schema["properties"][name] = self.resource(resource)["properties"][name].clone();
        }
        schema
    }

    /// Returns the fields of a resource that are shown once.
    fn creation_only_fields(&self, resource: &Value) -> impl Iterator<Item = &'static str> {
        let properties = &self.resource(resource)["properties"];
        CREATION_ONLY_FIELDS.into_iter().filter(|name| properties.get(name).is_some())
    }

    fn resource(&self, schema: &Value) -> &Value {
        &self.schemas[shape::reference(schema).unwrap_or_default()]
    }

    fn describe(&self, status: &str) -> &'static str {
        match (self.facts.effect(self.method), status) {
            ("get" | "options" | "post", "200") => "OK.",
            ("put", "200") => {
                "With `Prefer: return=representation`: the resource in its new state."
            }
            ("post", "201") if self.facts.prefer => {
                "Created. The body contains the identifier; with `Prefer: return=representation` \
                 it is the whole resource."
            }
            (_, "201") => "Created.",
            ("delete", "204") => "Deleted.",
            (_, "204") => "Updated.",
            (_, "206") => "The requested range of bytes.",
            (_, "304") => "Not modified: `If-None-Match` names the current entity tag.",
            (_, "303") => "Signed in: the browser is sent to the start page.",
            _ => "Accepted.",
        }
    }

    /// Returns true if no cache may store the response.
    fn is_private(&self) -> bool {
        self.path == "/invite" || self.path.starts_with("/sign-in")
    }

    fn headers(&self, status: &str, operation: &Value) -> Value {
        let mut names = vec!["X-Request-Id", "Cache-Control"];
        match (self.facts.effect(self.method), status) {
            ("get", "303") => names.extend(["Location", "Vary"]),
            ("get", _) if self.is_private() => names.push("Vary"),
            ("get", _) => names.extend(["ETag", "Vary"]),
            ("put", "200") if self.facts.prefer => names.extend(["ETag", "Preference-Applied"]),
            ("put", "204") if self.facts.prefer => names.push("ETag"),
            ("post", "201") if self.has_get => names.push("Location"),
            (_, "303") => names.push("Location"),
            _ => {}
        }
        let limited = if self.facts.token { RATE_LIMIT_HEADERS } else { &[] };
        let optional = match (self.facts.effect(self.method), status) {
            ("post", "201") if self.facts.prefer => &["ETag", "Preference-Applied"][..],
            ("get", "200" | "304")
                if has_parameter(operation, "cursor") || has_parameter(operation, "after") =>
            {
                &["Link"]
            }
            _ => &[],
        };
        let mut headers = refer_to_headers(&names);
        for &name in optional.iter().chain(limited) {
            headers[name] = optional_header(name);
        }
        if status == "429" {
            headers["Retry-After"] = optional_header("Retry-After");
        }
        if matches!(status, "200" | "304") && has_parameter(operation, "total") {
            headers["Total-Count"] = optional_header("Total-Count");
        }
        if status == "200" && self.path == "/content-pieces/search" {
            headers["Search-Sequence"] = optional_header("Search-Sequence");
        }
        if self.facts.allows_stale {
            headers["Age"] = optional_header("Age");
            headers["Preference-Applied"] = optional_header("Preference-Applied");
        }
        if CONVERTING_OPERATIONS.contains(&(self.path, self.method)) {
            headers["Conversion-Warnings"] = optional_header("Conversion-Warnings");
        }
        if self.facts.idempotent {
            headers["Idempotency-Replayed"] = optional_header("Idempotency-Replayed");
        }
        headers
    }

    /// Returns the statuses of the problem responses, each with its possible reasons.
    fn problems(&self, operation: &Value) -> Vec<(StatusCode, Vec<Reason>)> {
        let facts = self.facts;
        let mut reasons = vec![Reason::Internal];
        let mut when = |condition: bool, more: &[Reason]| {
            if condition {
                reasons.extend(more);
            }
        };
        when(facts.query || facts.body || facts.signs_in && facts.form, &[Reason::Validation]);
        when(facts.body || facts.form, &[Reason::MalformedBody]);
        when(
            facts.body || facts.form,
            &[Reason::RequestTimeout, Reason::PayloadTooLarge, Reason::UnsupportedMediaType],
        );
        when(facts.token, &[Reason::Unauthorized, Reason::UnknownParameter]);
        // A session names a workspace of its user.
        when(facts.token, &[Reason::ForeignOrigin, Reason::Validation, Reason::NotFound]);
        // Few routes accept preview tokens.
        when(facts.token, &[Reason::InsufficientPermissions]);
        when(
            facts.signs_in && facts.body,
            &[Reason::ForeignOrigin, Reason::InsecureConnection, Reason::TooManySignIns],
        );
        when(self.has_references(operation), &[Reason::NotFound]);
        when(facts.if_match, &[Reason::PreconditionFailed]);
        when(facts.resumable, &[Reason::UnsupportedProtocol]);
        when(
            facts.service,
            &[Reason::DatabaseUnavailable, Reason::Overloaded, Reason::StorageFull],
        );
        when(self.path == "/readyz", &[Reason::NotReady]);
        when(facts.token, &[Reason::RateLimited]);
        when(
            facts.idempotent && facts.token,
            &[Reason::AlreadyAnswered, Reason::IdempotencyKeyReused],
        );
        let given = operation["responses"].as_object().into_iter().flatten();
        let of_problem = |(status, answer): &(&String, &Value)| {
            status.as_str() >= "400" && answer["content"].get(HTML).is_none()
        };
        for (status, response) in given.filter(of_problem) {
            reasons.extend(documented_reasons(self.path, status, &response["description"]));
        }
        // In the order of the table, without duplicates.
        let mut by_status = std::collections::BTreeMap::<_, Vec<_>>::new();
        for &reason in Reason::ALL.iter().filter(|reason| reasons.contains(reason)) {
            by_status.entry(texts(reason).status.as_u16()).or_default().push(reason);
        }
        by_status.into_values().map(|reasons| (texts(reasons[0]).status, reasons)).collect()
    }

    /// Returns true if the operation addresses one resource, which may not exist.
    fn has_references(&self, operation: &Value) -> bool {
        let body = &operation["requestBody"]["content"][JSON]["schema"];
        let body = shape::reference(body).map_or(body, |name| &self.schemas[name]);
        ["id", "variant"]
            .iter()
            .any(|name| has_parameter(operation, name) || body["properties"].get(name).is_some())
            || self.path.contains('{')
    }
}

/// Removes the fields from an example that are shown once.
fn remove_creation_only_fields(example: &mut Value) {
    match example {
        Value::Array(items) => items.iter_mut().for_each(remove_creation_only_fields),
        Value::Object(fields) => {
            fields.retain(|name, _| !CREATION_ONLY_FIELDS.contains(&name.as_str()));
        }
        _ => {}
    }
}
