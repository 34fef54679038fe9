//! Fields that a request may not set.

use std::collections::BTreeSet;

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use super::target::{OPEN, RESOURCES, absent, routes, start, target};
use crate::response_validation::{DOCUMENT, resolved};
use crate::service::{TestResponse, TestWorkspace};

/// Returns a value that a client might try in a field that it may not set.
fn tampered_value(name: &str, schema: &Value, other: &TestWorkspace) -> Value {
    let is = |kind: &str| [&schema["type"], &schema["type"][0]].contains(&&json!(kind));
    match name {
        "permissions" => json!(RESOURCES.map(|resource| format!("{resource}:write"))),
        "workspaceId" => json!(other.made.workspace.to_string()),
        "contentGroupId" | "id" | "ancestor" => json!(other.group),
        name if name.ends_with("Id") => json!(other.made.member.to_string()),
        _ if is("boolean") => json!(true),
        _ if is("integer") || is("number") => json!(987_654_321),
        _ if is("array") => json!([other.group]),
        _ if schema["format"] == "date-time" => json!("1999-12-31T23:59:59.999Z"),
        _ => json!("a value wished for"),
    }
}

/// Returns the names of a schema's own fields.
fn names_of(schema: &'static Value) -> BTreeSet<&'static str> {
    let schema = resolved(schema);
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    let fields = schema["properties"].as_object().into_iter().flatten();
    forms.flat_map(names_of).chain(fields.map(|(name, _)| name.as_str())).collect()
}

/// Returns a response without the parts that differ between requests.
fn without_volatile_fields(answer: &TestResponse, name: &str) -> (u16, Value) {
    fn strip(value: &mut Value) {
        for name in ["createdAt", "updatedAt", "publishedAt", "order", "token", "requestId"] {
            value.as_object_mut().map(|fields| fields.remove(name));
        }
        if value["url"].as_str().is_some_and(|url| url.contains("/invite?code=")) {
            *value = Value::from("a link of an invite");
        }
        // The body of the request is the file of the asset.
        if value["url"].as_str().is_some_and(|url| url.contains("/a/")) {
            for name in ["url", "hash", "size"] {
                value.as_object_mut().map(|fields| fields.remove(name));
            }
        }
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(fields) => fields.values_mut().for_each(strip),
            _ => {}
        }
    }
    let text = absent(&answer.body.to_string()).replace(name, "its name");
    let mut body = serde_json::from_str(&text).unwrap();
    strip(&mut body);
    (answer.status.as_u16(), body)
}

#[on_both_engines]
async fn fields_outside_a_requests_schema_are_ignored(store: TestStore) {
    let service = start(store).await;
    let other = service.other_workspace().await;
    let seen_by_other = async || {
        let list = "/content-groups/list?perPage=100&subtree=true";
        service.send_as(&other.token, Method::GET, list, None).await.body
    };
    let before = seen_by_other().await;
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    let fields =
        || schemas.values().filter_map(|schema| schema["properties"].as_object()).flatten();
    let (mut number, mut tried) = (1_000, 0);
    for (method, route) in &routes() {
        if OPEN.iter().any(|(verb, open, ..)| (verb, open) == (&method.as_str(), &route.as_str())) {
            continue;
        }
        let mut answers = Vec::new();
        for wishes in [false, true] {
            number += 1;
            let mut target = target(&service, method, route, number).await;
            let operation = &DOCUMENT["paths"][route][method.to_lowercase()];
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            // The body of an upload is a file without fields.
            let is_upload = schema.is_null();
            let Some(body) = target.body.as_mut().filter(|_| !is_upload) else { continue };
            let (place, own) = match route.as_str() {
                // In a batch, each piece has its own fields.
                "/content-pieces/batch" => {
                    let piece = &resolved(schema)["properties"]["pieces"]["items"];
                    (&mut body["pieces"][0], names_of(piece))
                }
                "/content-pieces/sources" => {
                    let source = &resolved(schema)["properties"]["sources"]["items"];
                    (&mut body["sources"][0], names_of(source))
                }
                _ => (body, names_of(schema)),
            };
            assert!(!own.is_empty(), "{method} {route}");
            for (name, field) in fields().filter(|(name, _)| wishes && !own.contains(name.as_str()))
            {
                place[name.as_str()] = tampered_value(name, resolved(field), &other);
                tried += 1;
            }
            let send = async |body: &Option<Value>| {
                let request = service.request(method.parse().unwrap(), &target.path);
                let request = request.bearer_auth(&service.home.token).json(body);
                TestResponse::of(request.header("prefer", "return=representation")).await
            };
            let mut answer = send(&target.body).await;
            if answer.body["reason"] == "immutable_field" {
                // A field that cannot be changed is rejected by name, and belongs to this
                // resource.
                assert_eq!((method.as_str(), route.as_str()), ("PUT", "/webhooks"), "{answer:?}");
                answer.assert_problem(400, "immutable_field", &["secret"]);
                let mut body = target.body.clone();
                body.as_mut().unwrap().as_object_mut().unwrap().remove("secret");
                answer = send(&body).await;
            }
            assert!(answer.status.is_success(), "{method} {target:?}: {answer:?}");
            if route == "/content-pieces/preview" {
                let expires_at = answer.body.as_object_mut().unwrap().remove("expiresAt");
                assert!(expires_at.is_some(), "{answer:?}");
            }
            answers.push(without_volatile_fields(&answer, &format!("n{number}")));
        }
        if let [without, with] = &answers[..] {
            assert_eq!(without, with, "{method} {route}");
        }
    }
    assert!(tried > 1_000, "{tried}");
    let everything = service.workspace_state().await.to_string();
    let members = other.made.member.to_string();
    for sign in ["a value wished for", "987654321", "1999-12-31", &other.group, &members] {
        assert!(!everything.contains(sign), "{sign} is in {everything}");
    }
    assert_eq!(seen_by_other().await, before);
}
