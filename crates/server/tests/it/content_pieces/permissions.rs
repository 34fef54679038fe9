//! Permissions, limited tokens and other workspaces.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use super::NO_PIECE;
use crate::service::{Service, piece_in};

#[on_both_engines]
async fn absent_and_foreign_pieces_get_the_same_404(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let body = piece_in(&other.group, "theirs");
    let theirs =
        service.send_as(&other.token, Method::POST, "/content-pieces", Some(&body)).await.id();
    for id in [NO_PIECE, "cp_x", "tag_00000000000000000000000000", "nonsense", &theirs] {
        let get = service.get(&format!("/content-pieces?id={id}")).await;
        get.assert_problem(404, "not_found", &[]);
        let put = service.put("/content-pieces", &json!({"id": id, "title": "x"})).await;
        put.assert_problem(404, "not_found", &[]);
        let delete = service.delete(&format!("/content-pieces?id={id}")).await;
        delete.assert_problem(404, "not_found", &[]);
        for answer in [get, put, delete] {
            assert_eq!(answer.body["detail"], "the resource does not exist in this workspace");
        }
    }
    let path = format!("/content-pieces?id={theirs}");
    let still = service.send_as(&other.token, Method::GET, &path, None).await;
    assert_eq!(still.body["slug"], "theirs");
    let variant = service.get(&format!("/content-pieces?id={NO_PIECE}&variant=de")).await;
    variant.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn each_method_needs_its_permission(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let reader = service.token("contentPieces:read", None).await;
    let stranger = service.token("tags:write contentGroups:write", None).await;
    let path = format!("/content-pieces?id={id}");
    let body = json!({"id": id, "title": "b"});
    for (method, path, body, reads) in [
        (Method::GET, path.as_str(), None, true),
        (Method::GET, "/content-pieces/list", None, true),
        (Method::POST, "/content-pieces", Some(&body), false),
        (Method::PUT, "/content-pieces", Some(&body), false),
        (Method::DELETE, path.as_str(), None, false),
    ] {
        let answer = service.send_as(&stranger, method.clone(), path, body).await;
        answer.assert_problem(403, "insufficient_permissions", &[]);
        let needed = if reads { "contentPieces:read" } else { "contentPieces:write" };
        assert!(answer.body["detail"].as_str().unwrap().contains(needed));
        let answer = service.send_as(&reader, method, path, body).await;
        assert_eq!(answer.status.as_u16(), if reads { 200 } else { 403 }, "{answer:?}");
    }
    assert_eq!(service.get(&path).await.body["slug"], "a");
}

#[on_both_engines]
async fn a_limited_token_sees_its_groups_and_their_subtrees(store: TestStore) {
    let service = Service::start(store).await;
    let mine = service.create("/content-groups", &json!({"name": "Mine"})).await;
    let under =
        service.create("/content-groups", &json!({"name": "Under", "ancestor": mine})).await;
    let outside = service.create("/content-pieces", &service.piece("outside")).await;
    service.create("/content-pieces", &piece_in(&mine, "mine")).await;
    let inside = service.create("/content-pieces", &piece_in(&under, "under")).await;
    let token = service.token("contentPieces:write", Some(&[&mine])).await;
    let list = service.send_as(&token, Method::GET, "/content-pieces/list", None).await;
    assert_eq!(list.column("slug"), ["mine", "under"]);
    let path = format!("/content-pieces/list?contentGroupId={}", service.home.group);
    let list = service.send_as(&token, Method::GET, &path, None).await;
    assert_eq!(list.body, json!([]));

    let outside_path = format!("/content-pieces?id={outside}");
    for (method, path, body) in [
        (Method::GET, outside_path.as_str(), None),
        (Method::PUT, "/content-pieces", Some(json!({"id": outside, "title": "x"}))),
        (Method::DELETE, outside_path.as_str(), None),
    ] {
        let answer = service.send_as(&token, method, path, body.as_ref()).await;
        answer.assert_problem(404, "not_found", &[]);
    }
    let body = service.piece("new");
    let answer = service.send_as(&token, Method::POST, "/content-pieces", Some(&body)).await;
    answer.assert_problem(400, "unknown_reference", &["contentGroupId"]);
    let body = json!({"id": inside, "contentGroupId": service.home.group});
    let answer = service.send_as(&token, Method::PUT, "/content-pieces", Some(&body)).await;
    answer.assert_problem(400, "unknown_reference", &["contentGroupId"]);
    let body = json!({"id": inside, "title": "Changed"});
    let answer = service.send_as(&token, Method::PUT, "/content-pieces", Some(&body)).await;
    assert_eq!(answer.status, 204);
}

#[on_both_engines]
async fn a_limited_token_cannot_detect_hidden_pieces(store: TestStore) {
    let service = Service::start(store).await;
    let mine = service.create("/content-groups", &json!({"name": "Mine"})).await;
    let hidden = service.create("/content-pieces", &service.piece("hidden")).await;
    let hidden_piece = service.get(&format!("/content-pieces?id={hidden}")).await.body;
    let order = hidden_piece["order"].as_str().unwrap();
    let own = service.create("/content-pieces", &piece_in(&mine, "own")).await;
    let token = service.token("contentPieces:write", Some(&[&mine])).await;
    // A list position is not secret, but a title at that position is.
    for sort in ["title", "-date", "updatedAt", "createdAt"] {
        let mut answers = Vec::new();
        for last in [order, "zzzzz"] {
            let path = format!("/content-pieces/list?sort={sort}&lastOrder={last}");
            answers.push(service.send_as(&token, Method::GET, &path, None).await);
        }
        for answer in &answers {
            answer.assert_problem(400, "validation", &["lastOrder"]);
        }
        assert_eq!(answers[0].body["detail"], answers[1].body["detail"]);
    }
    for reference in [hidden.as_str(), NO_PIECE] {
        let mut body = service.piece("new");
        body["referenceId"] = json!(reference);
        let answer = service.send_as(&token, Method::POST, "/content-pieces", Some(&body)).await;
        answer.assert_problem(400, "unknown_reference", &["contentGroupId", "referenceId"]);
        let body = json!({"id": own, "referenceId": reference});
        let answer = service.send_as(&token, Method::PUT, "/content-pieces", Some(&body)).await;
        answer.assert_problem(400, "unknown_reference", &["referenceId"]);
    }
}
