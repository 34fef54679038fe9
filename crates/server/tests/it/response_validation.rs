//! Validation of every response in these tests against the OpenAPI document: status, headers, media
//! type and body. Successful requests are validated, too.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use reqwest::header::HeaderMap;
use reqwest::{Method, Request, StatusCode};
use serde_json::{Value, json};

/// The OpenAPI document.
pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(galley_server::router::generate_openapi);

/// The schemas of responses, without undescribed fields. Clients must accept additional fields, but
/// the document must describe all of them.
static STRICT: LazyLock<Value> = LazyLock::new(|| {
    let mut components = DOCUMENT["components"]["schemas"].clone();
    forbid_more(&mut components);
    components
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// A request, as far as the checks need it.
pub(crate) struct RequestSummary {
    method: Method,
    path: String,
    body: Option<Value>,
    /// True for dry runs and selected fields, which only `docs/reference/api-content.md` describes.
    is_undescribed: bool,
}

impl RequestSummary {
    pub(crate) fn of(request: &Request) -> Self {
        let bytes = request.body().and_then(|body| body.as_bytes());
        let (method, path) = (request.method().clone(), request.url().path());
        // The document has one operation for all addresses of the console's page.
        let is_view = path.starts_with("/console/") && !path.starts_with("/console/assets/");
        let path = if is_view && method == Method::GET { "/console" } else { path };
        Self {
            method,
            path: path.to_owned(),
            is_undescribed: request
                .url()
                .query_pairs()
                .any(|(name, value)| name == "dryRun" || (name == "fields" && !value.is_empty())),
            body: bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()),
        }
    }
}

/// Panics if the response differs from the document. Unknown paths and unknown methods are not
/// described.
pub(crate) fn check(asked: &RequestSummary, status: StatusCode, headers: &HeaderMap, body: &[u8]) {
    check_safety(asked, status, headers);
    let reads = asked.method == Method::HEAD;
    let Some((path, item)) = find(&asked.path) else {
        assert_eq!(status, 404, "{} {} is not described", asked.method, asked.path);
        return;
    };
    let method = if reads { "get".to_owned() } else { asked.method.as_str().to_lowercase() };
    let Some(operation) = item.get(&method) else {
        // 200 is the response to a CORS preflight.
        let expected = status == 405 || (asked.method == Method::OPTIONS && status == 200);
        assert!(expected, "{} {} is not described: {status}", asked.method, asked.path);
        return;
    };
    if asked.is_undescribed {
        return;
    }
    let place = format!("{} {path} {}", asked.method, status.as_u16());
    let response = resolved(&operation["responses"][status.as_str()]);
    assert!(response.is_object(), "{place}: the status is not described: {}", shown(body));
    check_headers(&place, response, headers);
    if !reads {
        check_body(&place, response, headers, body);
    }
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    if status == 400 {
        let form = &operation["requestBody"]["content"]["multipart/form-data"]["schema"];
        let fields = if schema.is_null() { form } else { schema };
        check_issues(&place, operation, resolved(fields), body);
    }
    if let (true, Some(request), true) = (status.is_success(), &asked.body, schema.is_object()) {
        let key = format!("{method} {path} request");
        validate(&key, schema, &DOCUMENT["components"]["schemas"], request, || {
            format!("{place}: the request was taken, but is not as described")
        });
    }
}

/// Checks the headers that every response has.
fn check_safety(asked: &RequestSummary, status: StatusCode, headers: &HeaderMap) {
    let place = || format!("{} {} {status}: {headers:?}", asked.method, asked.path);
    assert!(
        headers.get("x-content-type-options").is_some_and(|value| value == "nosniff"),
        "{}",
        place()
    );
    let cached = headers.get("cache-control").and_then(|value| value.to_str().ok());
    // Shared caches may store only public resources.
    let is_public = ["/docs", "/problems", "/openapi.json", "/console/assets"]
        .iter()
        .any(|path| asked.path.starts_with(path));
    let is_kept_apart =
        cached.is_some_and(|value| value == "no-store" || value.starts_with("private"));
    assert!(is_kept_apart || (is_public && (status.is_success() || status == 304)), "{}", place());
    let may_set_cookies = ["/sign-in", "/sign-out", "/profile/sessions", "/invite"]
        .iter()
        .any(|path| asked.path.starts_with(path));
    let unwanted = ["server", "x-powered-by", "set-cookie"];
    for name in unwanted.into_iter().filter(|name| *name != "set-cookie" || !may_set_cookies) {
        assert!(!headers.contains_key(name), "{}", place());
    }
}

fn check_headers(place: &str, response: &'static Value, headers: &HeaderMap) {
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let header = resolved(header);
        let there = headers.contains_key(name.as_str());
        assert!(there || header["required"] != true, "{place}: the header {name} is missing");
    }
    for name in ["location", "link", "preference-applied", "retry-after", "www-authenticate"] {
        let described = response["headers"].as_object().into_iter().flatten();
        let mut described = described.map(|(known, _)| known.to_lowercase());
        let ok = !headers.contains_key(name) || described.any(|known| known == name);
        assert!(ok, "{place}: the header {name} is not described");
    }
}

fn check_body(place: &str, response: &Value, headers: &HeaderMap, body: &[u8]) {
    let Some(content) = response["content"].as_object() else {
        assert!(body.is_empty(), "{place}: no body is described: {}", shown(body));
        return;
    };
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default();
    let media = content.get(essence);
    let media = media.unwrap_or_else(|| panic!("{place}: {kind:?} is not described"));
    if !essence.ends_with("json") {
        return;
    }
    let value: Value = serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{place}: {error} in {}", shown(body)));
    // Selects the schema by `Preference-Applied`, as a creation has two forms of response.
    let preferred = headers.contains_key("preference-applied");
    let forms = &media["schema"]["anyOf"];
    let (schema, form) = match forms.as_array().map(Vec::as_slice) {
        Some([_, whole]) if preferred => (whole, "whole"),
        Some([minimal, _]) => (minimal, "minimal"),
        _ => (&media["schema"], ""),
    };
    validate(&format!("{place} {form}"), schema, &STRICT, &value, || {
        format!("{place}: the body is not as described")
    });
    if essence == "application/problem+json" {
        let reason = value["reason"].as_str().unwrap_or_default();
        let known = media["examples"].get(reason).is_some();
        assert!(known, "{place}: the reason {reason} is not described");
    }
}

/// Checks that each issue refers to a described parameter or field.
fn check_issues(place: &str, operation: &'static Value, schema: &Value, body: &[u8]) {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    // A field that cannot be changed is no field of the update, and an unknown parameter none of
    // the operation.
    let issues = problem["issues"].as_array().into_iter().flatten();
    let undescribed = ["immutable_field", "unknown_parameter"].map(Value::from);
    for issue in issues.filter(|issue| !undescribed.contains(&issue["code"])) {
        let name = issue["path"][0].as_str().unwrap_or_default();
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let described = parameters.any(|parameter| resolved(parameter)["name"] == name)
            || schema["properties"].get(name).is_some();
        assert!(described, "{place}: {name:?} is neither a described parameter nor a field");
    }
}

/// Returns the path's template and description.
fn find(path: &str) -> Option<(&'static str, &'static Value)> {
    let path = match path.trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    let fits = |template: &str| {
        let (mut known, mut given) = (template.split('/'), path.split('/'));
        loop {
            match (known.next(), given.next()) {
                (None, None) => return true,
                (Some(known), Some(given)) if known == given || known.starts_with('{') => {}
                _ => return false,
            }
        }
    };
    let paths = DOCUMENT["paths"].as_object().expect("there are paths");
    paths.iter().find(|(template, _)| fits(template)).map(|(path, item)| (path.as_str(), item))
}

/// Returns the target of a reference, or the value itself.
pub(crate) fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.trim_start_matches('#');
            DOCUMENT.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
        }
        None => value,
    }
}

/// Panics if `value` does not match `schema`.
pub(crate) fn validate(
    key: &str,
    schema: &Value,
    schemas: &Value,
    value: &Value,
    what: impl Fn() -> String,
) {
    let known = VALIDATORS.lock().unwrap().get(key).cloned();
    let validator = known.unwrap_or_else(|| {
        let made = Arc::new(validator(schema, schemas));
        VALIDATORS.lock().unwrap().insert(key.to_owned(), Arc::clone(&made));
        made
    });
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("at {:?}: {error}", error.instance_path().as_str()))
        .collect();
    assert!(errors.is_empty(), "{}: {}\n{value}", what(), errors.join("; "));
}

/// Returns a validator of `schema`, whose references point to `schemas`.
pub(crate) fn validator(schema: &Value, schemas: &Value) -> Validator {
    let mut root = schema.clone();
    forbid_more_if(schemas == &*STRICT, &mut root);
    let root = json!({"allOf": [root], "components": {"schemas": schemas}});
    jsonschema::draft202012::options().build(&root).expect("the schema is one")
}

fn forbid_more_if(strict: bool, schema: &mut Value) {
    if strict {
        forbid_more(schema);
    }
}

/// Forbids undescribed fields in every object within `schema`.
fn forbid_more(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(forbid_more),
        Value::Object(object) => {
            object.values_mut().for_each(forbid_more);
            if object.contains_key("properties") && object.get("type") == Some(&json!("object")) {
                object.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        _ => {}
    }
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(500).collect()
}
