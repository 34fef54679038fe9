//! The specified interface. Requests with specified parameters and fields only, by an Admin's
//! token, get the recorded statuses and fields. Responses may have further fields, and roles
//! further permissions.
//!
//! `specified_interface.jsonl` has one request with its response on each line. Recorded responses
//! are permanent, as published clients depend on them. Texts for people are not
//! recorded. For a line without `response`, the test fails and prints the complete line.

use galley_testing::{TestStore, on_both_engines};
use regex::Regex;
use serde_json::{Value, json};

use crate::service::Service;
use crate::text_requests::{Placeholders, parse};

const RECORDED: &str = include_str!("specified_interface.jsonl");

/// Replaces ids, times and order keys, which differ between runs.
fn normalized(value: &Value) -> Value {
    let id = Regex::new(r"\b([a-z]+)_[0-9a-z]{26}\b").unwrap();
    let time = Regex::new(r"\b20[0-3]\d-\d\d-\d\dT[0-9:.]+Z").unwrap();
    match value {
        Value::String(text) => {
            json!(time.replace_all(&id.replace_all(text, "${1}_[id]"), "[time]"))
        }
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| match name.as_str() {
                "order" | "requestId" => (name.clone(), json!(format!("[{name}]"))),
                _ => (name.clone(), normalized(value)),
            };
            Value::Object(fields.iter().map(field).collect())
        }
        other => other.clone(),
    }
}

/// Returns true if `actual` equals `recorded`, apart from further fields and permissions.
fn contains(actual: &Value, recorded: &Value) -> bool {
    match (actual, recorded) {
        (Value::Object(actual), Value::Object(recorded)) => {
            recorded.iter().all(|(name, value)| match (name.as_str(), actual.get(name), value) {
                ("permissions", Some(Value::Array(actual)), Value::Array(recorded)) => {
                    recorded.iter().all(|permission| actual.contains(permission))
                }
                (_, actual, value) => actual.is_some_and(|actual| contains(actual, value)),
            })
        }
        (Value::Array(actual), Value::Array(recorded)) => {
            actual.len() == recorded.len()
                && actual.iter().zip(recorded).all(|(actual, value)| contains(actual, value))
        }
        _ => actual == recorded,
    }
}

#[on_both_engines]
async fn specified_requests_get_the_recorded_responses(store: TestStore) {
    let service = Service::start(store).await;
    let mut names = Placeholders::default();
    let [admin, editor, viewer] = service.roles();
    names.add("admin", admin);
    names.add("editor", editor);
    names.add("viewer", viewer);
    names.add("group", service.home.group.clone());
    names.add("me", service.home.made.member.to_string());
    let mut unrecorded = String::new();
    for line in RECORDED.lines() {
        let mut recorded: Value = serde_json::from_str(line).expect(line);
        let request = names.fill(recorded["request"].as_str().expect(line));
        let (method, path, body) = parse(&request);
        let response = service.send(method.clone(), path, body.as_ref()).await;
        if let Some(name) = recorded["as"].as_str() {
            names.add(name.to_owned().leak(), response.id());
        }
        let actual = json!({
            "status": response.status.as_u16(),
            "body": normalized(&response.body),
        });
        if recorded["response"].is_null() {
            recorded["response"] = actual;
            unrecorded += &format!("{recorded}\n");
            continue;
        }
        assert!(
            contains(&actual, &recorded["response"]),
            "{method} {path}\nrecorded {:#}\nactual {actual:#}",
            recorded["response"]
        );
    }
    assert!(unrecorded.is_empty(), "responses to record:\n{unrecorded}");
}
