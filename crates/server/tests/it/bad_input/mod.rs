//! Invalid requests of every kind. Each gets a 4xx response that names the error, and changes
//! nothing.

mod content_groups_tags_variants;
mod content_pieces;
mod malformed_bodies;
mod members_roles_tokens;
mod table;
mod webhooks;

use galley_testing::{TestStore, on_both_engines};
use serde_json::json;

use self::table::{InvalidBody, InvalidRequest, Table};
use crate::response_validation::{DOCUMENT, resolved};
use crate::service::{Service, TestResponse};
use crate::text_requests::Placeholders;

fn table(ids: &Placeholders) -> Vec<InvalidRequest> {
    let mut table = Table::new(ids);
    malformed_bodies::add(&mut table);
    content_pieces::add(&mut table);
    content_groups_tags_variants::add(&mut table);
    members_roles_tokens::add(&mut table);
    webhooks::add(&mut table);
    table.requests
}

async fn send(service: &Service, bad: &InvalidRequest) -> TestResponse {
    let request = service.request(bad.method.clone(), &bad.path).bearer_auth(&service.home.token);
    // Requests to resumable uploads need it.
    let request = request.header("tus-resumable", "1.0.0");
    let json = "application/json";
    let request = match &bad.body {
        InvalidBody::None => request,
        InvalidBody::Json(text) => request.header("content-type", json).body(text.clone()),
        InvalidBody::Bytes(bytes) => request.header("content-type", json).body(bytes.clone()),
        InvalidBody::Typed(kind, text) => request.header("content-type", *kind).body(*text),
    };
    TestResponse::of(request).await
}

/// Creates a resource of each kind. The variant's key is `de`, and the role is Editor.
async fn existing_ids(service: &Service) -> Placeholders {
    let mut ids = Placeholders::default();
    let hook = json!({"url": "https://hooks.invalid/", "name": "w", "event": "memberAdded"});
    for (name, path, body) in [
        ("tag", "/tags", json!({"label": "a"})),
        ("variant", "/variants", json!({"key": "de", "label": "German"})),
        ("piece", "/content-pieces", service.piece("kept")),
        ("token", "/tokens", json!({"name": "t", "permissions": []})),
        ("asset", "/assets?filename=a.txt", json!({"a": 1})),
        ("webhook", "/webhooks", hook),
    ] {
        ids.add(name, service.create(path, &body).await);
    }
    let [_, role, _] = service.roles();
    ids.add("role", role);
    ids.add("group", &service.home.group);
    let member = service.home.made.member.to_string();
    ids.add("MEMBER", member.to_uppercase());
    ids.add("member", member);
    ids
}

/// Asserts that the table has a row for every route with parameters or a body.
fn assert_covers_routes(table: &[InvalidRequest]) {
    assert!(table.len() >= 200, "{}", table.len());
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let mut parameters = operation["parameters"].as_array().into_iter().flatten();
            let takes = operation.get("requestBody").is_some()
                || parameters.any(|parameter| resolved(parameter)["in"] != "header");
            let open = operation["security"] == json!([]);
            let is_tried = table.iter().any(|bad| {
                bad.method.as_str().to_lowercase() == *method
                    && bad.path.split('?').next() == Some(path)
            });
            assert!(!takes || open || is_tried, "{method} {path} is not tried");
        }
    }
}

/// The number of rejected requests after which the workspace's state is compared.
const STATE_INTERVAL: usize = 10;

#[on_both_engines]
async fn every_invalid_request_is_rejected_and_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let table = table(&existing_ids(&service).await);
    assert_covers_routes(&table);
    let before = service.workspace_state().await;
    for (index, bad) in table.iter().enumerate() {
        let answer = send(&service, bad).await;
        let shown = match &bad.body {
            InvalidBody::Json(text) => text.chars().take(120).collect(),
            _ => String::new(),
        };
        eprintln!("{index}: {} {} {shown}", bad.method, bad.path);
        let issues: Vec<&str> = bad.issues.iter().map(String::as_str).collect();
        answer.assert_problem(bad.status, &bad.reason, &issues);
        if bad.reason == "malformed_body" && bad.status == 400 {
            let detail = answer.body["detail"].as_str().unwrap();
            let says_where = detail.contains("line") && detail.contains("column");
            assert!(says_where || detail.contains("must be a JSON object"), "{detail}");
        }
        // The state takes longer to read than a rejection, so it is compared after several.
        if index % STATE_INTERVAL == 0 || index + 1 == table.len() {
            assert_eq!(service.workspace_state().await, before, "a request up to {index}");
        }
    }
}
