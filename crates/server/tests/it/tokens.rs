//! `/tokens`: creation, permissions and visibility. The token itself is shown once.

use std::time::Duration;

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{ALL, Service, TokenKind, piece_in};

#[on_both_engines]
async fn a_token_is_shown_once_and_works(store: TestStore) {
    let service = Service::start(store).await;
    let body = json!({"name": "Build", "description": "Reads.", "permissions": ["tags:read"]});
    let made = service.post("/tokens", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (id, token) = (made.id(), made.body["token"].as_str().unwrap().to_owned());
    assert_eq!(made.body.as_object().unwrap().len(), 2, "{made:?}");
    assert_eq!(made.header("cache-control"), "no-store");
    assert!(token.starts_with("galley_") && token.len() == 7 + 43 + 6, "{token}");
    let path = format!("/tokens?id={id}");
    let shown = service.get(&path).await;
    let created = shown.body["createdAt"].as_str().unwrap();
    assert_eq!(
        shown.body,
        json!({"id": id, "name": "Build", "description": "Reads.",
        "permissions": ["tags:read"], "contentGroupIds": null, "view": "current", "extension": null,
        "expiresAt": null, "lastUsedAt": null, "createdAt": created})
    );
    let everything = service.workspace_state().await.to_string();
    assert!(!everything.contains(&token) && !shown.body.to_string().contains(&token));
    let list = service.send_as(&token, Method::GET, "/tags/list", None).await;
    assert_eq!(list.status, 200);
    let answer = service.send_as(&token, Method::GET, "/variants/list", None).await;
    answer.assert_problem(403, "insufficient_permissions", &[]);
    assert_eq!(service.delete(&path).await.status, 204);
    let answer = service.send_as(&token, Method::GET, "/tags/list", None).await;
    answer.assert_problem(401, "unauthorized", &[]);
}

#[on_both_engines]
async fn return_representation_includes_the_token(store: TestStore) {
    let service = Service::start(store).await;
    let request = service
        .request(Method::POST, "/tokens")
        .bearer_auth(&service.home.token)
        .header("prefer", "return=representation")
        .json(&json!({"name": "t", "permissions": []}));
    let made = crate::service::TestResponse::of(request).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["name"], "t");
    assert!(made.body["token"].as_str().unwrap().starts_with("galley_"));
}

#[on_both_engines]
async fn the_last_use_of_a_token_is_shown(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.token("tags:read", None).await;
    let path = format!("/tokens?id={}", service.token_id(&token).await);
    assert_eq!(service.get(&path).await.body["lastUsedAt"], Value::Null);
    let mut before = Value::Null;
    for _ in 0..2 {
        let earliest = service.environment.now().to_string();
        assert_eq!(service.send_as(&token, Method::GET, "/tags/list", None).await.status, 200);
        // The time of last use is recorded after the response.
        let used = loop {
            let used = service.get(&path).await.body["lastUsedAt"].clone();
            if used != before {
                break used;
            }
            tokio::task::yield_now().await;
        };
        assert!(used.as_str().unwrap() >= earliest.as_str(), "{used} {earliest}");
        before = used;
        service.advance_clock(Duration::from_secs(61));
    }
}

#[on_both_engines]
async fn a_token_ends_when_it_expires(store: TestStore) {
    let service = Service::start(store).await;
    let soon = service.environment.now().ms() + 60_000;
    let soon = galley_domain::Timestamp::from_ms(soon).to_string();
    let body = json!({"name": "t", "permissions": ["tags:read"], "expiresAt": soon});
    let made = service.post("/tokens", &body).await;
    let token = made.body["token"].as_str().unwrap().to_owned();
    let list =
        async || service.send_as(&token, Method::GET, "/tags/list", None).await.status.as_u16();
    assert_eq!(list().await, 200);
    service.advance_clock(Duration::from_secs(61));
    assert_eq!(list().await, 401);
    let change = json!({"id": made.id(), "expiresAt": null});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    assert_eq!(list().await, 200, "an Admin may let it work on");
}

#[on_both_engines]
async fn a_token_sees_the_groups_that_it_is_limited_to(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.create("/content-groups", &json!({"name": "A"})).await;
    service.create("/content-pieces", &piece_in(&group, "inside")).await;
    service.create("/content-pieces", &service.piece("outside")).await;
    let body = json!({"name": "t", "permissions": ["contentPieces:read", "tokens:write"],
        "contentGroupIds": [group, {"id": group}]});
    let made = service.post("/tokens", &body).await;
    let token = made.body["token"].as_str().unwrap().to_owned();
    let path = format!("/tokens?id={}", made.id());
    assert_eq!(service.get(&path).await.body["contentGroupIds"], json!([group]));
    let slugs = async || {
        service.send_as(&token, Method::GET, "/content-pieces/list", None).await.column("slug")
    };
    assert_eq!(slugs().await, ["inside"]);
    // It can create tokens with the same limits or narrower ones.
    let under = service.create("/content-groups", &json!({"name": "B", "ancestor": group})).await;
    let body = json!({"name": "u", "permissions": [], "contentGroupIds": [under]});
    let made_by_it = service.send_as(&token, Method::POST, "/tokens", Some(&body)).await;
    assert_eq!(made_by_it.status, 201, "{made_by_it:?}");
    let change = json!({"id": made.id(), "contentGroupIds": null});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    assert_eq!(slugs().await, ["inside", "outside"]);
    // When all its groups are deleted, the token sees nothing, instead of everything.
    let change = json!({"id": made.id(), "contentGroupIds": [under]});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    service.delete(&format!("/content-groups?id={under}")).await;
    assert_eq!(slugs().await, [""; 0]);
}

#[on_both_engines]
async fn users_see_their_own_tokens_and_admins_all(store: TestStore) {
    let service = Service::start(store).await;
    let [admin, _, _] = service.roles();
    let writes = json!({"name": "T", "permissions": ["tokens:write", "tags:read"]});
    let role = service.create("/roles", &writes).await;
    let ann = service.person("ann", &role).await;
    let second = service.person("second", &admin).await;
    let seen = async |token: &str| {
        let list = service.send_as(token, Method::GET, "/tokens/list", None).await;
        list.column("id")
    };
    let ids = [
        service.token_id(&service.home.token).await,
        service.token_id(&ann.token).await,
        service.token_id(&second.token).await,
    ];
    assert_eq!(seen(&service.home.token).await, ids);
    assert_eq!(seen(&second.token).await, ids);
    assert_eq!(seen(&ann.token).await, ids[1..2]);
    let path = format!("/tokens?id={}", ids[0]);
    let answer = service.send_as(&ann.token, Method::GET, &path, None).await;
    answer.assert_problem(404, "not_found", &[]);
    // A token with less than an Admin's full rights sees its user's tokens only.
    let extension = service.token_of(second.user, TokenKind { extension: Some("e"), ..ALL }).await;
    assert_eq!(seen(&extension).await, [ids[2].clone(), service.token_id(&extension).await]);
    // An Admin may revoke every token.
    let path = format!("/tokens?id={}", ids[1]);
    assert_eq!(service.delete(&path).await.status, 204);
    assert_eq!(service.send_as(&ann.token, Method::GET, "/tags/list", None).await.status, 401);
}

#[on_both_engines]
async fn a_limited_token_sees_no_tokens_with_hidden_groups(store: TestStore) {
    let service = Service::start(store).await;
    let group = async |name: &str, ancestor: Option<&str>| {
        service.create("/content-groups", &json!({"name": name, "ancestor": ancestor})).await
    };
    let a = group("A", None).await;
    let under = group("B", Some(&a)).await;
    let beside = group("C", None).await;
    let mut ids = Vec::new();
    for groups in [json!([a]), json!([under]), json!([beside]), json!([under, beside]), json!(null)]
    {
        let body = json!({"name": "t", "permissions": [], "contentGroupIds": groups});
        ids.push(service.create("/tokens", &body).await);
    }
    let limited = service.token("all", Some(&[&a])).await;
    let own = service.token_id(&limited).await;
    let first = service.token_id(&service.home.token).await;
    let list = async |query: &str| {
        let path = format!("/tokens/list{query}");
        service.send_as(&limited, Method::GET, &path, None).await.column("id")
    };
    let seen = [first, ids[0].clone(), ids[1].clone(), ids[4].clone(), own];
    assert_eq!(list("").await, seen);
    assert_eq!(list("?perPage=2&page=2").await, seen[2..4]);
    assert_eq!(list(&format!("?lastId={}&perPage=2", seen[1])).await, seen[2..4]);
    for id in &ids[2..4] {
        let path = format!("/tokens?id={id}");
        let hidden = service.send_as(&limited, Method::GET, &path, None).await;
        hidden.assert_problem(404, "not_found", &[]);
    }
}

#[on_both_engines]
async fn a_token_can_revoke_itself(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.token("tokens:write", None).await;
    let path = format!("/tokens?id={}", service.token_id(&token).await);
    let answer = service.send_as(&token, Method::DELETE, &path, None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(service.send_as(&token, Method::GET, "/tokens/list", None).await.status, 401);
}

#[on_both_engines]
async fn errors_of_invalid_tokens_are_reported(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.post("/tokens", &json!({})).await;
    answer.assert_problem(400, "validation", &["name", "permissions"]);
    let body = json!({"name": "", "permissions": ["all"], "contentGroupIds": [],
        "extension": "a\nb", "expiresAt": "tomorrow"});
    let answer = service.post("/tokens", &body).await;
    answer.assert_problem(
        400,
        "validation",
        &["name", "permissions[0]", "contentGroupIds", "expiresAt", "extension"],
    );
    let group = "cg_00000000000000000000000000";
    let body = json!({"name": "a", "permissions": [], "contentGroupIds": [service.home.group, group, "x"]});
    let answer = service.post("/tokens", &body).await;
    answer.assert_problem(400, "unknown_reference", &["contentGroupIds[1]", "contentGroupIds[2]"]);
}
