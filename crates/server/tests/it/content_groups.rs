//! `/content-groups`: every endpoint's success, errors, permissions, and the events it causes.

use galley_domain::ContentPieceId;
use galley_domain::content_piece::ContentPiece;
use galley_domain::order_key::OrderKey;
use galley_storage::{WriteTx, content_pieces};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, piece_in};

const NO_GROUP: &str = "cg_00000000000000000000000000";

/// Creates a group under `ancestor`.
async fn group(service: &Service, name: &str, ancestor: Option<&str>) -> String {
    service.create("/content-groups", &json!({"name": name, "ancestor": ancestor})).await
}

/// Creates `count` copies of the last piece, after it.
async fn copy(service: &Service, id: &str, count: u32) {
    let (workspace, id): (_, ContentPieceId) = (service.home.made.workspace, id.parse().unwrap());
    let environment = service.environment.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let found = content_pieces::find_for_update(tx, workspace, id).await?;
        let (piece, _) = found.expect("it is there");
        for order in OrderKey::spread_part(Some(&piece.order), None, 1..=count, count) {
            let id = ContentPieceId::new(environment.new_id());
            let copy = ContentPiece { id, order, ..piece.clone() };
            content_pieces::insert(tx, workspace, &copy, "{\"type\":\"doc\"}").await?;
        }
        Ok::<_, galley_storage::Error>(())
    };
    service.database.write("copy", write).await.unwrap();
}

async fn get(service: &Service, id: &str) -> Value {
    service.get(&format!("/content-groups?id={id}")).await.body
}

#[on_both_engines]
async fn groups_show_their_ancestors_and_descendants(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let b = group(&service, "B", Some(&a)).await;
    let c = group(&service, "C", Some(&b)).await;
    let d = group(&service, "D", Some(&a)).await;
    assert_eq!(
        get(&service, &a).await,
        json!({"id": a, "name": "A", "uniqueSlugs": false, "customDataSchema": null, "previewUrl": null, "ancestors": [], "descendants": [b, d]})
    );
    assert_eq!(
        get(&service, &c).await,
        json!({"id": c, "name": "C", "uniqueSlugs": false, "customDataSchema": null, "previewUrl": null, "ancestors": [a, b], "descendants": []})
    );
    let whole = service.get(&format!("/content-groups?id={a}&subtree=true")).await.body;
    assert_eq!(
        whole,
        json!({"id": a, "name": "A", "uniqueSlugs": false, "customDataSchema": null, "previewUrl": null, "ancestors": [], "descendants": [
        {"id": b, "name": "B", "uniqueSlugs": false, "customDataSchema": null, "previewUrl": null, "ancestors": [a], "descendants": [
            {"id": c, "name": "C", "uniqueSlugs": false, "customDataSchema": null, "previewUrl": null, "ancestors": [a, b], "descendants": []}]},
        {"id": d, "name": "D", "uniqueSlugs": false, "customDataSchema": null, "previewUrl": null, "ancestors": [a], "descendants": []}]})
    );
    let top = service.get("/content-groups/list").await;
    assert_eq!(top.column("id"), [service.home.group.clone(), a.clone()]);
    let under = service.get(&format!("/content-groups/list?ancestor={a}")).await;
    assert_eq!(under.column("id"), [b.clone(), d.clone()]);
    assert_eq!(under.body[0]["ancestors"], json!([a]));
    assert_eq!(under.body[0]["descendants"], json!([c]));
    let nested = service.get(&format!("/content-groups/list?ancestor={a}&subtree=true")).await;
    assert_eq!(nested.body, whole["descendants"]);
    for nothing in [NO_GROUP, "nonsense"] {
        let path = format!("/content-groups/list?ancestor={nothing}");
        assert_eq!(service.get(&path).await.body, json!([]));
    }
}

#[on_both_engines]
async fn group_lists_are_paged_by_cursor_and_number(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = vec![service.home.group.clone()];
    for name in ["x", "b", "a", "x"] {
        ids.push(group(&service, name, None).await);
    }
    let page = service.get("/content-groups/list?perPage=2&page=2").await;
    assert_eq!(page.column("id"), ids[2..4]);
    assert!(page.header("link").contains("rel=\"next\""));
    let after = service.get(&format!("/content-groups/list?lastId={}", ids[2])).await;
    assert_eq!(after.column("id"), ids[3..]);
    let answer = service.get("/content-groups/list?lastId=x&perPage=0&subtree=x").await;
    answer.assert_problem(400, "validation", &["lastId", "perPage", "subtree"]);
}

#[on_both_engines]
async fn renaming_a_group_is_one_event(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let sequence = service.last_sequence().await;
    let change = json!({"id": a, "name": "B"});
    assert_eq!(service.put("/content-groups", &change).await.status, 204);
    assert_eq!(get(&service, &a).await["name"], "B");
    let whole = get(&service, &a).await;
    assert_eq!(service.put("/content-groups", &whole).await.status, 204);
    assert_eq!(get(&service, &a).await, whole, "what a GET gave is taken back");
    let events = service.events_after(sequence).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].event_type, "contentGroupChanged");
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), whole);
}

#[on_both_engines]
async fn a_group_moves_with_its_subtree(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let b = group(&service, "B", Some(&a)).await;
    let c = group(&service, "C", Some(&b)).await;
    let target = group(&service, "T", None).await;
    service.create("/content-pieces", &piece_in(&c, "deep")).await;
    let sequence = service.last_sequence().await;
    let change = json!({"id": b, "ancestor": target});
    assert_eq!(service.put("/content-groups", &change).await.status, 204);
    assert_eq!(get(&service, &c).await["ancestors"], json!([target, b]));
    assert_eq!(get(&service, &a).await["descendants"], json!([]));
    let list = |group: &str| format!("/content-pieces/list?contentGroupId={group}&subtree=true");
    assert_eq!(service.get(&list(&target)).await.column("slug"), ["deep"]);
    assert_eq!(service.get(&list(&a)).await.body, json!([]));
    let events = service.events_after(sequence).await;
    assert_eq!(events.len(), 1, "nothing for the groups and pieces in it: {events:?}");
    assert_eq!(events[0].event_type, "contentGroupMoved");
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), get(&service, &b).await);

    let change = json!({"id": b, "ancestor": null});
    assert_eq!(service.put("/content-groups", &change).await.status, 204);
    assert_eq!(get(&service, &c).await["ancestors"], json!([b]));
}

#[on_both_engines]
async fn a_group_cannot_be_moved_under_itself(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let b = group(&service, "B", Some(&a)).await;
    for ancestor in [&a, &b] {
        let answer = service.put("/content-groups", &json!({"id": a, "ancestor": ancestor})).await;
        answer.assert_problem(400, "circle", &["ancestor"]);
    }
    assert_eq!(get(&service, &b).await["ancestors"], json!([a]));
}

#[on_both_engines]
async fn groups_are_at_most_thirty_two_levels_deep(store: TestStore) {
    let service = Service::start(store).await;
    let mut last = group(&service, "1", None).await;
    let top = last.clone();
    for level in 2..=32 {
        last = group(&service, &level.to_string(), Some(&last)).await;
    }
    let answer = service.post("/content-groups", &json!({"name": "33", "ancestor": last})).await;
    answer.assert_problem(400, "validation", &["ancestor"]);
    let other = group(&service, "other", None).await;
    let answer = service.put("/content-groups", &json!({"id": top, "ancestor": other})).await;
    answer.assert_problem(400, "validation", &["ancestor"]);
    let whole = service.get(&format!("/content-groups?id={top}&subtree=1")).await;
    assert_eq!(whole.status, 200);
}

#[on_both_engines]
async fn a_group_with_contents_cannot_be_deleted(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let b = group(&service, "B", Some(&a)).await;
    let piece = service.create("/content-pieces", &piece_in(&b, "x")).await;
    for id in [&a, &b] {
        let answer = service.delete(&format!("/content-groups?id={id}")).await;
        answer.assert_problem(409, "not_empty", &[]);
    }
    service.delete(&format!("/content-pieces?id={piece}")).await;
    for id in [&b, &a] {
        let answer = service.delete(&format!("/content-groups?id={id}")).await;
        assert_eq!(answer.status, 204);
        let answer = service.get(&format!("/content-groups?id={id}")).await;
        answer.assert_problem(404, "not_found", &[]);
    }
}

#[on_both_engines]
async fn recursive_deletion_removes_contents_before_their_group(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let b = group(&service, "B", Some(&a)).await;
    let kept = service.create("/content-pieces", &service.piece("kept")).await;
    let in_a = service.create("/content-pieces", &piece_in(&a, "in-a")).await;
    let in_b = service.create("/content-pieces", &piece_in(&b, "in-b")).await;
    let sequence = service.last_sequence().await;
    let answer = service.delete(&format!("/content-groups?id={a}&recursive=true")).await;
    assert_eq!(answer.status, 204);
    let events = service.events_after(sequence).await;
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            let data: Value = serde_json::from_str(&event.data).unwrap();
            (event.event_type.clone(), data["id"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("contentPieceRemoved".to_owned(), in_b),
            ("contentGroupRemoved".to_owned(), b),
            ("contentPieceRemoved".to_owned(), in_a),
            ("contentGroupRemoved".to_owned(), a)
        ]
    );
    let list = service.get("/content-pieces/list").await;
    assert_eq!(list.column("id"), [kept]);
}

#[on_both_engines]
async fn recursive_deletion_of_more_than_10_000_pieces_is_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let b = group(&service, "B", Some(&a)).await;
    let last = service.create("/content-pieces", &piece_in(&b, "one")).await;
    copy(&service, &last, 10_000).await;
    let answer = service.delete(&format!("/content-groups?id={a}&recursive=true")).await;
    answer.assert_problem(409, "too_large", &[]);
    assert_eq!(get(&service, &a).await["descendants"], json!([b]));
    // With one piece less, the deletion succeeds.
    assert_eq!(service.delete(&format!("/content-pieces?id={last}")).await.status, 204);
    let sequence = service.last_sequence().await;
    let answer = service.delete(&format!("/content-groups?id={a}&recursive=true")).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(service.last_sequence().await, sequence + 10_000 + 2);
    assert_eq!(service.get("/content-pieces/list").await.body, json!([]));
}

#[on_both_engines]
async fn invalid_groups_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let answer = service.post("/content-groups", &json!({"name": 3, "ancestor": 4})).await;
    answer.assert_problem(400, "validation", &["name", "ancestor"]);
    for ancestor in [NO_GROUP, "x", &other.group] {
        let body = json!({"name": "A", "ancestor": ancestor});
        let answer = service.post("/content-groups", &body).await;
        answer.assert_problem(400, "unknown_reference", &["ancestor"]);
        let body = json!({"id": service.home.group, "ancestor": ancestor});
        let answer = service.put("/content-groups", &body).await;
        answer.assert_problem(400, "unknown_reference", &["ancestor"]);
    }
    let answer = service.put("/content-groups", &json!({"name": null})).await;
    answer.assert_problem(400, "validation", &["id", "name"]);
    service.get("/content-groups").await.assert_problem(400, "validation", &["id"]);
    let answer = service.delete("/content-groups?recursive=perhaps").await;
    answer.assert_problem(400, "validation", &["id", "recursive"]);
    for id in [NO_GROUP, "x", &other.group] {
        let path = format!("/content-groups?id={id}");
        service.get(&path).await.assert_problem(404, "not_found", &[]);
        service.delete(&path).await.assert_problem(404, "not_found", &[]);
        let answer = service.put("/content-groups", &json!({"id": id, "name": "x"})).await;
        answer.assert_problem(404, "not_found", &[]);
    }
    let path = format!("/content-groups?id={}", other.group);
    let still = service.send_as(&other.token, Method::GET, &path, None).await;
    assert_eq!(still.body["name"], "Posts");
}

#[on_both_engines]
async fn groups_need_their_permission(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.home.group.clone();
    let reader = service.token("contentGroups:read", None).await;
    let stranger = service.token("contentPieces:write", None).await;
    let path = format!("/content-groups?id={id}");
    let body = json!({"id": id, "name": "b"});
    for (method, path, body, reads) in [
        (Method::GET, path.as_str(), None, true),
        (Method::GET, "/content-groups/list", None, true),
        (Method::POST, "/content-groups", Some(&body), false),
        (Method::PUT, "/content-groups", Some(&body), false),
        (Method::DELETE, path.as_str(), None, false),
    ] {
        let answer = service.send_as(&stranger, method.clone(), path, body).await;
        answer.assert_problem(403, "insufficient_permissions", &[]);
        let answer = service.send_as(&reader, method, path, body).await;
        assert_eq!(answer.status.as_u16(), if reads { 200 } else { 403 }, "{answer:?}");
    }
}

#[on_both_engines]
async fn a_limited_token_sees_its_groups_as_top_level(store: TestStore) {
    let service = Service::start(store).await;
    let a = group(&service, "A", None).await;
    let b = group(&service, "B", Some(&a)).await;
    let c = group(&service, "C", Some(&b)).await;
    let d = group(&service, "D", Some(&c)).await;
    let token = service.token("contentGroups:write", Some(&[&b, &d])).await;
    let send = async |method, path: &str, body: Option<Value>| {
        service.send_as(&token, method, path, body.as_ref()).await
    };
    let top = send(Method::GET, "/content-groups/list", None).await;
    assert_eq!(top.column("id"), [b.clone()], "what lies under another of its groups is no top");
    assert_eq!(top.body[0]["ancestors"], json!([]));
    let inner = send(Method::GET, &format!("/content-groups?id={c}"), None).await;
    assert_eq!(inner.body["ancestors"], json!([b]), "what is above its view doesn't show");
    let above = send(Method::GET, &format!("/content-groups?id={a}"), None).await;
    above.assert_problem(404, "not_found", &[]);
    let list = send(Method::GET, &format!("/content-groups/list?ancestor={a}"), None).await;
    assert_eq!(list.body, json!([]));
    let answer = send(Method::POST, "/content-groups", Some(json!({"name": "x"}))).await;
    answer.assert_problem(403, "outside_group_limit", &[]);
    let body = json!({"name": "x", "ancestor": a});
    let answer = send(Method::POST, "/content-groups", Some(body)).await;
    answer.assert_problem(400, "unknown_reference", &["ancestor"]);
    let body = json!({"id": c, "ancestor": null});
    let answer = send(Method::PUT, "/content-groups", Some(body)).await;
    answer.assert_problem(403, "outside_group_limit", &[]);
    let answer = send(Method::DELETE, &format!("/content-groups?id={a}&recursive=1"), None).await;
    answer.assert_problem(404, "not_found", &[]);
    // A group outside of its limits is unknown to the token, even if it is the real parent.
    for ancestor in [json!(a), json!(service.home.group)] {
        let answer =
            send(Method::PUT, "/content-groups", Some(json!({"id": b, "ancestor": ancestor})));
        answer.await.assert_problem(400, "unknown_reference", &["ancestor"]);
    }
    let own = send(Method::GET, &format!("/content-groups?id={b}"), None).await.body;
    let answer = send(Method::PUT, "/content-groups", Some(own)).await;
    assert_eq!(answer.status, 204, "what a GET gave is taken back");
    let body = json!({"name": "x", "ancestor": c});
    assert_eq!(send(Method::POST, "/content-groups", Some(body)).await.status, 201);
}
