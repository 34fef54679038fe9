//! The common parts of operations: headers, conditional requests and problem responses.

use axum::http::StatusCode;
use galley_api_types::problem::{Issue, ProblemBody, Step};
use galley_api_types::{content, schemas};
use galley_application::{Reason, Rejection};
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::{conditions, examples, shape, webhooks};
use crate::describe::{EndpointFacts, HandlerFacts};
use crate::problem::{Problem, texts};

const JSON: &str = "application/json";

const HTML: &str = "text/html";

const FORM: &str = "application/x-www-form-urlencoded";

/// The name of the security scheme.
const TOKEN_SCHEME: &str = "accessToken";

/// The fields that examples show only in responses to creations.
const CREATION_ONLY_FIELDS: [&str; 2] = ["token", "warning"];

/// The groups of endpoints: the first segment of the path, the name and the description.
const TAGS: [(&str, &str, &str); 19] = [
    (
        "content-pieces",
        "Content pieces",
        "Articles, posts and other content, with metadata and variants.",
    ),
    ("content-groups", "Content groups", "The tree of groups that hold pieces."),
    ("tags", "Tags", "Labels with a color for pieces."),
    ("variants", "Variants", "Alternative versions of pieces, such as languages."),
    ("workspace-memberships", MEMBERSHIPS, "The members of the workspace, and invites."),
    ("invites", MEMBERSHIPS, ""),
    ("invite", MEMBERSHIPS, ""),
    ("roles", "Roles", "Named sets of permissions for members."),
    (
        "tokens",
        "Tokens",
        "Access tokens for programs. A token has at most the permissions of its member.",
    ),
    ("profile", "Profile", "The user of the token."),
    ("workspace", "Workspace", "The workspace of the token."),
    ("webhooks", "Webhooks", "Receivers of events, and their deliveries."),
    ("events", "Events", "The changes in the workspace, in the order of their commits."),
    ("", SERVICE, ""),
    ("healthz", SERVICE, "The service itself: health, documentation. Requires no token."),
    ("readyz", SERVICE, ""),
    ("openapi.json", SERVICE, ""),
    ("docs", SERVICE, ""),
    ("problems", SERVICE, ""),
];

const SERVICE: &str = "Service";

const MEMBERSHIPS: &str = "Workspace memberships";

const API_DESCRIPTION: &str = "\
    A self-hosted service for content-management and publishing workspaces: content pieces in \
    groups, with tags and variants, by members with roles, and webhooks for changes.\n\nUnknown \
    fields and unknown query parameters are ignored, and every path works with and without a \
    slash at its end. HEAD works where GET does. A body on GET or DELETE is ignored. Identifiers \
    are opaque, and a malformed one gets the same response as one that does not exist. These \
    paths change by addition only: clients must accept fields that are not described here.";

/// Completes the document that utoipa generates from the routes.
pub(crate) fn complete(mut document: Value, facts: &[EndpointFacts]) -> Value {
    let mut all = document["components"]["schemas"].take();
    for (name, schema) in own_schemas() {
        all[name] = schema;
    }
    webhooks::add_piece_data(&mut all);
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
    for EndpointFacts { path, method, facts } in facts {
        let has_get = paths[path].get("get").is_some();
        let operation = OperationContext { path, method, facts, has_get, schemas: &schemas };
        operation.complete(&mut paths[path][*method], &mut responses);
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
        let (name, permission) = (self.tag(), self.facts.permission.map(|it| it.to_string()));
        operation["tags"] = json!([name]);
        if self.facts.token {
            let about = operation["description"].as_str().unwrap_or_default();
            let needs = match &permission {
                Some(permission) => format!("Requires the permission `{permission}`."),
                None => "Requires a valid token.".to_owned(),
            };
            operation["description"] = format!("{about}\n\n{needs}").trim().into();
            operation["security"] =
                json!([{TOKEN_SCHEME: permission.into_iter().collect::<Vec<_>>()}]);
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
    }

    /// Returns the name of the operation's group.
    fn tag(&self) -> &'static str {
        let first = self.path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let known = TAGS.iter().find(|(path, ..)| *path == first);
        known.unwrap_or_else(|| panic!("{first} has no line in TAGS")).1
    }

    fn complete_parameters(&self, operation: &mut Value) {
        let mut parameters: Vec<Value> = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
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
                parameter["schema"]["pattern"] = self.pattern_of_items(operation);
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
        if self.method == "get" {
            common.push("IfNoneMatch");
        }
        if self.facts.if_match {
            common.push("IfMatch");
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
        if content.get(FORM).is_some() {
            return;
        }
        match content.get_mut(JSON) {
            Some(body) => self.add_example(body),
            None => {
                operation.as_object_mut().map(|operation| operation.shift_remove("requestBody"));
            }
        }
    }

    /// Adds an example to a body, unless it has one.
    fn add_example(&self, body: &mut Value) {
        if body.get("example").is_none()
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
            } else if let Some(body) = answer["content"].get_mut(JSON) {
                self.add_example(body);
                if self.method != "post" {
                    remove_creation_only_fields(&mut body["example"]);
                }
            }
            if status.as_str() < "400" {
                answer["description"] = self.describe(status).into();
            }
            answer["headers"] = self.headers(status, operation);
            answers.insert(status.clone(), answer);
        }
        let writes = matches!(self.method, "put" | "delete");
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
        match (self.method, status) {
            ("get", "200") => "OK.",
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
            (_, "304") => "Not modified: `If-None-Match` names the current entity tag.",
            _ => "Accepted.",
        }
    }

    /// Returns true if no cache may store the response.
    fn is_private(&self) -> bool {
        self.path == "/invite"
    }

    fn headers(&self, status: &str, operation: &Value) -> Value {
        let mut names = vec!["X-Request-Id", "Cache-Control"];
        match (self.method, status) {
            ("get", _) if self.is_private() => names.push("Vary"),
            ("get", _) => names.extend(["ETag", "Vary"]),
            ("put", "200") if self.facts.prefer => names.extend(["ETag", "Preference-Applied"]),
            ("put", "204") if self.facts.prefer => names.push("ETag"),
            ("post", "201") if self.has_get => names.push("Location"),
            _ => {}
        }
        let limited = if self.facts.token { RATE_LIMIT_HEADERS } else { &[] };
        let optional = match (self.method, status) {
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
        if self.facts.allows_stale {
            headers["Age"] = optional_header("Age");
            headers["Preference-Applied"] = optional_header("Preference-Applied");
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
        when(facts.query || facts.body, &[Reason::Validation]);
        when(facts.body || facts.form, &[Reason::MalformedBody]);
        when(
            facts.body || facts.form,
            &[Reason::RequestTimeout, Reason::PayloadTooLarge, Reason::UnsupportedMediaType],
        );
        when(facts.token, &[Reason::Unauthorized]);
        when(facts.permission.is_some(), &[Reason::InsufficientPermissions]);
        when(self.has_references(operation), &[Reason::NotFound]);
        when(facts.if_match, &[Reason::PreconditionFailed]);
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

/// Adds links to the responses to creations: the operations that read and delete the new resource.
fn link_created_resources(paths: &mut Value) {
    let items = paths.as_object_mut().into_iter().flatten();
    for item in items.map(|(_, item)| item) {
        let links: Map<String, Value> = ["get", "delete"]
            .into_iter()
            .filter_map(|method| Some((method, item.get(method)?)))
            .filter(|(_, operation)| has_parameter(operation, "id"))
            .map(|(method, operation)| {
                let operation = &operation["operationId"];
                let parameters = json!({"id": "$response.body#/id"});
                let link = json!({"operationId": operation, "parameters": parameters});
                (method.to_owned(), link)
            })
            .collect();
        let made = item.pointer_mut("/post/responses/201");
        if let Some(made) = made.filter(|_| !links.is_empty()) {
            made["links"] = Value::Object(links);
        }
    }
}

fn has_parameter(operation: &Value, name: &str) -> bool {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.into_iter().any(|parameter| parameter["name"] == name)
}

/// Parses the reasons in an annotation: the description of a response, separated by commas.
fn documented_reasons(path: &str, status: &str, names: &Value) -> Vec<Reason> {
    let names = names.as_str().unwrap_or_default().split(',').map(str::trim);
    let reason = |name: &str| {
        let known = Reason::ALL
            .iter()
            .find(|reason| reason.as_str() == name && texts(**reason).status.as_str() == status);
        *known.unwrap_or_else(|| panic!("{path}: {name:?} is no reason of the status {status}"))
    };
    names.map(reason).collect()
}

/// Returns the problem response of this status with these possible reasons, and its component name.
fn problem_response(status: StatusCode, reasons: &[Reason]) -> (String, Value) {
    let name = reasons.iter().map(|reason| format!("{reason:?}")).collect::<Vec<_>>().join("Or");
    let lines = reasons.iter().map(|reason| {
        let (name, title) = (reason.as_str(), texts(*reason).title);
        format!("[`{name}`](/problems/{name}): {title}.")
    });
    let examples: Map<String, Value> = reasons
        .iter()
        .map(|&reason| (reason.as_str().to_owned(), problem_example(reason)))
        .collect();
    let mut names = vec!["X-Request-Id", "Cache-Control"];
    match status {
        StatusCode::UNAUTHORIZED => names.push("WWW-Authenticate"),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::INSUFFICIENT_STORAGE => names.push("Retry-After"),
        _ => {}
    }
    let mut headers = refer_to_headers(&names);
    if status == StatusCode::TOO_MANY_REQUESTS {
        for name in RATE_LIMIT_HEADERS {
            headers[name] = optional_header(name);
        }
    }
    let response = json!({
        "description": lines.collect::<Vec<_>>().join(" "),
        "headers": headers,
        "content": {
            "application/problem+json": {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": examples,
            },
        },
    });
    (name, response)
}

fn problem_example(reason: Reason) -> Value {
    let mut problem = Rejection::new(reason, texts(reason).cause.replace('`', ""));
    if reason == Reason::Validation {
        let required = galley_domain::Invalid::new("required", "is required");
        problem =
            Rejection::of_issues(vec![Issue::new(vec![Step::Field("id".to_owned())], &required)]);
    } else if reason == Reason::UnknownReference {
        let path = vec![Step::Field("tags".to_owned()), Step::Item(1)];
        problem = Rejection::of_issues(vec![Issue::unknown_reference(path, "tag")]);
    }
    let json = Problem::from(problem).to_json("01a1fc13012e52d457d806ffae31da64");
    let value: Value = serde_json::from_str(&json).expect("a problem is JSON");
    json!({"summary": texts(reason).title, "value": value})
}

fn refer_to_headers(names: &[&str]) -> Value {
    let refer =
        |name: &&str| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")}));
    Value::Object(names.iter().map(refer).collect())
}

/// The response headers: name, description and example.
const HEADERS: [(&str, &str, &str); 13] = [
    (
        "X-Request-Id",
        "The request's id: that of the request if it has 1 to 128 visible ASCII characters, \
         otherwise a new one. It is logged.",
        "01a1fc13012e52d457d806ffae31da64",
    ),
    ("Cache-Control", "The caching rules for the response.", "private, no-cache"),
    (
        "ETag",
        "The version of the resource and a hash of this representation of it.",
        "\"3.lQ0xRcq1uBxWJ5f2\"",
    ),
    (
        "Vary",
        "The request headers on which the response depends.",
        "authorization, accept-encoding",
    ),
    ("Location", "The URL of the new resource.", "/tags?id=tag_01kah3v9k8d4x7w2m5n6p8q9rs"),
    (
        "Link",
        "The URL of the next page; absent on the last page.",
        "</tags/list?perPage=50&cursor=WyJpZCJd>; rel=\"next\"",
    ),
    ("Preference-Applied", "The preference that was applied.", "return=representation"),
    ("Age", "With `Prefer: max-age`: the maximum age of the response in seconds.", "1"),
    ("WWW-Authenticate", "The authentication scheme.", "Bearer"),
    ("Retry-After", "The seconds to wait before a retry.", "5"),
    ("RateLimit", "The remaining quota.", "\"default\";r=0;t=30"),
    ("RateLimit-Policy", "The limit.", "\"default\";q=600;w=60"),
    ("Idempotency-Replayed", "The response is that of an earlier request with this key.", "true"),
];

/// The headers that are present if the operator limits the rate of requests by a token.
const RATE_LIMIT_HEADERS: &[&str] = &["RateLimit", "RateLimit-Policy"];

/// Returns the components of the headers that are present in every response that lists them.
fn headers() -> Value {
    let sometimes = ["Age", "Link", "Idempotency-Replayed", "RateLimit", "RateLimit-Policy"];
    let always = |name: &&str| !sometimes.contains(name);
    let names = HEADERS.iter().map(|(name, ..)| *name).filter(always);
    Value::Object(names.map(|name| (name.to_owned(), header(name, true))).collect())
}

/// Returns the description of an optional header.
fn optional_header(name: &str) -> Value {
    header(name, false)
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

fn header(name: &str, required: bool) -> Value {
    let known = HEADERS.iter().find(|(known, ..)| *known == name);
    let (_, about, example) = known.unwrap_or_else(|| panic!("{name} has no line in HEADERS"));
    json!({
        "description": about,
        "required": required,
        "schema": {"type": "string", "examples": [example]},
    })
}

/// Returns the header parameters that several operations share.
fn parameters() -> Value {
    let header = |name: &str, about: &str, schema: Value| json!({"name": name, "in": "header", "description": about, "schema": schema});
    let tag = json!({"type": "string", "examples": ["\"3.lQ0xRcq1uBxWJ5f2\""]});
    json!({
        "IfNoneMatch": header(
            "If-None-Match",
            "The entity tags of the client's copies: if one is current, the response is 304 \
             without a body.",
            tag.clone(),
        ),
        "IfMatch": header(
            "If-Match",
            "The entity tags of the version to change. If the resource has another version, \
             nothing is changed and the response is 412. `*` matches any version.",
            tag,
        ),
        "Prefer": header(
            "Prefer",
            "`return=representation`: the response contains the whole resource (RFC 7240).",
            json!({"type": "string", "examples": ["return=representation"]}),
        ),
        "PreferMaxAge": header(
            "Prefer",
            "`max-age=SECONDS`: the response may be up to this many seconds old (RFC 7240), if the \
             service has a replica. `Age` and `Preference-Applied` then indicate a response that \
             may be stale.",
            json!({"type": "string", "examples": ["max-age=10"]}),
        ),
        "IdempotencyKey": header(
            "Idempotency-Key",
            "A unique key chosen by the client. A repeated request with the same key and body \
             within 24 hours returns the first successful response and changes nothing.",
            json!({
                "type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\t\x20-\x7e]+$",
                "examples": ["order-17"],
            }),
        ),
    })
}
