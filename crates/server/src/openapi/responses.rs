//! The responses of an operation: bodies, headers and problems.

use axum::http::StatusCode;
use galley_application::Reason;
use serde_json::{Map, Value, json};

use super::{examples, shape};
use crate::openapi::headers::{RATE_LIMIT_HEADERS, optional_header, refer_to_headers};
use crate::openapi::links::has_parameter;
use crate::openapi::operation::{JSON, OperationContext};
use crate::openapi::problems::documented_reasons;
use crate::problem::texts;

pub(super) const HTML: &str = "text/html";

/// The fields that examples show only in responses to creations.
const CREATION_ONLY_FIELDS: [&str; 2] = ["token", "warning"];

/// The operations that convert the content of pieces.
const CONVERTING_OPERATIONS: [(&str, &str); 3] =
    [("/content-pieces", "post"), ("/content-pieces", "put"), ("/content-pieces/batch", "post")];

impl OperationContext<'_> {
    /// Returns the responses with a status below 400, and HTML pages of any status.
    pub(super) fn successes(&self, operation: &Value) -> Map<String, Value> {
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
    pub(super) fn problems(&self, operation: &Value) -> Vec<(StatusCode, Vec<Reason>)> {
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
