//! `Idempotency-Key`: a repeated POST gets the stored response, and changes nothing.

use std::time::Duration;

use futures_util::future::join_all;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{ALL, Service, TestResponse, TokenKind};

/// Sends a POST with a key.
async fn post(service: &Service, token: &str, path: &str, key: &str, body: &Value) -> TestResponse {
    let request = service.request(Method::POST, path).bearer_auth(token);
    TestResponse::of(request.header("idempotency-key", key).json(body)).await
}

/// Returns a body for each resource that can be created, except tokens.
fn bodies(service: &Service, name: &str) -> Vec<(&'static str, Value)> {
    let [_, editor, _] = service.roles();
    vec![
        ("/content-pieces", service.piece(name)),
        ("/content-groups", json!({"name": name})),
        ("/tags", json!({"label": name})),
        ("/variants", json!({"key": name, "label": name})),
        ("/roles", json!({"name": name, "permissions": []})),
        (
            "/webhooks",
            json!({"url": "http://10.0.0.1/", "name": name, "event": "memberAdded", "secret": "s"}),
        ),
        (
            "/workspace-memberships",
            json!({"email": format!("{name}@example.org"), "name": name, "roleId": editor}),
        ),
    ]
}

#[on_both_engines]
async fn a_repeated_request_gets_the_stored_response(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.home.token.clone();
    for (path, body) in bodies(&service, "once") {
        let first = post(&service, &token, path, "key", &body).await;
        assert_eq!(first.status, 201, "{path}: {first:?}");
        assert_eq!(first.header("idempotency-replayed"), "");
        let everything = service.workspace_state().await;
        // This holds for any preference of the repeated request.
        for prefer in ["return=minimal", "return=representation"] {
            let request = service
                .request(Method::POST, &format!("{path}/"))
                .bearer_auth(&token)
                .header("idempotency-key", "key")
                .header("prefer", prefer)
                .json(&body);
            let again = TestResponse::of(request).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{path}");
            assert_eq!(again.header("idempotency-replayed"), "true");
            for name in ["location", "etag", "content-type", "preference-applied"] {
                assert_eq!(again.header(name), first.header(name), "{path} {name}");
            }
        }
        assert_eq!(service.workspace_state().await, everything, "{path}");
        // The same key with another path or body is rejected.
        let mut other = body.clone();
        other["x"] = json!(1);
        let reused = post(&service, &token, path, "key", &other).await;
        reused.assert_problem(422, "idempotency_key_reused", &[]);
        service.advance_clock(Duration::from_hours(25));
    }
}

#[on_both_engines]
async fn a_key_belongs_to_one_path(store: TestStore) {
    let service = Service::start(store).await;
    let body = json!({"label": "a", "name": "a"});
    let token = service.home.token.clone();
    assert_eq!(post(&service, &token, "/tags", "k", &body).await.status, 201);
    let reused = post(&service, &token, "/content-groups", "k", &body).await;
    reused.assert_problem(422, "idempotency_key_reused", &[]);
}

#[on_both_engines]
async fn keys_are_separate_for_each_token(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let second = service.token("tags:write", None).await;
    let body = json!({"label": "a"});
    let mut ids = Vec::new();
    for token in [&service.home.token, &second, &other.token] {
        let made = post(&service, token, "/tags", "the same", &body).await;
        assert_eq!((made.status.as_u16(), made.header("idempotency-replayed")), (201, ""));
        ids.push(made.id());
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
    // A revoked token gets no stored response.
    let path = format!("/tokens?id={}", service.token_id(&second).await);
    service.delete(&path).await;
    assert_eq!(post(&service, &second, "/tags", "the same", &body).await.status, 401);
}

#[on_both_engines]
async fn stored_responses_still_need_the_permission(store: TestStore) {
    let service = Service::start(store).await;
    let role = service.create("/roles", &json!({"name": "r", "permissions": ["tags:write"]})).await;
    let ann = service.person("ann", &role).await;
    let body = json!({"label": "a"});
    assert_eq!(post(&service, &ann.token, "/tags", "k", &body).await.status, 201);
    let change = json!({"id": role, "permissions": []});
    assert_eq!(service.put("/roles", &change).await.status, 204);
    let again = post(&service, &ann.token, "/tags", "k", &body).await;
    again.assert_problem(403, "insufficient_permissions", &[]);
}

#[on_both_engines]
async fn stored_responses_are_not_replayed_after_the_tokens_groups_narrow(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.create("/content-groups", &json!({"name": "A"})).await;
    let home = service.home.group.clone();
    let token = service.token("all", Some(&[home.as_str(), group.as_str()])).await;
    let request = || {
        service
            .request(Method::POST, "/content-pieces")
            .bearer_auth(&token)
            .header("idempotency-key", "k")
            .header("prefer", "return=representation")
            .json(&service.piece("shown-then"))
    };
    assert_eq!(TestResponse::of(request()).await.status, 201);
    assert_eq!(TestResponse::of(request()).await.header("idempotency-replayed"), "true");
    let change = json!({"id": service.token_id(&token).await, "contentGroupIds": [group]});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    TestResponse::of(request()).await.assert_problem(409, "already_answered", &[]);
}

#[on_both_engines]
async fn error_responses_are_not_stored(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.home.token.clone();
    let body = json!({"key": "de", "label": "German"});
    let first = service.create("/variants", &body).await;
    let taken = post(&service, &token, "/variants", "k", &body).await;
    taken.assert_problem(409, "key_taken", &[]);
    let wrong = post(&service, &token, "/variants", "k", &json!({"key": "de"})).await;
    wrong.assert_problem(400, "validation", &["label"]);
    assert_eq!(service.delete(&format!("/variants?id={first}")).await.status, 204);
    let made = post(&service, &token, "/variants", "k", &body).await;
    assert_eq!((made.status.as_u16(), made.header("idempotency-replayed")), (201, ""));
}

#[on_both_engines]
async fn a_created_token_is_not_replayed(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.home.token.clone();
    let body = json!({"name": "t", "permissions": []});
    let made = post(&service, &token, "/tokens", "k", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let everything = service.workspace_state().await;
    let again = post(&service, &token, "/tokens", "k", &body).await;
    again.assert_problem(409, "already_answered", &[]);
    assert!(!again.body.to_string().contains("galley_"));
    assert_eq!(service.workspace_state().await, everything);
}

#[on_both_engines]
async fn keys_expire_after_a_day(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.home.token.clone();
    let body = json!({"label": "a"});
    let first = post(&service, &token, "/tags", "k", &body).await.id();
    service.advance_clock(Duration::from_mins(23 * 60 + 59));
    assert_eq!(post(&service, &token, "/tags", "k", &body).await.id(), first);
    service.advance_clock(Duration::from_mins(2));
    let second = post(&service, &token, "/tags", "k", &body).await;
    assert_eq!((second.id() == first, second.header("idempotency-replayed")), (false, ""));
}

#[on_both_engines]
async fn invalid_keys_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.home.token.clone();
    let body = json!({"label": "a"});
    let long = "k".repeat(256);
    for key in ["", long.as_str(), "é"] {
        let answer = post(&service, &token, "/tags", key, &body).await;
        answer.assert_problem(400, "validation", &["Idempotency-Key"]);
    }
    let request = service.request(Method::POST, "/tags").bearer_auth(&token).json(&body);
    let request = request.header("idempotency-key", "a").header("idempotency-key", "b");
    TestResponse::of(request).await.assert_problem(400, "validation", &["Idempotency-Key"]);
    assert_eq!(service.get("/tags/list").await.body, json!([]));
    let key = "k".repeat(255);
    assert_eq!(post(&service, &token, "/tags", &key, &body).await.status, 201);
}

#[on_both_engines]
async fn of_fifty_concurrent_requests_with_one_key_one_creates(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.token_of(service.home.made.user, TokenKind { ..ALL }).await;
    for round in 0..4 {
        let name = format!("n{round}");
        for (path, body) in bodies(&service, &name) {
            let key = format!("{name} {path}");
            let count = async || {
                let list = match path {
                    "/workspace-memberships" => format!("{path}/list-members?perPage=1000"),
                    _ => format!("{path}/list?perPage=1000"),
                };
                service.get(&list).await.body.as_array().unwrap().len()
            };
            let before = (count().await, service.last_sequence().await);
            let posts = (0..50).map(|_| post(&service, &token, path, &key, &body));
            let answers = join_all(posts).await;
            let made: Vec<_> = answers.iter().filter(|one| one.status == 201).collect();
            let first = made.iter().filter(|one| one.header("idempotency-replayed").is_empty());
            assert_eq!(first.count(), 1, "{path}: {answers:?}");
            for answer in &answers {
                assert!([201, 409].contains(&answer.status.as_u16()), "{path}: {answer:?}");
            }
            assert!(made.iter().all(|one| one.id() == made[0].id()), "{path}: {made:?}");
            assert_eq!(count().await, before.0 + 1, "{path}");
            let events = service.last_sequence().await - before.1;
            assert!(events <= 1, "{path}: {events}");
        }
    }
}
