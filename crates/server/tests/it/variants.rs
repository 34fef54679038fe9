//! `/variants`, and pieces in variants: display, search, and effects of changes.

use std::time::Duration;

use galley_domain::WorkspaceMemberId;
use galley_storage::{Error, WriteTx, content_pieces};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::content_pieces::{full_piece, walk_by_last_order, walk_by_link};
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
    assert_eq!(service.events_after(0).await, [], "variants fire nothing");
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
    let before = service.get("/variants/list").await.body;
    let answer = service.put("/variants", &json!({"id": other, "key": "de", "label": "x"})).await;
    answer.assert_problem(409, "key_taken", &[]);
    assert_eq!(service.get("/variants/list").await.body, before);
    let same = service.put("/variants", &json!({"id": id, "key": "de", "label": "x"})).await;
    assert_eq!(same.status, 204, "its own key is not taken");
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

#[on_both_engines]
async fn each_override_replaces_the_pieces_value_until_null(store: TestStore) {
    let service = Service::start(store).await;
    let german = variant(&service, "de").await;
    variant(&service, "fr").await;
    let (id, _) = full_piece(&service).await;
    let own = service.get(&of(&id, "")).await.body;
    let tag = service.create("/tags", &json!({"label": "Neues"})).await;
    for (name, sent, shown) in [
        ("title", json!("Titel"), json!("Titel")),
        ("slug", json!("deutsch"), json!("deutsch")),
        ("description", json!("<p>Was</p>"), json!("<p>Was</p>")),
        ("description", json!(""), json!("")),
        ("date", json!("2027-01-01"), json!("2027-01-01T00:00:00.000Z")),
        ("coverUrl", json!("/de.png"), json!("/de.png")),
        ("coverUrl", json!(""), json!("")),
        ("coverAlt", json!("Bild"), json!("Bild")),
        ("coverWidth", json!("1px"), json!("1px")),
        ("canonicalLink", json!("/de"), json!("/de")),
        ("filename", json!("de.md"), json!("de.md")),
        ("customData", json!("{\"a\": 2}"), json!("{\"a\": 2}")),
        ("customData", json!({"a": [2]}), json!("{\"a\":[2]}")),
        ("tags", json!([tag]), json!([{"id": tag, "label": "Neues", "color": "gray"}])),
        ("tags", json!([]), json!([])),
        ("members", json!([]), json!([])),
    ] {
        change(&service, &json!({"id": id, "variant": "de", name: sent})).await;
        let now = service.get(&of(&id, "")).await.body;
        let dated = |mut piece: Value| {
            piece["updatedAt"] = now["updatedAt"].clone();
            piece
        };
        assert_eq!(now, dated(own.clone()), "{name}: the piece itself stays");
        assert_eq!(service.get(&of(&id, "&variant=fr")).await.body, now);
        let expected = with(now.clone(), &json!({name: shown}));
        for query in ["&variant=de".to_owned(), format!("&variant={german}")] {
            assert_eq!(service.get(&of(&id, &query)).await.body, expected, "{name}");
        }
        let list = service.get(&format!("/content-pieces/list?variant={german}")).await;
        assert_eq!(list.body, json!([expected]));
        change(&service, &json!({"id": id, "variant": german, name: null})).await;
        let after = service.get(&of(&id, "&variant=de")).await.body;
        assert_eq!(after, service.get(&of(&id, "")).await.body, "{name}: null takes it away");
    }
}

#[on_both_engines]
async fn content_of_a_variant_is_available_in_every_format(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let (id, _) = full_piece(&service).await;
    let get = async |query: &str| {
        let path = format!("/content-pieces?id={id}&content=true&{query}");
        service.get(&path).await.body["content"].clone()
    };
    let own = get("").await;
    assert_eq!(get("variant=de").await, own);
    change(&service, &json!({"id": id, "variant": "de", "content": "<p>Hallo <b>Welt</b></p>"}))
        .await;
    assert_eq!(get("").await, own);
    assert_eq!(get("variant=de").await["content"][0]["content"][0]["text"], "Hallo ");
    assert_eq!(get("variant=de&contentFormat=html").await, "<p>Hallo <strong>Welt</strong></p>");
    let markdown = get("variant=de&contentFormat=markdown").await;
    assert_eq!(markdown.as_str().unwrap().trim(), "Hallo **Welt**");
    let list = "/content-pieces/list?content=true&contentFormat=html";
    let listed = service.get(&format!("{list}&variant=de")).await;
    assert_eq!(listed.body[0]["content"], "<p>Hallo <strong>Welt</strong></p>");
    let listed = service.get(list).await;
    assert_eq!(listed.body[0]["content"], "<h2>Hi</h2><p>Hello <strong>world</strong></p>");

    let before = version(&service, &id).await;
    change(&service, &json!({"id": id, "variant": "de", "content": "<p>Hallo <b>Welt</b></p>"}))
        .await;
    assert_eq!(version(&service, &id).await, before, "the same content changes nothing");
    change(&service, &json!({"id": id, "variant": "de", "content": ""})).await;
    assert_eq!(get("variant=de&contentFormat=html").await, "<p></p>", "empty, and its own");
    change(&service, &json!({"id": id, "variant": "de", "content": null})).await;
    assert_eq!(get("variant=de").await, own);
    change(&service, &json!({"id": id, "variant": "de", "content": null})).await;
    assert_eq!(version(&service, &id).await, before + 2);
    let html = "<h2>Hi</h2><p>Hello <b>world</b></p>";
    change(&service, &json!({"id": id, "variant": "de", "content": html})).await;
    assert_eq!(version(&service, &id).await, before + 2, "what shows already");
    change(&service, &json!({"id": id, "content": "<p>New</p>"})).await;
    assert_eq!(get("variant=de&contentFormat=html").await, "<p>New</p>");
}

#[on_both_engines]
async fn a_put_of_a_variants_get_response_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    variant(&service, "fr").await;
    let (id, _) = full_piece(&service).await;
    let overrides = json!({"id": id, "variant": "de", "title": "Titel", "tags": [],
        "coverUrl": "", "customData": "[1]", "content": "<p>Hallo</p>"});
    change(&service, &overrides).await;
    let sequence = service.last_sequence().await;
    for key in ["de", "fr"] {
        let path = of(&id, &format!("&variant={key}&content=true&contentFormat=html"));
        let before = service.get(&path).await;
        let plain = service.get(&of(&id, &format!("&variant={key}"))).await;
        let put = change(&service, &with(before.body.clone(), &json!({"variant": key}))).await;
        assert_eq!(put.header("etag"), plain.header("etag"));
        let after = service.get(&path).await;
        assert_eq!((&after.body, after.header("etag")), (&before.body, before.header("etag")));
    }
    assert_eq!(service.last_sequence().await, sequence, "nothing was fired");
    // The PUT of a GET response created no overrides, so these fields still follow the piece.
    change(&service, &json!({"id": id, "slug": "moved", "coverAlt": null, "title": "Other"})).await;
    let german = service.get(&of(&id, "&variant=de")).await.body;
    assert_eq!((&german["slug"], &german["coverAlt"]), (&json!("moved"), &Value::Null));
    assert_eq!(german["title"], "Titel");
    let french = service.get(&of(&id, "&variant=fr")).await.body;
    assert_eq!(french, service.get(&of(&id, "")).await.body);
}

#[on_both_engines]
async fn an_override_equal_to_the_pieces_value_is_kept(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let id =
        service.create("/content-pieces", &with(service.piece("a"), &json!({"title": "A"}))).await;
    for title in ["B", "A"] {
        change(&service, &json!({"id": id, "variant": "de", "title": title})).await;
    }
    change(&service, &json!({"id": id, "title": "C"})).await;
    assert_eq!(service.get(&of(&id, "&variant=de")).await.body["title"], "A");
}

#[on_both_engines]
async fn group_and_position_are_the_same_in_all_variants(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let group = service.create("/content-groups", &json!({"name": "Other"})).await;
    let first = service.create("/content-pieces", &service.piece("first")).await;
    let second = service.create("/content-pieces", &service.piece("second")).await;
    let body = json!({"id": first, "variant": "de", "referenceId": second});
    change(&service, &body).await;
    assert_eq!(service.get("/content-pieces/list").await.column("id"), [&*second, &*first]);
    let body = json!({"id": second, "variant": "de", "contentGroupId": group, "title": "Neu"});
    let sequence = service.last_sequence().await;
    change(&service, &body).await;
    let own = service.get(&of(&second, "")).await.body;
    assert_eq!((&own["contentGroupId"], &own["title"]), (&json!(group), &json!("Title of second")));
    let events = service.events_after(sequence).await;
    assert_eq!(events.len(), 1);
    let after: Value = serde_json::from_str(&events[0].data).unwrap();
    assert_eq!((&after["title"], &after["variant"]), (&json!("Neu"), &json!("de")));
    let wrong = json!({"id": first, "variant": "de", "referenceId": first, "contentGroupId": null});
    let answer = service.put("/content-pieces", &wrong).await;
    answer.assert_problem(400, "validation", &["contentGroupId"]);
}

#[on_both_engines]
async fn an_update_of_a_variant_fires_one_event_with_its_view_of_the_piece(store: TestStore) {
    let service = Service::start(store).await;
    let german = variant(&service, "de").await;
    let (id, _) = full_piece(&service).await;
    for fields in [
        json!({"title": "Titel", "tags": []}),
        json!({"content": "<p>Hallo</p>"}),
        json!({"title": null}),
        json!({"content": null}),
    ] {
        let (sequence, before) = (service.last_sequence().await, version(&service, &id).await);
        let body = with(json!({"id": id, "variant": german}), &fields);
        let put = change(&service, &body).await;
        let shown = service.get(&of(&id, "&variant=de")).await;
        assert_eq!(put.header("etag"), shown.header("etag"));
        assert_eq!(version(&service, &id).await, before + 1);
        let events = service.events_after(sequence).await;
        assert_eq!(events.len(), 1, "{fields}");
        assert_eq!(events[0].event_type, "contentPieceUpdated");
        assert!(events[0].data.ends_with(",\"variant\":\"de\"}"), "{}", events[0].data);
        let data: Value = serde_json::from_str(&events[0].data).unwrap();
        assert_eq!(data, with(shown.body, &json!({"variant": "de"})));
    }
}

#[on_both_engines]
async fn updates_of_a_variant_check_the_pieces_version(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let created = service.get(&of(&id, "")).await.body["updatedAt"].clone();
    let send = async |tag: &str, body: &Value| {
        let request = service.request(Method::PUT, "/content-pieces");
        let request = request.bearer_auth(&service.home.token).header("if-match", tag);
        TestResponse::of(request.header("prefer", "return=representation").json(body)).await
    };
    let old = service.get(&of(&id, "")).await.header("etag").to_owned();
    service.advance_clock(Duration::from_millis(3));
    let put = send(&old, &json!({"id": id, "variant": "de", "title": "Titel"})).await;
    let shown = service.get(&of(&id, "&variant=de")).await;
    assert_eq!((put.status.as_u16(), &put.body), (200, &shown.body));
    assert_eq!((&put.body["title"], put.header("etag")), (&json!("Titel"), shown.header("etag")));
    assert_ne!(put.body["updatedAt"], created);
    for body in [json!({"id": id, "variant": "de", "title": "x"}), json!({"id": id, "title": "x"})]
    {
        send(&old, &body).await.assert_problem(412, "precondition_failed", &[]);
    }
    let put = send(shown.header("etag"), &json!({"id": id, "title": "Own"})).await;
    assert_eq!((put.status.as_u16(), &put.body["title"]), (200, &json!("Own")));
}

#[on_both_engines]
async fn lists_match_slug_and_tag_in_the_variant(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let group = service.create("/content-groups", &json!({"name": "Other"})).await;
    let red = service.create("/tags", &json!({"label": "red"})).await;
    let blue = service.create("/tags", &json!({"label": "blue"})).await;
    for (slug, tags, overrides) in [
        ("plain", json!([red]), json!({})),
        ("titled", json!([red]), json!({"title": "Titel"})),
        ("renamed", json!([red]), json!({"slug": "neu"})),
        ("tagged", json!([red]), json!({"tags": [blue]})),
        ("bare", json!([red]), json!({"tags": []})),
        ("taken", json!([blue]), json!({"slug": "plain", "tags": [red, blue]})),
    ] {
        let body = with(service.piece(slug), &json!({"tags": tags}));
        let id = service.create("/content-pieces", &body).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &overrides)).await;
    }
    let elsewhere = with(piece_in(&group, "neu"), &json!({"tags": [blue]}));
    service.create("/content-pieces", &elsewhere).await;
    for (query, own, german) in [
        ("slug=plain".to_owned(), vec!["plain"], vec!["plain", "plain"]),
        ("slug=renamed".to_owned(), vec!["renamed"], vec![]),
        ("slug=neu".to_owned(), vec!["neu"], vec!["neu", "neu"]),
        (format!("slug=neu&contentGroupId={group}"), vec!["neu"], vec!["neu"]),
        ("slug=titled".to_owned(), vec!["titled"], vec!["titled"]),
        (
            format!("tagId={red}"),
            vec!["plain", "titled", "renamed", "tagged", "bare"],
            vec!["plain", "titled", "neu", "plain"],
        ),
        (format!("tagId={blue}"), vec!["taken", "neu"], vec!["tagged", "plain", "neu"]),
        (format!("tagId={blue}&slug=plain"), vec![], vec!["plain"]),
        (
            format!("tagId={red}&sort=-createdAt&perPage=2"),
            vec!["bare", "tagged"],
            vec!["plain", "neu"],
        ),
        (format!("tagId={red}&perPage=1&page=3"), vec!["renamed"], vec!["neu"]),
    ] {
        let list = service.get(&format!("/content-pieces/list?{query}")).await;
        assert_eq!(list.column("slug"), own, "{query}");
        let list = service.get(&format!("/content-pieces/list?variant=de&{query}")).await;
        assert_eq!(list.column("slug"), german, "{query} in the variant");
    }
}

#[on_both_engines]
async fn lists_of_a_variant_sort_and_page_by_overridden_values(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let mut ids = Vec::new();
    for (slug, title, date, overrides) in [
        ("a", "M", json!("2020-01-01"), json!({"title": "Z"})),
        ("b", "N", json!(null), json!({"date": "2030-01-01"})),
        ("c", "O", json!("2010-01-01"), json!({"title": "A", "date": "2000-01-01"})),
        ("d", "P", json!(null), json!({})),
        ("e", "A", json!("2015-01-01"), json!({"filename": "e.md"})),
    ] {
        let body = with(service.piece(slug), &json!({"title": title, "date": date}));
        let id = service.create("/content-pieces", &body).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &overrides)).await;
        ids.push(id);
    }
    for id in [&ids[3], &ids[0]] {
        service.advance_clock(Duration::from_millis(3));
        change(&service, &json!({"id": id, "filename": "touched"})).await;
    }
    for (sort, slugs) in [
        ("order", ["a", "b", "c", "d", "e"]),
        ("createdAt", ["a", "b", "c", "d", "e"]),
        ("updatedAt", ["b", "c", "e", "d", "a"]),
        ("title", ["c", "e", "b", "d", "a"]),
        ("date", ["d", "c", "e", "a", "b"]),
    ] {
        let mut expected = slugs.map(str::to_owned).to_vec();
        for sort in [sort.to_owned(), format!("-{sort}")] {
            let query = format!("variant=de&sort={sort}");
            let list = service.get(&format!("/content-pieces/list?{query}")).await;
            assert_eq!(list.column("slug"), expected, "{sort}");
            let walked = walk_by_link(&service, &format!("{query}&perPage=1")).await;
            assert_eq!(walked, expected, "{sort} by Link");
            let walked = walk_by_last_order(&service, &query).await;
            assert_eq!(walked, expected, "{sort} by lastOrder");
            expected.reverse();
        }
    }
    let own = service.get("/content-pieces/list?sort=title").await;
    assert_eq!(own.column("slug"), ["e", "a", "b", "c", "d"], "the pieces' own titles");
}

#[on_both_engines]
async fn a_new_key_keeps_the_variants_overrides(store: TestStore) {
    let service = Service::start(store).await;
    let id = variant(&service, "de").await;
    let piece = service.create("/content-pieces", &service.piece("a")).await;
    change(&service, &json!({"id": piece, "variant": "de", "title": "Titel"})).await;
    service.put("/variants", &json!({"id": id, "key": "deutsch"})).await;
    let seen = service.get(&of(&piece, "&variant=deutsch")).await;
    assert_eq!(seen.body["title"], "Titel");
    service.get(&of(&piece, "&variant=de")).await.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn deleting_a_variant_deletes_its_overrides(store: TestStore) {
    let service = Service::start(store).await;
    let german = variant(&service, "de").await;
    variant(&service, "fr").await;
    let tag = service.create("/tags", &json!({"label": "t"})).await;
    let mut pieces = Vec::new();
    for fields in [
        json!({"title": "Titel", "tags": [tag], "members": [service.home.made.member.to_string()]}),
        json!({"content": "<p>Hallo</p>"}),
        json!({"title": "Titel", "content": "<p>Hallo</p>"}),
        json!({}),
    ] {
        let id = service.create("/content-pieces", &service.piece("a")).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &fields)).await;
        change(&service, &json!({"id": id, "variant": "fr", "title": "Titre"})).await;
        let before = service.get(&of(&id, "")).await.body;
        let raised = i64::from(fields != json!({}));
        pieces.push((version(&service, &id).await + raised, id, before));
    }
    let sequence = service.last_sequence().await;
    assert_eq!(service.delete(&format!("/variants?id={german}")).await.status, 204);
    assert_eq!(service.last_sequence().await, sequence, "it fires nothing");
    let again = variant(&service, "de").await;
    for (expected, id, before) in pieces {
        assert_eq!(version(&service, &id).await, expected);
        let german = service.get(&of(&id, &format!("&variant={again}"))).await.body;
        assert_eq!(german, before);
        assert_eq!(service.get(&of(&id, "&variant=fr")).await.body["title"], "Titre");
    }
}

#[on_both_engines]
async fn deleting_a_variant_during_updates_leaves_no_overrides(store: TestStore) {
    let service = std::sync::Arc::new(Service::start(store).await);
    let mut pieces = Vec::new();
    for number in 0..12 {
        pieces.push(service.create("/content-pieces", &service.piece(&format!("p{number}"))).await);
    }
    for _ in 0..3 {
        let german = variant(&service, "de").await;
        let writers: Vec<_> = pieces
            .iter()
            .map(|id| {
                let service = std::sync::Arc::clone(&service);
                let id = id.clone();
                tokio::spawn(async move {
                    let before = version(&service, &id).await;
                    let body = json!({"id": id, "variant": "de", "title": "Titel"});
                    let status = service.put("/content-pieces", &body).await.status.as_u16();
                    (id, before, status)
                })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(4)).await;
        assert_eq!(service.delete(&format!("/variants?id={german}")).await.status, 204);
        for writer in writers {
            let (id, before, status) = writer.await.unwrap();
            // The override raises the version once, and its deletion once.
            let raised = if status == 204 { 2 } else { 0 };
            assert!([204, 404].contains(&status), "{status}");
            assert_eq!(version(&service, &id).await, before + raised);
        }
    }
}

#[on_both_engines]
async fn deleted_tags_and_removed_members_are_removed_from_variants(store: TestStore) {
    let service = Service::start(store).await;
    variant(&service, "de").await;
    let member = service.home.made.member;
    let a = service.create("/tags", &json!({"label": "a"})).await;
    let b = service.create("/tags", &json!({"label": "b"})).await;
    let both = json!({"tags": [b], "members": [member.to_string()]});
    let mut pieces = Vec::new();
    for (own, overrides, tags, of_tag, of_member) in [
        (json!({}), json!({"tags": [a]}), json!([]), 1, 0),
        (both.clone(), json!({"tags": [b, a]}), json!(["b"]), 1, 1),
        (json!({"tags": [a]}), json!({"tags": [a], "title": "x"}), json!([]), 1, 0),
        (json!({"tags": [b, a]}), json!({"tags": [b]}), json!(["b"]), 1, 0),
        (json!({}), json!({"members": [member.to_string()], "tags": [b]}), json!(["b"]), 0, 1),
        (both, json!({"members": []}), json!(["b"]), 0, 1),
    ] {
        let id = service.create("/content-pieces", &with(service.piece("x"), &own)).await;
        change(&service, &with(json!({"id": id, "variant": "de"}), &overrides)).await;
        pieces.push((version(&service, &id).await, id, tags, of_tag, of_member));
    }
    let sequence = service.last_sequence().await;
    assert_eq!(service.delete(&format!("/tags?id={a}")).await.status, 204);
    for (before, id, tags, of_tag, _) in &pieces {
        assert_eq!(version(&service, id).await, before + of_tag);
        let shown = service.get(&of(id, "&variant=de")).await.body;
        let labels = shown["tags"].as_array().unwrap().iter().map(|tag| tag["label"].clone());
        assert_eq!(labels.collect::<Value>(), *tags);
    }
    remove_member(&service, member).await;
    for (before, id, _, of_tag, of_member) in &pieces {
        assert_eq!(version(&service, id).await, before + of_tag + of_member);
        for query in ["", "&variant=de"] {
            assert_eq!(service.get(&of(id, query)).await.body["members"], json!([]));
        }
        // An empty list of the variant does not fall back to the piece's list.
        change(&service, &json!({"id": id, "tags": [b]})).await;
    }
    let shown = service.get(&of(&pieces[0].1, "&variant=de")).await.body;
    assert_eq!(shown["tags"], json!([]));
    assert_eq!(service.last_sequence().await, sequence + 3, "only the changes just made");
}

#[on_both_engines]
async fn deleting_a_piece_deletes_its_overrides(store: TestStore) {
    let service = Service::start(store).await;
    let german = variant(&service, "de").await;
    let tag = service.create("/tags", &json!({"label": "t"})).await;
    let group = service.create("/content-groups", &json!({"name": "Gone"})).await;
    let mut ids = Vec::new();
    for home in [&service.home.group, &group, &group] {
        let id = service.create("/content-pieces", &piece_in(home, "a")).await;
        let member = service.home.made.member.to_string();
        change(
            &service,
            &json!({"id": id, "variant": "de", "slug": "deutsch", "tags": [tag],
            "members": [member], "content": "<p>Hallo</p>"}),
        )
        .await;
        ids.push(id);
    }
    let sequence = service.last_sequence().await;
    assert_eq!(service.delete(&of(&ids[0], "")).await.status, 204);
    let path = format!("/content-groups?id={group}&recursive=true");
    assert_eq!(service.delete(&path).await.status, 204);
    for event in &service.events_after(sequence).await[..3] {
        assert_eq!(event.event_type, "contentPieceRemoved");
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!((&data["slug"], data.get("variant")), (&json!("a"), None));
    }
    for query in ["slug=deutsch".to_owned(), format!("tagId={tag}")] {
        let list = service.get(&format!("/content-pieces/list?variant=de&{query}")).await;
        assert_eq!(list.body, json!([]));
    }
    for path in [format!("/tags?id={tag}"), format!("/variants?id={german}")] {
        assert_eq!(service.delete(&path).await.status, 204, "nothing refers to it");
    }
}

async fn remove_member(service: &Service, member: WorkspaceMemberId) {
    let workspace = service.home.made.workspace;
    let write =
        async move |tx: &WriteTx<'_>| content_pieces::remove_member(tx, workspace, member).await;
    service.database.write::<_, Error, _>("members.remove", write).await.unwrap();
}
