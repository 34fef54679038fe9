//! `/variants`, and pieces in variants: display, search, and effects of changes.

mod deletion;
mod lists;
mod overrides;

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse, piece_in};

const NO_VARIANT: &str = "var_00000000000000000000000000";

/// Creates a variant with this key.
async fn variant(service: &Service, key: &str) -> String {
    service.create("/variants", &json!({"key": key, "label": key})).await
}

/// Updates a piece; the update must succeed.
async fn change(service: &Service, body: &Value) -> TestResponse {
    let answer = service.put("/content-pieces", body).await;
    assert_eq!(answer.status, 204, "{body}: {answer:?}");
    answer
}

fn of(id: &str, query: &str) -> String {
    format!("/content-pieces?id={id}{query}")
}

/// Returns the version in a piece's entity tag.
async fn version(service: &Service, id: &str) -> i64 {
    let answer = service.get(&of(id, "")).await;
    let tag = answer.header("etag").trim_start_matches('"').to_owned();
    tag.split('.').next().unwrap().parse().unwrap()
}

fn with(mut body: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[on_both_engines]
async fn a_variant_is_created_updated_and_deleted(store: TestStore) {
    let service = Service::start(store).await;
    let new = json!({"key": "de_ch", "label": "Swiss German"});
    let id = service.create("/variants", &new).await;
    assert!(id.starts_with("var_"), "{id}");
    let path = format!("/variants?id={id}");
    let made = service.get(&path).await;
    let shown = json!({"id": id, "key": "de_ch", "label": "Swiss German", "description": null});
    assert_eq!(made.body, shown);
    let change = json!({"id": id, "key": "de", "description": "To be checked"});
    let put = service.put("/variants", &change).await;
    let changed = service.get(&path).await;
    assert_eq!((put.status.as_u16(), put.header("etag")), (204, changed.header("etag")));
    assert_ne!(changed.header("etag"), made.header("etag"));
    let shown = json!({"id": id, "key": "de", "label": "Swiss German",
        "description": "To be checked"});
    assert_eq!(changed.body, shown);
    assert_eq!(service.put("/variants", &shown).await.status, 204);
    let again = service.get(&path).await;
    assert_eq!(again.header("etag"), changed.header("etag"), "put back, it changes nothing");
    service.put("/variants", &json!({"id": id, "description": null})).await;
    assert_eq!(service.get(&path).await.body["description"], Value::Null);
    assert_eq!(service.delete(&path).await.status, 204);
    service.get(&path).await.assert_problem(404, "not_found", &[]);
    service.delete(&path).await.assert_problem(404, "not_found", &[]);
    let events = service.events_after(0).await;
    let types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(types, ["variantChanged"; 4], "a creation, two changes and a deletion");
}

#[on_both_engines]
async fn variants_are_listed_in_order_of_creation(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for key in ["c", "a", "d", "b"] {
        ids.push(variant(&service, key).await);
    }
    assert_eq!(service.get("/variants/list").await.column("id"), ids);
    let page = service.get("/variants/list?perPage=3&page=2").await;
    assert_eq!(page.column("id"), ids[3..]);
    let first = service.get("/variants/list?perPage=3").await;
    let link = first.header("link").to_owned();
    let path = link.strip_prefix('<').and_then(|link| link.split_once('>')).unwrap().0;
    assert_eq!(service.get(path).await.column("id"), ids[3..]);
    assert_eq!(service.get(path).await.header("link"), "");
    service.delete(&format!("/variants?id={}", ids[1])).await;
    let after = service.get(&format!("/variants/list?lastId={}&page=9", ids[1])).await;
    assert_eq!(after.column("id"), ids[2..], "the cursor's own variant may be gone");
}

#[on_both_engines]
async fn variant_keys_are_unique_in_a_workspace(store: TestStore) {
    let service = std::sync::Arc::new(Service::start(store).await);
    let id = variant(&service, "de").await;
    let other = variant(&service, "fr").await;
    let body = json!({"key": "de", "label": "again"});
    let answer = service.post("/variants", &body).await;
    answer.assert_problem(409, "key_taken", &[]);
    let body_in_capitals = json!({"key": "DE", "label": "again"});
    service.post("/variants", &body_in_capitals).await.assert_problem(409, "key_taken", &[]);
    let before = service.get("/variants/list").await.body;
    let answer = service.put("/variants", &json!({"id": other, "key": "de", "label": "x"})).await;
    answer.assert_problem(409, "key_taken", &[]);
    assert_eq!(service.get("/variants/list").await.body, before);
    let same = service.put("/variants", &json!({"id": id, "key": "de", "label": "x"})).await;
    assert_eq!(same.status, 204, "its own key is not taken");
    for key in ["DE", "de"] {
        let same = service.put("/variants", &json!({"id": id, "key": key})).await;
        assert_eq!(same.status, 204, "its case may change");
        assert_eq!(service.get(&format!("/variants?id={id}")).await.body["key"], key);
    }
    let elsewhere = service.other_workspace().await;
    let theirs = service.send_as(&elsewhere.token, Method::POST, "/variants", Some(&body)).await;
    assert_eq!(theirs.status, 201);

    let writers: Vec<_> = (0..8)
        .map(|number| {
            let service = std::sync::Arc::clone(&service);
            let body = json!({"key": "it", "label": format!("of {number}")});
            tokio::spawn(async move { service.post("/variants", &body).await.status.as_u16() })
        })
        .collect();
    let mut statuses = Vec::new();
    for writer in writers {
        statuses.push(writer.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
    service.delete(&format!("/variants?id={id}")).await;
    variant(&service, "de").await;
}

#[on_both_engines]
async fn variants_of_another_workspace_do_not_exist(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let body = json!({"key": "theirs", "label": "theirs"});
    let theirs = service.send_as(&other.token, Method::POST, "/variants", Some(&body)).await.id();
    let piece = service.create("/content-pieces", &service.piece("a")).await;
    let before = service.workspace_state().await;
    for id in [theirs.as_str(), NO_VARIANT, "theirs", "X", "%F0%9F%92%A9"] {
        for path in [
            format!("/variants?id={id}"),
            of(&piece, &format!("&variant={id}")),
            format!("/content-pieces/list?variant={id}"),
            format!("/content-pieces/list?variant={id}&tagId=nonsense"),
        ] {
            service.get(&path).await.assert_problem(404, "not_found", &[]);
        }
        service.delete(&format!("/variants?id={id}")).await.assert_problem(404, "not_found", &[]);
        let put = service.put("/variants", &json!({"id": id, "label": "mine"})).await;
        put.assert_problem(404, "not_found", &[]);
        let put = json!({"id": piece, "variant": id, "title": "x"});
        service.put("/content-pieces", &put).await.assert_problem(404, "not_found", &[]);
    }
    assert_eq!(service.workspace_state().await, before);
    let path = format!("/variants?id={theirs}");
    let still = service.send_as(&other.token, Method::GET, &path, None).await;
    assert_eq!(still.body["label"], "theirs");
}

#[on_both_engines]
async fn variants_need_their_permission_and_pieces_in_them_that_of_pieces(store: TestStore) {
    let service = Service::start(store).await;
    let id = variant(&service, "de").await;
    let piece = service.create("/content-pieces", &service.piece("a")).await;
    let reader = service.token("variants:read", Some(&[&service.home.group])).await;
    let stranger = service.token("contentPieces:write", None).await;
    let path = format!("/variants?id={id}");
    let body = json!({"id": id, "key": "fr", "label": "b"});
    for (method, path, body, reads) in [
        (Method::GET, path.as_str(), None, true),
        (Method::GET, "/variants/list", None, true),
        (Method::POST, "/variants", Some(&body), false),
        (Method::PUT, "/variants", Some(&body), false),
        (Method::DELETE, path.as_str(), None, false),
    ] {
        let answer = service.send_as(&stranger, method.clone(), path, body).await;
        answer.assert_problem(403, "insufficient_permissions", &[]);
        let answer = service.send_as(&reader, method, path, body).await;
        assert_eq!(answer.status.as_u16(), if reads { 200 } else { 403 }, "{answer:?}");
    }
    let change = json!({"id": piece, "variant": "de", "title": "Titel"});
    for (token, status) in [(&reader, 403), (&stranger, 204)] {
        let put = service.send_as(token, Method::PUT, "/content-pieces", Some(&change)).await;
        assert_eq!(put.status.as_u16(), status);
    }
    let path = of(&piece, "&variant=de");
    let seen = service.send_as(&stranger, Method::GET, &path, None).await;
    assert_eq!(seen.body["title"], "Titel");
}

#[on_both_engines]
async fn a_limited_token_sees_no_more_in_a_variant(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let mine = service.create("/content-groups", &json!({"name": "Mine"})).await;
    let own = service.create("/content-pieces", &piece_in(&mine, "own")).await;
    let hidden = service.create("/content-pieces", &service.piece("hidden")).await;
    for id in [&own, &hidden] {
        change(&service, &json!({"id": id, "variant": "de", "slug": "deutsch"})).await;
    }
    let token = service.token("contentPieces:write", Some(&[&mine])).await;
    let path = "/content-pieces/list?variant=de&slug=deutsch";
    let list = service.send_as(&token, Method::GET, path, None).await;
    assert_eq!(list.column("id"), [own]);
    let get = service.send_as(&token, Method::GET, &of(&hidden, "&variant=de"), None).await;
    get.assert_problem(404, "not_found", &[]);
    let body = json!({"id": hidden, "variant": "de", "title": "x"});
    let put = service.send_as(&token, Method::PUT, "/content-pieces", Some(&body)).await;
    put.assert_problem(404, "not_found", &[]);
}
