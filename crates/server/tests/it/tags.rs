//! `/tags`: every endpoint's success, errors, and permissions.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use crate::service::{Service, piece_in};

const NO_TAG: &str = "tag_00000000000000000000000000";

#[on_both_engines]
async fn a_tag_is_created_updated_and_deleted(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/tags", &json!({"label": "News"})).await;
    let path = format!("/tags?id={id}");
    let tag = service.get(&path).await;
    assert_eq!(tag.body, json!({"id": id, "label": "News", "color": "gray"}));
    let change = json!({"id": id, "color": "emerald"});
    assert_eq!(service.put("/tags", &change).await.status, 204);
    let tag = service.get(&path).await.body;
    assert_eq!(tag, json!({"id": id, "label": "News", "color": "emerald"}));
    assert_eq!(service.put("/tags", &tag).await.status, 204, "what a GET gave is taken back");
    assert_eq!(service.delete(&path).await.status, 204);
    service.get(&path).await.assert_problem(404, "not_found", &[]);
    service.delete(&path).await.assert_problem(404, "not_found", &[]);
    let events = service.events_after(0).await;
    let types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(types, ["tagChanged"; 3], "a creation, a change and a deletion");
}

#[on_both_engines]
async fn a_deleted_tag_is_removed_from_every_piece(store: TestStore) {
    let service = Service::start(store).await;
    let mut tags = Vec::new();
    for label in ["a", "b", "c"] {
        tags.push(service.create("/tags", &json!({"label": label})).await);
    }
    let mut ids = Vec::new();
    for kept in [vec![0, 1, 2], vec![1], vec![1, 0], vec![2, 1]] {
        let mut body = service.piece("x");
        body["tags"] = kept.iter().map(|&index: &usize| tags[index].clone()).collect();
        ids.push(service.create("/content-pieces", &body).await);
    }
    assert_eq!(service.delete(&format!("/tags?id={}", tags[1])).await.status, 204);
    for (id, left) in ids.iter().zip([vec!["a", "c"], vec![], vec!["a"], vec!["c"]]) {
        let piece = service.get(&format!("/content-pieces?id={id}")).await;
        let labels: Vec<_> = piece.body["tags"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tag| tag["label"].as_str().unwrap())
            .collect();
        assert_eq!(labels, left);
    }
    let list = service.get(&format!("/content-pieces/list?tagId={}", tags[1])).await;
    assert_eq!(list.body, json!([]));
}

#[on_both_engines]
async fn tags_are_listed_in_order_of_creation(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for label in ["c", "a", "b", "a"] {
        ids.push(service.create("/tags", &json!({"label": label})).await);
    }
    assert_eq!(service.get("/tags/list").await.column("id"), ids);
    let page = service.get("/tags/list?perPage=3&page=2").await;
    assert_eq!(page.column("id"), ids[3..]);
    let after = service.get(&format!("/tags/list?lastId={}&page=9", ids[1])).await;
    assert_eq!(after.column("id"), ids[2..], "with a cursor, page is ignored");
    let first = service.get("/tags/list?perPage=3").await;
    let link = first.header("link").to_owned();
    let path = link.strip_prefix('<').and_then(|link| link.split_once('>')).unwrap().0;
    assert_eq!(service.get(path).await.column("id"), ids[3..]);
    assert_eq!(service.get(path).await.header("link"), "");
    service.delete(&format!("/tags?id={}", ids[1])).await;
    let after = service.get(&format!("/tags/list?lastId={}", ids[1])).await;
    assert_eq!(after.column("id"), ids[2..], "the cursor's own tag may be gone");
    for bad in ["lastId=nonsense", "lastId=cp_00000000000000000000000000", "cursor=e30"] {
        let answer = service.get(&format!("/tags/list?{bad}")).await;
        answer.assert_problem(400, "validation", &[bad.split('=').next().unwrap()]);
    }
}

#[on_both_engines]
async fn invalid_tags_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.post("/tags", &json!({"label": "", "color": "mauve"})).await;
    answer.assert_problem(400, "validation", &["label", "color"]);
    let answer = service.post("/tags", &json!({"color": "red"})).await;
    answer.assert_problem(400, "validation", &["label"]);
    let answer = service.put("/tags", &json!({"label": null, "color": null})).await;
    answer.assert_problem(400, "validation", &["id", "label", "color"]);
    let answer = service.put("/tags", &json!({"id": NO_TAG, "label": "x"})).await;
    answer.assert_problem(404, "not_found", &[]);
    service.get("/tags").await.assert_problem(400, "validation", &["id"]);
    service.get("/tags?id=").await.assert_problem(400, "validation", &["id"]);
    service.delete("/tags").await.assert_problem(400, "validation", &["id"]);
}

#[on_both_engines]
async fn tags_of_another_workspace_do_not_exist(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let body = json!({"label": "theirs"});
    let theirs = service.send_as(&other.token, Method::POST, "/tags", Some(&body)).await.id();
    for id in [theirs.as_str(), NO_TAG, "x"] {
        service.get(&format!("/tags?id={id}")).await.assert_problem(404, "not_found", &[]);
        service.delete(&format!("/tags?id={id}")).await.assert_problem(404, "not_found", &[]);
        let put = service.put("/tags", &json!({"id": id, "label": "mine"})).await;
        put.assert_problem(404, "not_found", &[]);
    }
    assert_eq!(service.get("/tags/list").await.body, json!([]));
    let path = format!("/tags?id={theirs}");
    let still = service.send_as(&other.token, Method::GET, &path, None).await;
    assert_eq!(still.body["label"], "theirs");
}

#[on_both_engines]
async fn tags_need_their_permission_also_within_group_limits(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/tags", &json!({"label": "a"})).await;
    let mut piece = service.piece("a");
    piece["tags"] = json!([id]);
    service.create("/content-pieces", &piece).await;
    let reader = service.token("tags:read", Some(&[&service.home.group])).await;
    let stranger = service.token("contentPieces:write", None).await;
    let path = format!("/tags?id={id}");
    let body = json!({"id": id, "label": "b"});
    for (method, path, body, reads) in [
        (Method::GET, path.as_str(), None, true),
        (Method::GET, "/tags/list", None, true),
        (Method::POST, "/tags", Some(&body), false),
        (Method::PUT, "/tags", Some(&body), false),
        (Method::DELETE, path.as_str(), None, false),
    ] {
        let answer = service.send_as(&stranger, method.clone(), path, body).await;
        answer.assert_problem(403, "insufficient_permissions", &[]);
        let answer = service.send_as(&reader, method, path, body).await;
        assert_eq!(answer.status.as_u16(), if reads { 200 } else { 403 }, "{answer:?}");
    }
}

#[on_both_engines]
async fn a_limited_token_sees_the_tags_of_the_pieces_in_its_groups(store: TestStore) {
    let service = Service::start(store).await;
    let open = service.create("/content-groups", &json!({"name": "open"})).await;
    let below = service.create("/content-groups", &json!({"name": "b", "ancestor": open})).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut tags = Vec::new();
    for label in ["open", "below", "elsewhere", "in a variant", "unused"] {
        tags.push(service.create("/tags", &json!({"label": label})).await);
    }
    let mut pieces = Vec::new();
    for (group, tag) in [(&open, 0), (&below, 1), (&service.home.group, 2)] {
        let mut body = piece_in(group, "a");
        body["tags"] = json!([tags[tag]]);
        pieces.push(service.create("/content-pieces", &body).await);
    }
    let change = json!({"id": pieces[0], "variant": "de", "tags": [tags[3]]});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    let reads = "tags:read contentPieces:read";
    let limited = service.token(reads, Some(&[&open])).await;
    let whole = service.token(reads, None).await;
    let writer = service.token("tags:write", Some(&[&open])).await;
    // The second list is served by the response cache, if nothing has changed.
    let check = async |token: &str, seen: &[usize]| {
        for _ in 0..2 {
            let list = service.send_as(token, Method::GET, "/tags/list", None).await;
            let expected: Vec<_> = seen.iter().map(|&index| tags[index].clone()).collect();
            assert_eq!(list.column("id"), expected);
            for (index, tag) in tags.iter().enumerate() {
                let path = format!("/tags?id={tag}");
                let answer = service.send_as(token, Method::GET, &path, None).await;
                let status = if seen.contains(&index) { 200 } else { 404 };
                assert_eq!(answer.status, status, "{answer:?}");
            }
        }
    };
    check(&limited, &[0, 1, 3]).await;
    check(&whole, &[0, 1, 2, 3, 4]).await;
    check(&writer, &[0, 1, 2, 3, 4]).await;
    let page = service.send_as(&limited, Method::GET, "/tags/list?perPage=1&page=3", None).await;
    assert_eq!(page.column("id"), [tags[3].clone()]);
    let moved = json!({"id": pieces[2], "contentGroupId": below});
    assert_eq!(service.put("/content-pieces", &moved).await.status, 204);
    check(&limited, &[0, 1, 2, 3]).await;
    service.delete(&format!("/content-pieces?id={}", pieces[1])).await;
    check(&limited, &[0, 2, 3]).await;
}
