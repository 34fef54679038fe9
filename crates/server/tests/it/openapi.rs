//! The OpenAPI document: it is complete and correct.

use std::collections::BTreeSet;

use galley_domain::{Permission, PermissionSet};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::response_validation::{DOCUMENT, resolved, validator};
use crate::service::{Service, TestResponse};

struct DescribedOperation {
    path: &'static str,
    method: Method,
    described: &'static Value,
}

impl DescribedOperation {
    /// Returns the path with examples in place of its parameters.
    fn example_path(&self) -> String {
        let mut path = self.path.to_owned();
        for parameter in parameters(self.described).filter(|it| it["in"] == "path") {
            let name = parameter["name"].as_str().unwrap();
            let example = parameter["example"].as_str().expect("an example of the parameter");
            path = path.replace(&format!("{{{name}}}"), example);
        }
        path
    }

    /// Returns the described permissions, of which one suffices, or none if any token does.
    fn permissions(&self) -> Vec<&'static str> {
        let alternatives = self.described["security"].as_array().unwrap();
        alternatives.iter().filter_map(|it| it["accessToken"][0].as_str()).collect()
    }

    fn needs_token(&self) -> bool {
        !self.described["security"][0].is_null()
    }
}

fn parameters(operation: &'static Value) -> impl Iterator<Item = &'static Value> {
    operation["parameters"].as_array().into_iter().flatten().map(resolved)
}

fn operations() -> Vec<DescribedOperation> {
    let mut all = Vec::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, described) in item.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            all.push(DescribedOperation { path, method, described });
        }
    }
    assert!(all.len() >= 15, "there are fewer operations than routes");
    all
}

fn webhooks() -> impl Iterator<Item = (&'static String, &'static Value)> {
    DOCUMENT["webhooks"].as_object().unwrap().iter().map(|(name, item)| (name, &item["post"]))
}

/// Calls `visit` with every object of the document and its place.
fn walk(value: &'static Value, place: &str, visit: &mut impl FnMut(&str, &'static Value)) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{place}/{index}"), visit);
            }
        }
        Value::Object(object) => {
            visit(place, value);
            for (key, value) in object {
                walk(value, &format!("{place}/{key}"), visit);
            }
        }
        _ => {}
    }
}

#[on_both_engines]
async fn each_described_route_exists_with_exactly_its_methods(store: TestStore) {
    let service = Service::start(store).await;
    let by_path = DOCUMENT["paths"].as_object().unwrap();
    for operation in operations() {
        let path = operation.example_path();
        let answer = service.send(operation.method.clone(), &path, None).await;
        assert_ne!(answer.status, 405, "{} {path}", operation.method);
        let nothing = answer.body["detail"] == "no endpoint has this path";
        assert!(!nothing, "{} {path}: {answer:?}", operation.method);
        let answer = service.send(Method::TRACE, &path, None).await;
        answer.assert_problem(405, "method_not_allowed", &[]);
        let allowed: BTreeSet<&str> = answer.header("allow").split(',').collect();
        let described = by_path[operation.path].as_object().unwrap().keys();
        let mut expected: BTreeSet<String> = described.map(|name| name.to_uppercase()).collect();
        if expected.contains("GET") {
            expected.insert("HEAD".to_owned());
        }
        assert_eq!(allowed, expected.iter().map(String::as_str).collect(), "{path}");
    }
}

#[on_both_engines]
async fn each_operation_needs_its_described_permission(store: TestStore) {
    let service = Service::start(store).await;
    for operation in operations() {
        let path = operation.example_path();
        let request = service.request(operation.method.clone(), &path);
        let without = TestResponse::of(request).await;
        if !operation.needs_token() {
            assert_ne!(without.status, 401, "{path}");
            continue;
        }
        without.assert_problem(401, "unauthorized", &[]);
        let permissions = operation.permissions();
        if permissions.is_empty() {
            continue;
        }
        // The settings belong to Admins, and uploads to writers. The others change no resource.
        let is_of_writers = path == "/settings" || path.starts_with("/assets/uploads");
        let reads = (operation.method == Method::GET && !is_of_writers)
            || ["/content-pieces/convert", "/content-pieces/preview", "/events/ticket"]
                .contains(&&*path);
        let access = if reads { ":read" } else { ":write" };
        assert!(permissions.iter().all(|it| it.ends_with(access)), "{path}");
        let about = operation.described["description"].as_str().unwrap_or_default();
        let needs = match &*permissions {
            [permission] => format!("Requires the permission `{permission}`."),
            several => format!("Requires one of the permissions `{}`.", several.join("`, `")),
        };
        assert!(about.ends_with(&needs), "{about}");
        // The token has all other permissions. For reads, the write permission is left out as
        // well, as it includes reading.
        let others = PermissionSet::ALL.iter().map(|other: Permission| other.to_string());
        let others = others.filter(|other| {
            let includes = |it: &&str| reads && *other == it.replace(":read", ":write");
            !permissions.iter().any(|it| other == it || includes(it))
        });
        let token = service.token(&others.collect::<Vec<_>>().join(" "), None).await;
        let refused = service.send_as(&token, operation.method.clone(), &path, None).await;
        refused.assert_problem(403, "insufficient_permissions", &[]);
        for permission in permissions {
            assert!(refused.body["detail"].as_str().unwrap().contains(permission), "{refused:?}");
            let token = service.token(permission, None).await;
            let let_in = service.send_as(&token, operation.method.clone(), &path, None).await;
            assert!(![401, 403].contains(&let_in.status.as_u16()), "{permission}: {let_in:?}");
        }
    }
}

#[on_both_engines]
async fn the_document_is_served_without_a_token(store: TestStore) {
    let service = Service::start(store).await;
    for path in ["/openapi.json", "/openapi.json/"] {
        let answer = TestResponse::of(service.request(Method::GET, path)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.body, *DOCUMENT);
        let known = service.request(Method::GET, path);
        let known = known.header("if-none-match", answer.header("etag"));
        assert_eq!(TestResponse::of(known).await.status, 304);
    }
}

/// `cargo xtask openapi` sets the variable, so that the test writes the file.
#[test]
fn the_committed_file_matches_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.json");
    let generated = serde_json::to_string_pretty(&*DOCUMENT).unwrap() + "\n";
    if std::env::var_os("GALLEY_WRITE_OPENAPI").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(committed == generated, "run `cargo xtask openapi`");
}

#[test]
fn every_route_goes_through_the_table() {
    let source = include_str!("../../src/router.rs");
    for other_way in
        [".route(", "route_service", ".nest", ".merge", "axum::routing", "fallback_service"]
    {
        let found = source.contains(other_way);
        assert!(!found, "{other_way}: such a route would be described nowhere");
    }
}

#[test]
fn every_operation_is_fully_described() {
    let mut ids = BTreeSet::new();
    let tags: BTreeSet<&str> = DOCUMENT["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    for DescribedOperation { path, method, described } in operations() {
        let place = format!("{method} {path}");
        let id = described["operationId"].as_str().unwrap();
        assert!(id != "handle" && ids.insert(id), "{place}: {id} is not its own");
        let summary = described["summary"].as_str().unwrap_or_default();
        assert!(summary.len() > 5 && !summary.ends_with('.'), "{place}: {summary:?}");
        assert!(tags.contains(described["tags"][0].as_str().unwrap()), "{place}");
        let responses = described["responses"].as_object().unwrap();
        let success = responses.keys().any(|status| status.starts_with('2') || status == "303");
        assert!(success, "{place} never succeeds");
        for (status, response) in responses {
            let response = resolved(response);
            let about = response["description"].as_str().unwrap_or_default();
            assert!(!about.is_empty(), "{place} {status}");
            assert!(response["headers"]["X-Request-Id"].is_object(), "{place} {status}");
            let has = |kind: &str| response["content"].get(kind).is_some();
            // Routes of HTML pages respond with HTML.
            let page =
                has("text/html") && (place.ends_with("/invite") || place.contains("/sign-in"));
            let problem = has("application/problem+json");
            let failed = status.as_str() >= "400";
            assert!(if page { !problem || failed } else { problem == failed }, "{place} {status}");
        }
        for parameter in parameters(described) {
            assert!(parameter["description"].is_string(), "{place}: {parameter}");
        }
        let takes_body = described.get("requestBody").is_some();
        let is_write = [Method::POST, Method::PUT, Method::PATCH].contains(&method);
        let is_bodyless = ["/events/ticket", "/sign-out"].contains(&path);
        assert_eq!(takes_body, is_write && !is_bodyless, "{place}");
        assert_eq!(takes_body, responses.contains_key("415"), "{place}");
    }
}

#[test]
fn every_json_body_has_an_example_that_is_valid() {
    let schemas = &DOCUMENT["components"]["schemas"];
    let mut checked = 0;
    let mut check = |place: &str, content: &Value| {
        for (kind, media) in content.as_object().into_iter().flatten() {
            if !kind.ends_with("json") {
                continue;
            }
            let mut examples: Vec<&Value> = media.get("example").into_iter().collect();
            let named = media["examples"].as_object().into_iter().flatten();
            examples.extend(named.map(|(_, example)| &example["value"]));
            assert!(!examples.is_empty(), "{place} {kind}: no example");
            let validator = validator(&media["schema"], schemas);
            for example in examples {
                let errors: Vec<String> =
                    validator.iter_errors(example).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{place}: {errors:?} in {example}");
                checked += 1;
            }
        }
    };
    for DescribedOperation { path, method, described } in operations() {
        let place = format!("{method} {path}");
        check(&place, &described["requestBody"]["content"]);
        for response in described["responses"].as_object().unwrap().values() {
            check(&place, &resolved(response)["content"]);
        }
    }
    for (name, operation) in webhooks() {
        check(name, &operation["requestBody"]["content"]);
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn request_examples_show_every_field() {
    for DescribedOperation { path, method, described } in operations() {
        let media = &described["requestBody"]["content"]["application/json"];
        if let Some(name) = media["schema"]["$ref"].as_str() {
            let schema = DOCUMENT.pointer(&name[1..]).unwrap();
            let named = media["examples"].as_object().into_iter().flatten();
            let mut examples: Vec<_> = named.map(|(_, example)| &example["value"]).collect();
            examples.push(&media["example"]);
            for (field, _) in schema["properties"].as_object().unwrap() {
                // This needs an example of its own, or a type with an example.
                let there = examples.iter().any(|example| example.get(field).is_some());
                let there = there || field == "variant";
                assert!(there, "{method} {path}: {field} is not in the example");
            }
        }
    }
}

#[test]
fn the_document_is_consistent() {
    assert_eq!(DOCUMENT["openapi"], "3.1.0");
    assert_eq!(DOCUMENT["info"]["title"], "Galley");
    assert_eq!(DOCUMENT["info"]["version"], env!("CARGO_PKG_VERSION"));
    let mut references = BTreeSet::new();
    walk(&DOCUMENT, "#", &mut |place, value| {
        if let Some(reference) = value["$ref"].as_str() {
            let found = DOCUMENT.pointer(reference.trim_start_matches('#')).is_some();
            assert!(found, "{place}: {reference} leads nowhere");
            references.insert(reference.to_owned());
        }
    });
    for kind in ["schemas", "responses", "headers", "parameters"] {
        for (name, _) in DOCUMENT["components"][kind].as_object().unwrap() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(references.contains(&reference), "{reference} is used nowhere");
        }
    }
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::meta::is_valid(schema), "{name} is no schema");
        // These keywords are from before OpenAPI 3.1, and utoipa may emit them.
        assert!(schema.get("nullable").is_none() && schema.get("example").is_none(), "{name}");
    }
}

#[test]
fn every_event_is_described_with_its_headers_and_data() {
    let names: Vec<&str> = webhooks().map(|(name, _)| name.as_str()).collect();
    let events = galley_domain::event::EventType::ALL;
    assert_eq!(names, events.iter().map(|event| event.as_str()).collect::<Vec<_>>());
    for (name, operation) in webhooks() {
        let headers: Vec<_> =
            parameters(operation).map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(headers[..3], ["webhook-id", "webhook-timestamp", "webhook-signature"]);
        let body = &operation["requestBody"]["content"]["application/json"];
        let schema = resolved(&body["schema"]);
        assert_eq!(schema["properties"]["type"]["const"], *name);
        for field in ["type", "timestamp", "sequence", "workspaceId", "webhookId", "data"] {
            assert!(body["example"].get(field).is_some(), "{name}: {field}");
        }
        assert!(operation["responses"]["2XX"].is_object());
    }
}

#[test]
fn invalid_responses_fail_validation() {
    let tag = &DOCUMENT["paths"]["/tags"]["get"]["responses"]["200"]["content"]["application/json"];
    let validator = validator(&tag["schema"], &DOCUMENT["components"]["schemas"]);
    let id = "tag_01kah3v9k8d4x7w2m5n6p8q9rs";
    assert!(validator.is_valid(&json!({"id": id, "label": "a", "color": "gray"})));
    for wrong in [
        json!({"id": id, "label": "a"}),
        json!({"id": "tag_1", "label": "a", "color": "gray"}),
        json!({"id": id, "label": null, "color": "gray"}),
        json!({"id": id, "label": "a", "color": "black"}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
