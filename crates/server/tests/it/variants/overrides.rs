//! Updates of a variant of a piece, and its view.

use std::time::Duration;

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use super::{change, of, variant, version, with};
use crate::content_pieces::full_piece;
use crate::service::{Service, TestResponse};

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
            piece["variants"] = json!(["de"]);
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
