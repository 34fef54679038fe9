//! `/content-pieces`: every endpoint's success, errors, permissions, and the events it causes.

mod formats;
mod lists;
mod permissions;

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
    let before = service.last_sequence().await;
    let mut body = piece_in(&other.group, "a");
    body["tags"] = json!([tag, foreign_tag, "tag_00000000000000000000000000"]);
    body["members"] = json!([other.made.member.to_string()]);
    body["referenceId"] = json!(NO_PIECE);
    let answer = service.post("/content-pieces", &body).await;
    let paths = ["tags[1]", "tags[2]", "members[0]", "contentGroupId", "referenceId"];
    answer.assert_problem(400, "unknown_reference", &paths);
    assert_eq!(service.last_sequence().await, before);
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
