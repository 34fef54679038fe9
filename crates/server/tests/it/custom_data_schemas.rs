//! Schemas of the custom data of a group's pieces.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse, piece_in};

async fn group(service: &Service, ancestor: Option<&str>, schema: Value) -> String {
    let body = json!({"name": "g", "ancestor": ancestor, "customDataSchema": schema});
    service.create("/content-groups", &body).await
}

/// Returns the schema of the custom data of articles.
fn article() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["seo"],
        "additionalProperties": false,
        "properties": {
            "seo": {"$ref": "#/$defs/seo"},
            "links": {"type": "array", "items": {"type": "string", "pattern": "^https://"}},
        },
        "$defs": {
            "seo": {
                "type": "object",
                "required": ["title"],
                "properties": {"title": {"type": "string", "maxLength": 10}, "a/b": {"type": "null"}},
            },
        },
    })
}

fn with_data(group: &str, slug: &str, data: Value) -> Value {
    let mut body = piece_in(group, slug);
    body["customData"] = data;
    body
}

/// Asserts that a request is rejected with these paths of issues, joined by `/`.
fn assert_violates(answer: &TestResponse, paths: &[&str]) {
    assert_eq!(answer.status, 400, "{answer:?}");
    let issues = answer.body["issues"].as_array().unwrap();
    let text = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
    let path = |issue: &Value| {
        issue["path"].as_array().unwrap().iter().map(text).collect::<Vec<_>>().join("/")
    };
    let found: Vec<_> = issues.iter().map(path).collect();
    assert_eq!(found, paths, "{answer:?}");
    assert!(issues.iter().all(|issue| issue["code"] == "schema_violation"), "{answer:?}");
}

#[on_both_engines]
async fn custom_data_must_match_the_schema_of_its_group(store: TestStore) {
    let service = Service::start(store).await;
    let root = group(&service, None, article()).await;
    let below = group(&service, Some(&root), Value::Null).await;
    let valid = json!({"seo": {"title": "short"}, "links": ["https://a.example"]});
    for (data, paths) in [
        (Value::Null, &["customData/seo"][..]),
        (json!(""), &["customData/seo"]),
        (json!({}), &["customData/seo"]),
        (json!([]), &["customData"]),
        (json!("[1]"), &["customData"]),
        (json!({"seo": {}}), &["customData/seo/title"]),
        (json!({"seo": {"title": "far too long"}}), &["customData/seo/title"]),
        (json!({"seo": {"title": "a"}, "more": 1}), &["customData/more"]),
        (json!({"seo": {"title": "a", "a/b": 1}}), &["customData/seo/a/b"]),
        (
            json!({"seo": {"title": 1}, "links": ["x", "https://b", 2]}),
            &["customData/links/0", "customData/links/2", "customData/seo/title"],
        ),
    ] {
        let body = with_data(&below, "a", data.clone());
        let mut answer = service.post("/content-pieces", &body).await;
        let issues = answer.body["issues"].as_array_mut().unwrap();
        issues.sort_by_key(|issue| issue["path"].to_string());
        assert_violates(&answer, paths);
    }
    let body = with_data(&below, "a", json!({"seo": {"title": "a", "a/b": 1}}));
    let answer = service.post("/content-pieces", &body).await;
    let message = answer.body["issues"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("customData/seo/a~1b "), "{message}");
    let several = json!({"pieces": [with_data(&below, "a", valid.clone()), piece_in(&below, "b")]});
    let answer = service.post("/content-pieces/batch", &several).await;
    assert_violates(&answer, &["pieces/1/customData/seo"]);
    let message = answer.body["detail"].as_str().unwrap();
    assert!(message.starts_with("pieces[1].customData/seo is required"), "{message}");
    let id = service.create("/content-pieces", &with_data(&below, "a", valid)).await;
    let answer = service.put("/content-pieces", &json!({"id": id, "customData": null})).await;
    assert_violates(&answer, &["customData/seo"]);
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let override_with = |data: Value| json!({"id": id, "variant": "de", "customData": data});
    let answer = service.put("/content-pieces", &override_with(json!({"seo": 1}))).await;
    assert_violates(&answer, &["customData/seo"]);
    let accepted = override_with(json!({"seo": {"title": "kurz"}}));
    assert_eq!(service.put("/content-pieces", &accepted).await.status, 204);
}

#[on_both_engines]
async fn the_nearest_schema_applies(store: TestStore) {
    let service = Service::start(store).await;
    let root = group(&service, None, article()).await;
    let below = group(&service, Some(&root), Value::Null).await;
    let own = group(&service, Some(&below), json!({"type": "object"})).await;
    let none = group(&service, None, Value::Null).await;
    let effective =
        async |id: &str| service.get(&format!("/content-groups/schema?id={id}")).await.body;
    for (id, expected) in [
        (&root, json!({"contentGroupId": root, "customDataSchema": article()})),
        (&below, json!({"contentGroupId": root, "customDataSchema": article()})),
        (&own, json!({"contentGroupId": own, "customDataSchema": {"type": "object"}})),
        (&none, json!({"contentGroupId": null, "customDataSchema": null})),
    ] {
        assert_eq!(effective(id).await, expected);
    }
    let shown = service.get(&format!("/content-groups?id={root}&subtree=true")).await.body;
    assert_eq!(shown["customDataSchema"], article());
    assert_eq!(shown["descendants"][0]["customDataSchema"], Value::Null);
    assert_eq!(service.put("/content-groups", &shown).await.status, 204, "a GET is sent back");
    // A piece moves only under a schema that it matches, in every variant.
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &piece_in(&own, "a")).await;
    let moves = json!({"id": id, "contentGroupId": below});
    assert_violates(&service.put("/content-pieces", &moves).await, &["customData/seo"]);
    let both = json!({"id": id, "contentGroupId": below, "customData": {"seo": {"title": "a"}}});
    let german = json!({"id": id, "variant": "de", "customData": {"other": 1}});
    assert_eq!(service.put("/content-pieces", &german).await.status, 204);
    let answer = service.put("/content-pieces", &both).await;
    assert_violates(&answer, &["customData/seo", "customData/other"]);
    let message = answer.body["issues"][0]["message"].as_str().unwrap();
    assert_eq!(message, "customData/seo is required (in the variant de)");
    // A move may replace an override that would not match.
    let own_data = json!({"id": id, "customData": {"seo": {"title": "a"}}});
    assert_eq!(service.put("/content-pieces", &own_data).await.status, 204);
    let mut german = json!({"id": id, "variant": "de", "contentGroupId": below, "customData": {}});
    assert_violates(&service.put("/content-pieces", &german).await, &["customData/seo"]);
    german["customData"] = json!({"seo": {"title": "kurz"}});
    assert_eq!(service.put("/content-pieces", &german).await.status, 204);
    // A limited token sees the schema, and not the group above its own.
    let token = service.token("contentGroups:read", Some(&[&below])).await;
    let path = format!("/content-groups/schema?id={below}");
    let seen = service.send_as(&token, Method::GET, &path, None).await.body;
    assert_eq!(seen, json!({"contentGroupId": null, "customDataSchema": article()}));
    let path = format!("/content-groups/schema?id={root}");
    let hidden = service.send_as(&token, Method::GET, &path, None).await;
    hidden.assert_problem(404, "not_found", &[]);
    // A piece that it moves to another group reveals neither that group nor its schema.
    let token = service.token("contentPieces:read contentPieces:write", Some(&[&none])).await;
    let id = service.create("/content-pieces", &piece_in(&none, "b")).await;
    let mut answers = Vec::new();
    for group in [&root, &format!("cg_{}", "0".repeat(26))] {
        let moves = json!({"id": id, "contentGroupId": group, "customData": {"a": 1}});
        let mut answer =
            service.send_as(&token, Method::PUT, "/content-pieces", Some(&moves)).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        answer.body["requestId"] = Value::Null;
        answers.push(answer.body);
    }
    assert_eq!(answers[0], answers[1]);
}

#[on_both_engines]
async fn pieces_that_violate_a_new_schema_stay_readable_and_are_listed(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let root = group(&service, None, Value::Null).await;
    let below = group(&service, Some(&root), Value::Null).await;
    let wrong = service.create("/content-pieces", &piece_in(&below, "wrong")).await;
    let right = with_data(&root, "right", json!({"seo": {"title": "a"}}));
    let right = service.create("/content-pieces", &right).await;
    let german = json!({"id": right, "variant": "de", "customData": {"seo": {"title": 1}}});
    assert_eq!(service.put("/content-pieces", &german).await.status, 204);
    let path = format!("/content-groups/schema/violations?id={root}");
    assert_eq!(service.get(&path).await.body, json!([]));
    let change = json!({"id": root, "customDataSchema": article()});
    let after = service.last_sequence().await;
    assert_eq!(service.put("/content-groups", &change).await.status, 204);
    let events = service.events_after(after).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].event_type, "contentGroupChanged");
    let listed = service.get(&path).await.body;
    let found = listed.as_array().unwrap().iter();
    let found: Vec<_> = found
        .map(|one| (&one["contentPieceId"], &one["variant"], &one["issues"][0]["path"]))
        .collect();
    let (none, de) = (Value::Null, json!("de"));
    let paths = [json!(["customData", "seo"]), json!(["customData", "seo", "title"])];
    let ids = [json!(wrong), json!(right)];
    assert_eq!(found, [(&ids[0], &none, &paths[0]), (&ids[1], &de, &paths[1])]);
    let first = service.get(&format!("{path}&perPage=1")).await;
    assert_eq!(first.body.as_array().unwrap().len(), 1);
    let next = first.header("link").split(['<', '>']).nth(1).unwrap().to_owned();
    assert_eq!(service.get(&next).await.body[0]["contentPieceId"], right);
    // Other fields can be changed, and what a GET returned can be sent back.
    let rename = json!({"id": wrong, "title": "Renamed"});
    assert_eq!(service.put("/content-pieces", &rename).await.status, 204);
    let mut shown = service.get(&format!("/content-pieces?id={wrong}")).await.body;
    shown["tags"] = json!([]);
    shown["members"] = json!([]);
    assert_eq!(service.put("/content-pieces", &shown).await.status, 204);
    let token = service.token("contentPieces:read", Some(&[&below])).await;
    let hidden = service.send_as(&token, Method::GET, &path, None).await;
    hidden.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn a_schema_that_can_not_be_bounded_is_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let doubling: serde_json::Map<String, Value> = (0..40)
        .map(|number| {
            let next = json!({"$ref": format!("#/$defs/a{}", number + 1)});
            (format!("a{number}"), json!({"allOf": [next, next]}))
        })
        .chain([("a40".to_owned(), json!({"type": "object"}))])
        .collect();
    let patterns: Vec<_> = (0..101).map(|at| json!({"pattern": format!("^{at}")})).collect();
    for (schema, code) in [
        (json!({"type": "strin"}), "invalid_schema"),
        (json!({"properties": []}), "invalid_schema"),
        (json!({"pattern": "("}), "invalid_schema"),
        (json!({"pattern": "(?=a)b"}), "invalid_schema"),
        (json!({"pattern": "(a)\\1"}), "invalid_schema"),
        (json!({"pattern": "\\p{L}{500}{500}"}), "invalid_schema"),
        (json!({"patternProperties": {"(?<!a)b": {}}}), "invalid_schema"),
        (json!({"properties": {"a": {"$id": "b"}}}), "unsupported"),
        (json!({"additionalItems": false}), "unsupported"),
        (json!({"$ref": "#"}), "recursive_schema"),
        (json!({"if": {"$ref": "#"}}), "recursive_schema"),
        (json!({"required": "a"}), "invalid_schema"),
        (json!({"minLength": -1}), "invalid_schema"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}),
            "recursive_schema",
        ),
        (json!({"$ref": "http://127.0.0.1:1/schema.json"}), "unsupported"),
        (json!({"$ref": "file:///etc/passwd"}), "unsupported"),
        (json!({"$ref": "#/$defs/none"}), "unsupported"),
        (json!({"$id": "http://127.0.0.1:1/", "type": "object"}), "unsupported"),
        (json!({"$dynamicRef": "#a"}), "unsupported"),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "unsupported"),
        (json!({"$ref": "#/$defs/a0", "$defs": doubling}), "schema_too_complex"),
        (json!({"allOf": patterns}), "schema_too_complex"),
        (json!({"pattern": "a".repeat(1_001)}), "schema_too_complex"),
        (json!({"description": "x".repeat(70_000)}), "too_long"),
        (json!(true), "invalid_type"),
        (json!("{}"), "invalid_type"),
    ] {
        let body = json!({"name": "g", "customDataSchema": schema});
        let answer = service.post("/content-groups", &body).await;
        assert_eq!(answer.status, 400, "{schema}");
        let issue = &answer.body["issues"][0];
        assert_eq!((&issue["code"], &issue["path"][0]), (&json!(code), &json!("customDataSchema")));
    }
}
