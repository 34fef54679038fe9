//! `/content-pieces`: every endpoint's success, errors, permissions, and the events it causes.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, piece_in};

/// A valid id of no resource.
const NO_PIECE: &str = "cp_00000000000000000000000000";

/// Creates a piece with every field, and returns its id and body.
pub(crate) async fn full_piece(service: &Service) -> (String, Value) {
    let tag = service.create("/tags", &json!({"label": "News", "color": "blue"})).await;
    let mut body = service.piece("full");
    body["tags"] = json!([tag]);
    body["members"] = json!([service.home.made.member.to_string()]);
    body["date"] = json!("2026-11-20T10:30+01:00");
    body["description"] = json!("<p>What <b>it</b> is</p>");
    body["coverUrl"] = json!("https://example.org/a.png");
    body["coverAlt"] = json!("A cover");
    body["coverWidth"] = json!("640px");
    body["canonicalLink"] = json!("/full");
    body["filename"] = json!("full.md");
    body["customData"] = json!("{\"a\": 1.0}");
    body["content"] = json!("<h2>Hi</h2><p>Hello <b>world</b></p>");
    (service.create("/content-pieces", &body).await, body)
}

#[on_both_engines]
async fn a_created_piece_is_returned_with_every_field(store: TestStore) {
    let service = Service::start(store).await;
    let (id, sent) = full_piece(&service).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await;
    assert_eq!(piece.status, 200);
    let got = &piece.body;
    for name in [
        "title",
        "description",
        "coverUrl",
        "coverAlt",
        "coverWidth",
        "canonicalLink",
        "filename",
        "customData",
        "slug",
        "contentGroupId",
    ] {
        assert_eq!(got[name], sent[name], "{name}");
    }
    assert_eq!(got["id"], id);
    assert_eq!(got["date"], "2026-11-20T09:30:00.000Z");
    assert_eq!(got["tags"][0]["label"], "News");
    assert_eq!(got["tags"][0]["color"], "blue");
    let profile = &got["members"][0]["profile"];
    assert_eq!(got["members"][0]["id"], service.home.made.member.to_string());
    assert_eq!(profile["id"], service.home.made.user.to_string());
    assert_eq!(profile["email"], "home@example.org");
    assert_eq!(profile["avatar"], Value::Null);
    assert!(got["order"].as_str().is_some_and(|order| !order.is_empty()));
    assert_eq!(got["createdAt"], got["updatedAt"]);
    assert!(got.get("content").is_none(), "content stands only when asked for");
}

#[on_both_engines]
async fn a_creation_returns_the_location(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.post("/content-pieces", &service.piece("a")).await;
    assert_eq!(answer.status, 201);
    let location = answer.header("location").to_owned();
    assert_eq!(location, format!("/content-pieces?id={}", answer.id()));
    assert_eq!(service.get(&location).await.body["slug"], "a");
}

#[on_both_engines]
async fn content_is_available_as_tree_html_and_markdown(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let get = async |query: &str| {
        let path = format!("/content-pieces/?id={id}&{query}");
        service.get(&path).await.body["content"].clone()
    };
    let tree = get("content=true").await;
    assert_eq!(tree["type"], "doc");
    assert_eq!(
        tree["content"][0],
        json!({"type": "heading", "attrs": {"level": 2},
        "content": [{"type": "text", "text": "Hi"}]})
    );
    assert_eq!(get("content=1&contentFormat=json").await, tree);
    let html = "<h2>Hi</h2><p>Hello <strong>world</strong></p>";
    assert_eq!(get("content=TRUE&contentFormat=html").await, html);
    let markdown = get("content=true&contentFormat=markdown").await;
    assert_eq!(markdown.as_str().unwrap().trim(), "## Hi\n\nHello **world**");
    assert_eq!(get("contentFormat=html").await, Value::Null);
}

#[on_both_engines]
async fn content_that_was_never_set_is_an_empty_paragraph(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let piece = service.get(&format!("/content-pieces?id={id}&content=true")).await;
    let empty = json!({"type": "doc", "content": [{"type": "paragraph"}]});
    assert_eq!(piece.body["content"], empty);
}

#[on_both_engines]
async fn a_description_is_sanitized_and_available_as_html_or_text(store: TestStore) {
    let service = Service::start(store).await;
    let mut body = service.piece("a");
    body["description"] = json!("<p onclick=\"x()\">One <b>two</b></p><script>x()</script>");
    let id = service.create("/content-pieces", &body).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await;
    assert_eq!(piece.body["description"], "<p>One <b>two</b></p>");
    let piece = service.get(&format!("/content-pieces?id={id}&description=text")).await;
    assert_eq!(piece.body["description"], "One two");
}

#[on_both_engines]
async fn all_missing_fields_are_reported_together(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.post("/content-pieces", &json!({})).await;
    let required = ["title", "slug", "tags", "members", "contentGroupId"];
    answer.assert_problem(400, "validation", &required);
    assert_eq!(answer.body["code"], "BAD_REQUEST");
}

#[on_both_engines]
async fn unknown_references_are_reported(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let foreign_tag = service
        .send_as(&other.token, Method::POST, "/tags", Some(&json!({"label": "b"})))
        .await
        .id();
    let mut body = piece_in(&other.group, "a");
    body["tags"] = json!([tag, foreign_tag, "tag_00000000000000000000000000"]);
    body["members"] = json!([other.made.member.to_string()]);
    body["referenceId"] = json!(NO_PIECE);
    let answer = service.post("/content-pieces", &body).await;
    let paths = ["tags[1]", "tags[2]", "members[0]", "contentGroupId", "referenceId"];
    answer.assert_problem(400, "unknown_reference", &paths);
    assert_eq!(service.events_after(0).await.len(), 0);
}

#[on_both_engines]
async fn invalid_values_and_unknown_references_are_reported_together(store: TestStore) {
    let service = Service::start(store).await;
    let tag = service.create("/tags", &json!({"label": "a"})).await;
    let body = json!({"title": "", "slug": "s", "tags": [tag, 3, NO_PIECE,
        "tag_00000000000000000000000000"], "members": ["wm_00000000000000000000000000", "x"],
        "contentGroupId": "cg_00000000000000000000000000", "referenceId": NO_PIECE});
    let answer = service.post("/content-pieces", &body).await;
    let paths = [
        "title",
        "tags[1]",
        "tags[2]",
        "tags[3]",
        "members[0]",
        "members[1]",
        "contentGroupId",
        "referenceId",
    ];
    answer.assert_problem(400, "validation", &paths);
    let body = json!({"title": 3, "tags": ["tag_00000000000000000000000000"]});
    let answer = service.put("/content-pieces", &body).await;
    answer.assert_problem(400, "validation", &["id", "title", "tags[0]"]);
}

#[on_both_engines]
async fn repeated_references_are_dropped_and_objects_are_read_as_their_ids(store: TestStore) {
    let service = Service::start(store).await;
    let a = service.create("/tags", &json!({"label": "a"})).await;
    let b = service.create("/tags", &json!({"label": "b"})).await;
    let mut body = service.piece("x");
    body["tags"] = json!([b, {"id": a, "label": "ignored"}, b]);
    let id = service.create("/content-pieces", &body).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await;
    let ids: Vec<_> = piece.body["tags"].as_array().unwrap().iter().map(|tag| &tag["id"]).collect();
    assert_eq!(ids, [&json!(b), &json!(a)]);
}

#[on_both_engines]
async fn custom_data_is_returned_byte_for_byte(store: TestStore) {
    let service = Service::start(store).await;
    let mut body = service.piece("a");
    body["customData"] = json!(" {\"b\" : [1.50,\n 12345678901234567890123] } ");
    let id = service.create("/content-pieces", &body).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await;
    assert_eq!(piece.body["customData"], body["customData"]);
    let text = format!(
        "{{\"id\":\"{id}\",\"customData\": {{ \"n\" : 1.50 , \"big\": 12345678901234567890123 }}}}"
    );
    let request = service
        .request(Method::PUT, "/content-pieces")
        .bearer_auth(&service.home.token)
        .header("content-type", "application/json")
        .body(text);
    assert_eq!(crate::service::TestResponse::of(request).await.status, 204);
    let piece = service.get(&format!("/content-pieces?id={id}")).await;
    assert_eq!(piece.body["customData"], "{\"n\":1.50,\"big\":12345678901234567890123}");
}

#[on_both_engines]
async fn an_update_changes_only_its_fields_and_null_clears(store: TestStore) {
    let service = Service::start(store).await;
    let (id, sent) = full_piece(&service).await;
    let before = service.get(&format!("/content-pieces?id={id}&content=true")).await.body;
    let change = json!({"id": id, "title": "New", "coverUrl": null, "tags": []});
    let answer = service.put("/content-pieces", &change).await;
    assert_eq!((answer.status.as_u16(), &answer.body), (204, &Value::Null));
    let after = service.get(&format!("/content-pieces?id={id}&content=true")).await.body;
    assert_eq!(after["title"], "New");
    assert_eq!(after["coverUrl"], Value::Null);
    assert_eq!(after["tags"], json!([]));
    for name in ["slug", "description", "customData", "date", "order", "content", "members"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    assert_eq!(after["slug"], sent["slug"]);
    let html = json!({"id": id, "content": "<p>Other</p>"});
    assert_eq!(service.put("/content-pieces", &html).await.status, 204);
    let path = format!("/content-pieces?id={id}&content=true&contentFormat=html");
    assert_eq!(service.get(&path).await.body["content"], "<p>Other</p>");
}

#[on_both_engines]
async fn a_put_of_a_get_response_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let path = format!("/content-pieces?id={id}&content=true&contentFormat=html");
    let before = service.get(&path).await.body;
    let sequence = service.last_sequence().await;
    assert_eq!(service.put("/content-pieces", &before).await.status, 204);
    assert_eq!(service.get(&path).await.body, before);
    assert_eq!(service.last_sequence().await, sequence, "nothing was fired");
}

#[on_both_engines]
async fn null_for_a_required_field_is_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let change = json!({"id": id, "title": null, "slug": null, "tags": null, "members": null,
        "contentGroupId": null, "date": 5});
    let answer = service.put("/content-pieces", &change).await;
    let paths = ["title", "slug", "tags", "members", "contentGroupId", "date"];
    answer.assert_problem(400, "validation", &paths);
}

#[on_both_engines]
async fn an_update_without_id_is_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.put("/content-pieces", &json!({"title": 3})).await;
    answer.assert_problem(400, "validation", &["id", "title"]);
}

#[on_both_engines]
async fn a_deleted_piece_gets_404(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let path = format!("/content-pieces?id={id}");
    assert_eq!(service.delete(&path).await.status, 204);
    service.delete(&path).await.assert_problem(404, "not_found", &[]);
    service.get(&path).await.assert_problem(404, "not_found", &[]);
    let list = service.get("/content-pieces/list").await;
    assert_eq!(list.body, json!([]));
}

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

#[on_both_engines]
async fn a_description_never_leaves_a_tag_open(store: TestStore) {
    let service = Service::start(store).await;
    for (sent, kept) in [
        ("hello <img src=x onerror=alert(1) ", "hello "),
        ("a</div></main>b", "ab"),
        ("</div></article><p>b", "<p>b</p>"),
        ("<a href=/x>b", "<a href=\"/x\" rel=\"noopener noreferrer\">b</a>"),
        ("<details><summary>b", "<details><summary>b</summary></details>"),
        ("trailing a <", "trailing a &lt;"),
        ("it's 5 < 6 & 7 > 6", "it's 5 &lt; 6 &amp; 7 &gt; 6"),
    ] {
        let mut body = service.piece("a");
        body["description"] = json!(sent);
        let id = service.create("/content-pieces", &body).await;
        let piece = service.get(&format!("/content-pieces?id={id}")).await;
        assert_eq!(piece.body["description"], kept);
    }
    let mut body = service.piece("a");
    body["description"] = json!("<div>".repeat(13_000));
    service.post("/content-pieces", &body).await.assert_problem(
        400,
        "validation",
        &["description"],
    );
}

#[on_both_engines]
async fn lists_filter_by_group_subtree_slug_and_tag(store: TestStore) {
    let service = Service::start(store).await;
    let top = service.create("/content-groups", &json!({"name": "Top"})).await;
    let under = service.create("/content-groups", &json!({"name": "Under", "ancestor": top})).await;
    let tag = service.create("/tags", &json!({"label": "t"})).await;
    for (group, slug, tags) in [
        (&service.home.group, "a", json!([])),
        (&top, "b", json!([tag])),
        (&under, "c", json!([tag])),
        (&under, "a", json!([tag])),
    ] {
        let mut body = piece_in(group, slug);
        body["tags"] = tags;
        service.create("/content-pieces", &body).await;
    }
    let home = &service.home.group;
    for (query, slugs) in [
        (String::new(), vec!["a", "b", "c", "a"]),
        (format!("contentGroupId={top}"), vec!["b"]),
        (format!("contentGroupId={top}&subtree=true"), vec!["b", "c", "a"]),
        (format!("contentGroupId={home},{under}"), vec!["a", "c", "a"]),
        (format!("contentGroupId={home}&contentGroupId={top}"), vec!["a", "b"]),
        ("slug=a".to_owned(), vec!["a", "a"]),
        (format!("slug=a&contentGroupId={under}"), vec!["a"]),
        (format!("tagId={tag}"), vec!["b", "c", "a"]),
        (format!("tagId={tag}&contentGroupId={under}&slug=c"), vec!["c"]),
        (format!("tagId={tag}&perPage=2"), vec!["b", "c"]),
        (format!("tagId={tag}&perPage=2&page=2"), vec!["a"]),
        ("tagId=tag_00000000000000000000000000".to_owned(), vec![]),
        ("tagId=nonsense".to_owned(), vec![]),
        ("contentGroupId=cg_00000000000000000000000000".to_owned(), vec![]),
        ("contentGroupId=nonsense".to_owned(), vec![]),
        ("contentGroupId=%20,,%20".to_owned(), vec![]),
        (format!("contentGroupId=nonsense,{top}"), vec!["b"]),
        ("slug=none".to_owned(), vec![]),
        ("page=7".to_owned(), vec![]),
    ] {
        let list = service.get(&format!("/content-pieces/list?{query}")).await;
        assert_eq!(list.status, 200, "{query}: {list:?}");
        assert_eq!(list.column("slug"), slugs, "{query}");
    }
}

#[on_both_engines]
async fn lists_sort_by_every_key_both_ways(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for (slug, title, date) in [
        ("a", "Zebra", json!("2020-01-01")),
        ("b", "apple", json!(null)),
        ("c", "Apple", json!("2010-01-01")),
        ("d", "Zebra", json!("2020-01-01")),
    ] {
        let mut body = service.piece(slug);
        body["title"] = json!(title);
        body["date"] = date;
        ids.push(service.create("/content-pieces", &body).await);
    }
    // The pieces updated last come last.
    for id in [&ids[1], &ids[0]] {
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        service.put("/content-pieces", &json!({"id": id, "filename": "touched"})).await;
    }
    for (sort, slugs) in [
        ("order", ["a", "b", "c", "d"]),
        ("createdAt", ["a", "b", "c", "d"]),
        ("updatedAt", ["c", "d", "b", "a"]),
        ("date", ["b", "c", "a", "d"]),
        ("title", ["c", "a", "d", "b"]),
    ] {
        let mut expected: Vec<String> = slugs.iter().map(|slug| (*slug).to_owned()).collect();
        let list = service.get(&format!("/content-pieces/list?sort={sort}")).await;
        assert_eq!(list.column("slug"), expected, "{sort}");
        expected.reverse();
        let list = service.get(&format!("/content-pieces/list?sort=-{sort}")).await;
        assert_eq!(list.column("slug"), expected, "-{sort}");
        assert_eq!(walk_by_link(&service, &format!("sort=-{sort}&perPage=1")).await, expected);
        assert_eq!(walk_by_last_order(&service, &format!("sort=-{sort}")).await, expected);
    }
}

#[on_both_engines]
async fn a_list_includes_content_on_request(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let one = service.get(&format!("/content-pieces?id={id}&content=true&description=text")).await;
    let list = service.get("/content-pieces/list?content=true&description=text").await;
    assert_eq!(list.body, json!([one.body]));
    let html = service.get("/content-pieces/list?content=true&contentFormat=html").await;
    assert_eq!(html.body[0]["content"], "<h2>Hi</h2><p>Hello <strong>world</strong></p>");
    let tags_of_list = &list.body[0]["tags"];
    assert_eq!(tags_of_list[0]["label"], "News");
}

#[on_both_engines]
async fn list_parameters_out_of_bounds_are_reported(store: TestStore) {
    let service = Service::start(store).await;
    let bad = "page=0&perPage=1001&content=maybe&sort=size&contentFormat=xml&description=pdf\
        &lastOrder=!&subtree=2";
    let answer = service.get(&format!("/content-pieces/list?{bad}")).await;
    let paths = [
        "page",
        "perPage",
        "content",
        "sort",
        "contentFormat",
        "description",
        "lastOrder",
        "subtree",
    ];
    answer.assert_problem(400, "validation", &paths);
    let answer = service.get("/content-pieces/list?perPage=101&content=true").await;
    answer.assert_problem(400, "validation", &["perPage"]);
    let answer = service.get("/content-pieces/list?cursor=zzz").await;
    answer.assert_problem(400, "validation", &["cursor"]);
}

#[on_both_engines]
async fn every_change_is_one_event_with_the_resource(store: TestStore) {
    let service = Service::start(store).await;
    let (id, _) = full_piece(&service).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await.body;
    let events = service.events_after(0).await;
    assert_eq!(events.len(), 1, "a tag fires nothing");
    assert_eq!((events[0].sequence, events[0].event_type.as_str()), (1, "contentPieceAdded"));
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), piece);

    service.put("/content-pieces", &json!({"id": id, "title": "New"})).await;
    let piece = service.get(&format!("/content-pieces?id={id}")).await.body;
    let events = service.events_after(1).await;
    assert_eq!((events[0].sequence, events[0].event_type.as_str()), (2, "contentPieceUpdated"));
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), piece);

    service.delete(&format!("/content-pieces?id={id}")).await;
    let events = service.events_after(2).await;
    assert_eq!((events[0].sequence, events[0].event_type.as_str()), (3, "contentPieceRemoved"));
    assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), piece);
}

#[on_both_engines]
async fn a_rejected_request_fires_no_event(store: TestStore) {
    let service = Service::start(store).await;
    service.post("/content-pieces", &json!({"title": "x"})).await;
    service.put("/content-pieces", &json!({"id": NO_PIECE, "title": "x"})).await;
    service.delete(&format!("/content-pieces?id={NO_PIECE}")).await;
    assert_eq!(service.events_after(0).await, []);
}

#[on_both_engines]
async fn each_change_is_immediately_visible_to_another_token(store: TestStore) {
    let service = Service::start(store).await;
    let second = service.token("contentPieces:write", None).await;
    for round in 0..20 {
        let slug = format!("round-{round}");
        let id = service.create("/content-pieces", &service.piece(&slug)).await;
        let path = format!("/content-pieces?id={id}");
        let seen = service.send_as(&second, Method::GET, &path, None).await;
        assert_eq!(seen.body["slug"], slug);
    }
}

/// Returns the slugs of a list, paged by the `Link` header.
pub(crate) async fn walk_by_link(service: &Service, query: &str) -> Vec<String> {
    let mut slugs = Vec::new();
    let mut next = Some(format!("/content-pieces/list?{query}"));
    while let Some(path) = next {
        let page = service.get(&path).await;
        slugs.extend(page.column("slug"));
        let link = page.header("link");
        next = link.split_once(">; rel=\"next\"").map(|(path, _)| path[1..].to_owned());
    }
    slugs
}

/// Returns the slugs of a list, paged by `lastOrder`.
pub(crate) async fn walk_by_last_order(service: &Service, query: &str) -> Vec<String> {
    let mut slugs = Vec::new();
    let mut last = String::new();
    loop {
        let path = format!("/content-pieces/list?perPage=1&{query}&lastOrder={last}");
        let page = service.get(&path).await;
        let Some(order) = page.column("order").pop() else { return slugs };
        slugs.extend(page.column("slug"));
        last = order;
    }
}
