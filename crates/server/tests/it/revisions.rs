//! Revisions of pieces: their record, reads of earlier states, restoration and autosaves.

use std::time::Duration;

use galley_application::operations::content_pieces;
use galley_domain::revision_retention::RevisionRetention;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

/// Returns the revisions of a piece, latest first.
async fn revisions(service: &Service, id: &str) -> Vec<Value> {
    let path = format!("/content-pieces/revisions?id={id}&perPage=1000");
    service.get(&path).await.body.as_array().unwrap().clone()
}

/// Returns the id of a revision by its number.
async fn revision(service: &Service, id: &str, number: i64) -> String {
    let all = revisions(service, id).await;
    let found = all.iter().find(|one| one["number"] == number).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

async fn update(service: &Service, id: &str, change: &Value) {
    let mut body = change.clone();
    body["id"] = json!(id);
    let updated = service.put("/content-pieces", &body).await;
    assert_eq!(updated.status, 204, "{change}: {}", updated.body);
}

/// Returns the piece with its content, itself and in the variant `de`.
async fn states(service: &Service, path: &str) -> Vec<Value> {
    let mut states = Vec::new();
    for variant in ["", "&variant=de"] {
        let mut found = service.get(&format!("{path}{variant}&content=true")).await;
        assert_eq!(found.status, 200, "{path}: {}", found.body);
        found.body.as_object_mut().unwrap().remove("revision");
        states.push(found.body);
    }
    states
}

/// Returns the types and titles of the events of a piece after `after`.
async fn events(service: &Service, id: &str, after: i64) -> Vec<(String, String)> {
    let feed = service.get(&format!("/events?after={after}&perPage=1000")).await.body;
    let events = feed.as_array().unwrap().iter().filter(|event| event["data"]["id"] == id);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    events.map(|event| (text(&event["type"]), text(&event["data"]["title"]))).collect()
}

#[on_both_engines]
async fn each_change_is_a_revision_at_which_the_piece_is_readable(store: TestStore) {
    let service = Service::start(store).await;
    let german = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let red = service.create("/tags", &json!({"label": "Red"})).await;
    let group = service.create("/content-groups", &json!({"name": "Other"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    let mut expected = vec![states(&service, &path).await];
    let changes = [
        (json!({"title": "Second"}), json!(["title"]), json!(null)),
        (json!({"content": "<p>One two</p>"}), json!(["content"]), json!(null)),
        (json!({"variant": "de", "title": "Zwei"}), json!(["title"]), json!(german)),
        (
            json!({"variant": "de", "content": "<p>Eins</p>", "customData": {"a": 1}}),
            json!(["customData", "content"]),
            json!(german),
        ),
        (
            json!({"tags": [red], "date": "2026-11-01", "slug": "b", "content": null}),
            json!(["date", "slug", "tags", "content"]),
            json!(null),
        ),
        (
            json!({"variant": "de", "title": null, "content": null}),
            json!(["title", "content"]),
            json!(german),
        ),
        (json!({"variant": "de", "customData": null}), json!(["customData"]), json!(german)),
    ];
    for (change, ..) in &changes {
        update(&service, &id, change).await;
        expected.push(states(&service, &path).await);
        // An update without a change has no revision.
        update(&service, &id, change).await;
    }
    let all = revisions(&service, &id).await;
    assert_eq!(all.len(), changes.len() + 1);
    let oldest_first = all.iter().rev().zip(1..);
    let first = (json!({}), json!([]), json!(null));
    for ((found, number), (_, fields, variant)) in
        oldest_first.zip(std::iter::once(&first).chain(&changes))
    {
        assert_eq!(found["number"], number);
        assert_eq!((&found["fields"], &found["variantId"]), (fields, variant), "{number}");
        assert_eq!((&found["origin"], &found["note"]), (&json!("api"), &json!(null)));
        assert_eq!(found["createdBy"]["name"], "home");
        assert_eq!(found["contentPieceId"], id);
        assert!(found["size"].as_i64().unwrap() < 250, "{found}");
    }
    // Moves are not recorded, and keep the states.
    update(&service, &id, &json!({"contentGroupId": group})).await;
    assert_eq!(revisions(&service, &id).await.len(), all.len());
    let now = service.get(&path).await.body;
    for (found, mut states_then) in all.iter().rev().zip(expected) {
        for state in &mut states_then {
            (state["order"], state["contentGroupId"]) =
                (now["order"].clone(), now["contentGroupId"].clone());
        }
        let revision = found["id"].as_str().unwrap();
        let path = format!("/content-pieces/revision?id={id}&revision={revision}");
        assert_eq!(states(&service, &path).await, states_then, "{found}");
        assert_eq!(service.get(&path).await.body["revision"], *found);
    }
}

#[on_both_engines]
async fn revisions_are_listed_by_page_and_by_variant(store: TestStore) {
    let service = Service::start(store).await;
    let german = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    for number in 2..=7 {
        let variant = if number % 3 == 0 { json!("de") } else { json!(null) };
        let change = json!({"title": format!("Title {number}"), "variant": variant});
        update(&service, &id, &change).await;
    }
    let numbers = |answer: &TestResponse| {
        let all = answer.body.as_array().unwrap().iter();
        all.map(|one| one["number"].to_string()).collect::<Vec<_>>()
    };
    let mut path = format!("/content-pieces/revisions?id={id}&perPage=3");
    let mut pages = Vec::new();
    loop {
        let page = service.get(&path).await;
        pages.push(numbers(&page));
        let Some(next) = page.headers.get("link") else { break };
        let next = next.to_str().unwrap();
        path = next[1..next.find('>').unwrap()].to_owned();
    }
    assert_eq!(pages, [vec!["7", "6", "5"], vec!["4", "3", "2"], vec!["1"]]);
    let second = format!("/content-pieces/revisions?id={id}&perPage=3&page=2");
    assert_eq!(numbers(&service.get(&second).await), ["4", "3", "2"]);
    for variant in ["de", &german] {
        let path = format!("/content-pieces/revisions?id={id}&variant={variant}");
        assert_eq!(numbers(&service.get(&path).await), ["6", "3"]);
    }
    let unknown = format!("/content-pieces/revisions?id={id}&variant=fr");
    service.get(&unknown).await.assert_problem(404, "not_found", &[]);
}

#[on_both_engines]
async fn each_of_many_states_is_readable_and_restorable(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut piece = service.piece("a");
    let words = "Some words that stay the same. ".repeat(20);
    piece["content"] = json!(format!("<p>{words}</p>"));
    let id = service.create("/content-pieces", &piece).await;
    let path = format!("/content-pieces?id={id}");
    let mut expected = vec![states(&service, &path).await];
    for number in 2..=75 {
        let change = match number % 5 {
            0 => json!({"variant": "de", "title": format!("Titel {number}")}),
            1 => json!({"variant": "de", "content": format!("<p>{words}{number}</p>")}),
            2 => json!({"title": format!("Title {number}")}),
            // A large content that changes as a whole.
            3 if number % 2 == 0 => {
                json!({"content": format!("<p>{}</p>", format!("{number} ").repeat(9_000))})
            }
            _ => json!({"content": format!("<p>{words}<b>{number}</b></p>")}),
        };
        update(&service, &id, &change).await;
        expected.push(states(&service, &path).await);
    }
    let all = revisions(&service, &id).await;
    for (found, states_then) in all.iter().rev().zip(&expected) {
        let revision = found["id"].as_str().unwrap();
        let path = format!("/content-pieces/revision?id={id}&revision={revision}");
        assert_eq!(states(&service, &path).await, *states_then, "{found}");
    }
    for number in [40, 3, 70, 1] {
        let revision = revision(&service, &id, number).await;
        let restored = json!({"id": id, "revision": revision});
        assert_eq!(service.post("/content-pieces/restore", &restored).await.status, 204);
        let now = states(&service, &path).await;
        let then = &expected[usize::try_from(number).unwrap() - 1];
        for (now, then) in now.iter().zip(then) {
            for field in ["title", "content", "variants"] {
                assert_eq!(now[field], then[field], "{number}");
            }
        }
    }
}

#[on_both_engines]
async fn a_restored_revision_is_a_change_with_an_event(store: TestStore) {
    let service = Service::start(store).await;
    let german = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let [red, blue] = ["Red", "Blue"].map(|label| json!({"label": label}));
    let (red, blue) = (service.create("/tags", &red).await, service.create("/tags", &blue).await);
    let mut piece = service.piece("a");
    piece["tags"] = json!([red, blue]);
    let id = service.create("/content-pieces", &piece).await;
    update(&service, &id, &json!({"variant": "de", "title": "Titel"})).await;
    let change = json!({"title": "New", "content": "<p>New</p>", "tags": [], "coverAlt": "x"});
    update(&service, &id, &change).await;
    update(&service, &id, &json!({"variant": "de", "title": "Neu", "slug": "neu"})).await;
    assert_eq!(service.delete(&format!("/tags?id={red}")).await.status, 204);
    let after = service.last_sequence().await;
    let path = format!("/content-pieces?id={id}");
    let tag = service.get(&path).await.header("etag").to_owned();
    let second = revision(&service, &id, 2).await;
    let restore = async |body: &Value, tag: &str| {
        let request = service.request(Method::POST, "/content-pieces/restore");
        let request = request.header("prefer", "return=representation").header("if-match", tag);
        TestResponse::of(request.bearer_auth(&service.home.token).json(body)).await
    };
    let title = json!({"id": id, "revision": second, "fields": ["title"]});
    let restored = restore(&title, &tag).await;
    assert_eq!(restored.status, 200, "{}", restored.body);
    assert_eq!(restored.header("etag"), service.get(&path).await.header("etag"));
    assert_eq!(
        (&restored.body["title"], &restored.body["coverAlt"]),
        (&json!("Title of a"), &json!("x"))
    );
    let in_german = service.get(&format!("{path}&variant=de")).await.body;
    assert_eq!((&in_german["title"], &in_german["slug"]), (&json!("Titel"), &json!("neu")));
    restore(&title, &tag).await.assert_problem(412, "precondition_failed", &[]);
    let whole = json!({"id": id, "revision": second});
    let restored = restore(&whole, "*").await;
    assert_eq!(restored.body["coverAlt"], json!(null));
    // The deleted tag is left out.
    let tags = restored.body["tags"].as_array().unwrap();
    assert_eq!(tags.iter().map(|tag| &tag["id"]).collect::<Vec<_>>(), [&json!(blue)]);
    let in_german = service.get(&format!("{path}&variant=de")).await.body;
    assert_eq!(in_german["slug"], "a");
    let found = revisions(&service, &id).await;
    let restorations: Vec<_> = found.iter().filter(|one| one["origin"] == "restore").collect();
    let variants: Vec<_> = restorations.iter().map(|one| &one["variantId"]).collect();
    assert_eq!(variants, [&json!(german), &json!(null), &json!(german), &json!(null)]);
    assert_eq!(events(&service, &id, after).await.len(), 4);
    // A repeated restoration changes nothing.
    let count = found.len();
    assert_eq!(restore(&whole, "*").await.status, 200);
    assert_eq!(revisions(&service, &id).await.len(), count);
}

#[on_both_engines]
async fn an_autosave_replaces_the_authors_latest_one_and_raises_one_event(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let ann = service.person("ann", &editor).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let after = service.last_sequence().await;
    let save = async |token: &str, title: &str, autosave: bool| {
        let body = json!({"id": id, "title": title, "content": format!("<p>{title}</p>"), "autosave": autosave});
        let saved = service.send_as(token, Method::PUT, "/content-pieces", Some(&body)).await;
        assert_eq!(saved.status, 204, "{}", saved.body);
    };
    let (home, ann) = (&*service.home.token, &*ann.token);
    for title in ["H", "He", "Hell", "Hello"] {
        save(home, title, true).await;
        assert_eq!(service.get(&format!("/content-pieces?id={id}")).await.body["title"], title);
    }
    let found = revisions(&service, &id).await;
    assert_eq!(found.len(), 2);
    assert_eq!(
        (&found[0]["autosave"], &found[0]["fields"]),
        (&json!(true), &json!(["title", "content"]))
    );
    assert_eq!(events(&service, &id, after).await, []);
    // Another author's change raises the event first.
    save(ann, "Ann", true).await;
    let updated = |title: &str| ("contentPieceUpdated".to_owned(), title.to_owned());
    assert_eq!(events(&service, &id, after).await, [updated("Hello")]);
    // The author's own change raises one event for both.
    save(ann, "Anna", false).await;
    assert_eq!(events(&service, &id, after).await, [updated("Hello"), updated("Anna")]);
    assert_eq!(revisions(&service, &id).await.len(), 4);
    // A save without a change completes the autosave.
    save(ann, "Annabel", true).await;
    save(ann, "Annabel", false).await;
    assert_eq!(events(&service, &id, after).await[2..], [updated("Annabel")]);
    let found = revisions(&service, &id).await;
    assert_eq!((found.len(), &found[0]["autosave"]), (5, &json!(false)));
    // After ten minutes, an autosave is a revision of its own.
    save(ann, "Bea", true).await;
    service.advance_clock(Duration::from_mins(11));
    save(ann, "Beata", true).await;
    assert_eq!(revisions(&service, &id).await.len(), 7);
    let first = revision(&service, &id, 1).await;
    let path = format!("/content-pieces/revision?id={id}&revision={first}");
    assert_eq!(service.get(&path).await.body["title"], "Title of a");
    let second = revision(&service, &id, 2).await;
    let path = format!("/content-pieces/revision?id={id}&revision={second}");
    assert_eq!(service.get(&path).await.body["title"], "Hello");
}

#[on_both_engines]
async fn the_event_of_an_autosave_in_a_variant_has_its_own_values(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let ann = service.person("ann", &editor).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let after = service.last_sequence().await;
    let titles = async || {
        let found = events(&service, &id, after).await.into_iter();
        found.map(|(_, title)| title).collect::<Vec<_>>()
    };
    update(&service, &id, &json!({"variant": "de", "title": "Eins", "autosave": true})).await;
    let body = json!({"id": id, "variant": "de", "title": "Zwei"});
    let saved = service.send_as(&ann.token, Method::PUT, "/content-pieces", Some(&body)).await;
    assert_eq!(saved.status, 204);
    assert_eq!(titles().await, ["Eins", "Zwei"]);
    // The event of an autosave of another part precedes that of the change.
    update(&service, &id, &json!({"variant": "de", "title": "Drei", "autosave": true})).await;
    update(&service, &id, &json!({"title": "Four"})).await;
    assert_eq!(titles().await[2..], ["Drei", "Four"]);
}

#[on_both_engines]
async fn autosaves_with_and_without_content_are_one_revision(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    // Some of these revisions have all values: after 32 changes, and for a large content.
    for number in 2..=36 {
        let before = states(&service, &path).await;
        let text =
            if number > 34 { format!("word{number} ").repeat(9_000) } else { number.to_string() };
        let saves = [
            json!({"title": format!("Title {number}")}),
            json!({"content": format!("<p>{text}</p>")}),
            json!({"slug": format!("slug-{number}")}),
        ];
        for index in 0..3 {
            let mut save = saves[(index + number) % 3].clone();
            save["autosave"] = json!(true);
            update(&service, &id, &save).await;
        }
        let after = states(&service, &path).await;
        // This completes the autosave.
        update(&service, &id, &json!({"title": format!("Title {number}")})).await;
        let all = revisions(&service, &id).await;
        assert_eq!(all.len(), number);
        assert_eq!(all[0]["fields"], json!(["title", "slug", "content"]));
        for (found, expected) in [(&all[1], before), (&all[0], after)] {
            let revision = found["id"].as_str().unwrap();
            let path = format!("/content-pieces/revision?id={id}&revision={revision}");
            for (found, expected) in states(&service, &path).await.iter().zip(expected) {
                for field in ["title", "slug", "content"] {
                    assert_eq!(found[field], expected[field], "{number}");
                }
            }
        }
    }
}

#[on_both_engines]
async fn an_autosave_that_removed_a_variants_content_still_names_it(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let numbers = (0_u64..5_000).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let text: Vec<_> = numbers.map(|number| format!("{number:x}")).collect();
    let content = format!("<p>{}</p>", text.join(" "));
    update(&service, &id, &json!({"variant": "de", "content": content})).await;
    let saves = [json!({"content": null}), json!({"title": "Titel"}), json!({"slug": "s"})];
    for mut save in saves {
        save["variant"] = json!("de");
        save["autosave"] = json!(true);
        update(&service, &id, &save).await;
    }
    let all = revisions(&service, &id).await;
    assert_eq!((all.len(), &all[0]["fields"]), (3, &json!(["title", "slug", "content"])));
    let second = revision(&service, &id, 2).await;
    let path = format!("/content-pieces/revision?id={id}&revision={second}&variant=de");
    let found = service.get(&format!("{path}&content=true&contentFormat=html")).await.body;
    assert_eq!(found["content"], content);
}

#[on_both_engines]
async fn the_event_of_an_autosave_follows_after_a_minute_without_an_edit(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let after = service.last_sequence().await;
    update(&service, &id, &json!({"title": "Saved", "autosave": true})).await;
    service.advance_clock(Duration::from_secs(55));
    update(&service, &id, &json!({"title": "Saved again", "autosave": true})).await;
    service.advance_clock(Duration::from_secs(55));
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(events(&service, &id, after).await, []);
    service.advance_clock(Duration::from_secs(10));
    let raised = [("contentPieceUpdated".to_owned(), "Saved again".to_owned())];
    let wait = async {
        while events(&service, &id, after).await != raised {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the event is raised");
    // The next autosave still replaces it.
    update(&service, &id, &json!({"title": "Later", "autosave": true})).await;
    assert_eq!(revisions(&service, &id).await.len(), 2);
}

#[on_both_engines]
async fn a_note_is_set_and_removed_and_keeps_an_autosave(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let note = async |number: i64, note: Value| {
        let revision = revision(&service, &id, number).await;
        let body = json!({"id": id, "revision": revision, "note": note});
        let request = service.request(Method::PUT, "/content-pieces/revision");
        let request = request.header("prefer", "return=representation").json(&body);
        let changed = TestResponse::of(request.bearer_auth(&service.home.token)).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
        assert_eq!(changed.body["note"], note);
    };
    // The first revision has no row of its own yet.
    note(1, json!("First")).await;
    update(&service, &id, &json!({"title": "One", "autosave": true})).await;
    note(2, json!("Second")).await;
    update(&service, &id, &json!({"title": "Two", "autosave": true})).await;
    update(&service, &id, &json!({"title": "Three", "note": "Fourth"})).await;
    let notes = async || {
        let all = revisions(&service, &id).await;
        all.iter().map(|one| one["note"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(notes().await, [json!("Fourth"), json!(null), json!("Second"), json!("First")]);
    note(1, json!(null)).await;
    assert_eq!(notes().await[3], json!(null));
    let unchanged = json!({"id": id, "revision": revision(&service, &id, 2).await});
    assert_eq!(service.put("/content-pieces/revision", &unchanged).await.status, 204);
    assert_eq!(notes().await[2], json!("Second"));
}

#[on_both_engines]
async fn revisions_of_invisible_pieces_are_unknown(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.create("/content-groups", &json!({"name": "Other"})).await;
    let limited = service.token("all", Some(&[&other])).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let another = service.create("/content-pieces", &service.piece("b")).await;
    update(&service, &id, &json!({"title": "One"})).await;
    let found = revision(&service, &id, 2).await;
    let absent = "rev_00000000000000000000000000";
    let get = async |token: &str, path: &str| service.send_as(token, Method::GET, path, None).await;
    for path in [
        format!("/content-pieces/revisions?id={id}"),
        format!("/content-pieces/revision?id={id}&revision={found}"),
    ] {
        assert_eq!(service.get(&path).await.status, 200);
        get(&limited, &path).await.assert_problem(404, "not_found", &[]);
    }
    let home = &*service.home.token;
    for revision in [&*found, absent, "x", "rev_7zzzzzzzzzzzzzzzzzzzzzzzzz"] {
        let path = format!("/content-pieces/revision?id={another}&revision={revision}");
        get(home, &path).await.assert_problem(404, "not_found", &[]);
        let body = json!({"id": another, "revision": revision});
        for (method, path) in
            [(Method::POST, "/content-pieces/restore"), (Method::PUT, "/content-pieces/revision")]
        {
            let answer = service.send_as(home, method, path, Some(&body)).await;
            answer.assert_problem(404, "not_found", &[]);
        }
    }
    let body = json!({"id": id, "revision": found});
    let answer = service.send_as(&limited, Method::POST, "/content-pieces/restore", Some(&body));
    answer.await.assert_problem(404, "not_found", &[]);
    let body = json!({"id": id, "revision": found, "fields": ["title", "name"]});
    let answer = service.post("/content-pieces/restore", &body).await;
    answer.assert_problem(400, "validation", &["fields[1]"]);
}

#[on_both_engines]
async fn expired_revisions_leave_the_others_readable(store: TestStore) {
    let service = Service::start(store).await;
    for key in ["de", "fr"] {
        service.create("/variants", &json!({"key": key, "label": key})).await;
    }
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    let mut expected = vec![states(&service, &path).await];
    for number in 2..=160 {
        service.advance_clock(Duration::from_hours(7));
        let variant = [json!(null), json!("de"), json!(null), json!("fr")][number % 4].clone();
        let mut change = match number % 3 {
            0 => json!({"title": format!("Title {number}")}),
            _ => json!({"content": format!("<p>Some words <b>{number}</b></p>")}),
        };
        change["variant"] = variant;
        if number == 5 {
            change["note"] = json!("A note");
        }
        update(&service, &id, &change).await;
        expected.push(states(&service, &path).await);
    }
    let check = async |count: usize| {
        let all = revisions(&service, &id).await;
        assert_eq!(all.len(), count);
        for found in &all {
            let number = usize::try_from(found["number"].as_i64().unwrap()).unwrap();
            let revision = found["id"].as_str().unwrap();
            let path = format!("/content-pieces/revision?id={id}&revision={revision}");
            assert_eq!(states(&service, &path).await, expected[number - 1], "{found}");
        }
        all
    };
    let remove = async |all_days, daily_days| {
        let retention = RevisionRetention { all_days, daily_days };
        let (database, environment) = (&service.database, &service.environment);
        content_pieces::remove_expired_revisions(database, environment, retention).await.unwrap();
    };
    remove(60, 365).await;
    check(160).await;
    remove(20, 365).await;
    let daily = revisions(&service, &id).await.len();
    assert!((80..120).contains(&daily), "{daily}");
    let all = check(daily).await;
    let days: Vec<_> = all.iter().map(|one| &one["createdAt"].as_str().unwrap()[..10]).collect();
    // Beyond 20 days of some three each, there is one of each day, and perhaps the noted one.
    let distinct: std::collections::BTreeSet<_> = days[70..].iter().collect();
    assert!(distinct.len() + 1 >= days[70..].len(), "{days:?}");
    // A repeated removal changes nothing, and a shorter time leaves the latest and the noted one.
    remove(20, 365).await;
    check(daily).await;
    remove(2, 10).await;
    check(revisions(&service, &id).await.len()).await;
    service.advance_clock(Duration::from_hours(24 * 400));
    remove(30, 365).await;
    let all = check(2).await;
    let notes: Vec<_> = all.iter().map(|one| &one["note"]).collect();
    assert_eq!(notes, [&json!(null), &json!("A note")]);
    update(&service, &id, &json!({"title": "Last"})).await;
    assert_eq!(revisions(&service, &id).await[0]["number"], 161);
}

#[on_both_engines]
async fn two_revisions_are_compared_in_each_format(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut piece = service.piece("a");
    piece["content"] = json!("<p>One two <i>three</i></p><p>Same</p>");
    let id = service.create("/content-pieces", &piece).await;
    let content = "<p>One 2 three</p><p>Same</p><script>x</script><h2>New</h2>";
    let change = json!({"title": "New", "date": "2026-11-01", "content": content});
    update(&service, &id, &change).await;
    update(&service, &id, &json!({"variant": "de", "content": "<p>Eins</p>"})).await;
    let all = revisions(&service, &id).await;
    let [third, second, first] = [0, 1, 2].map(|index| all[index]["id"].as_str().unwrap());
    let diff = async |from: &str, to: &str, more: &str| {
        let path = format!("/content-pieces/diff?id={id}&from={from}&to={to}{more}");
        let answer = service.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    };
    let found = diff(first, second, "").await;
    assert_eq!(
        found["fields"],
        json!([
            {"field": "date", "from": null, "to": "2026-11-01T00:00:00.000Z"},
            {"field": "title", "from": "Title of a", "to": "New"},
        ])
    );
    assert_eq!(found["diff"][1], json!({"equal": 1}));
    assert_eq!(found["diff"][2]["insert"][0]["type"], "heading");
    let html = diff(first, second, "&format=html").await;
    let html = html["diff"].as_str().unwrap();
    assert!(html.contains("<del>two</del>") && html.contains("<ins>2</ins>"), "{html}");
    let text = diff(first, second, "&format=text").await;
    assert!(text["diff"].as_str().unwrap().contains("[-two-]{+2+}"), "{text}");
    let back = diff(second, first, "&format=html").await;
    assert!(back["diff"].as_str().unwrap().contains("<ins>two</ins>"), "{back}");
    let none = diff(second, third, "").await;
    assert_eq!(none, json!({"format": "json", "fields": [], "diff": [{"equal": 3}]}));
    let german = diff(second, third, "&variant=de&format=html").await;
    assert!(german["diff"].as_str().unwrap().contains("Eins"), "{german}");
}

#[on_both_engines]
async fn concurrent_changes_have_consecutive_revisions(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let changes = (0..16).map(|number| {
        let change =
            json!({"title": format!("Title {number}"), "content": format!("<p>{number}</p>")});
        let (service, id) = (&service, &id);
        async move { update(service, id, &change).await }
    });
    futures_util::future::join_all(changes).await;
    let all = revisions(&service, &id).await;
    let numbers: Vec<_> = all.iter().map(|one| one["number"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (1..=17).rev().collect::<Vec<_>>());
    let mut titles = std::collections::BTreeSet::new();
    for one in &all[..16] {
        let revision = one["id"].as_str().unwrap();
        let path = format!(
            "/content-pieces/revision?id={id}&revision={revision}&content=true&contentFormat=html"
        );
        let state = service.get(&path).await.body;
        let (title, content) =
            (state["title"].as_str().unwrap(), state["content"].as_str().unwrap());
        assert_eq!(format!("<p>{}</p>", &title[6..]), content.trim());
        titles.insert(title.to_owned());
    }
    assert_eq!(titles.len(), 16);
}

#[on_both_engines]
async fn a_purged_revision_leaves_no_values_and_the_others_readable(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut body = service.piece("a");
    let text = |word: &str| format!("<p>{} {word}</p>", "Words of a text.".repeat(30));
    body["content"] = json!(text("first"));
    let id = service.create("/content-pieces", &body).await;
    let path = format!("/content-pieces?id={id}");
    let mut expected = vec![states(&service, &path).await];
    for change in [
        json!({"content": text("second")}),
        json!({"content": text("secret"), "title": "Secret"}),
        json!({"variant": "de", "title": "Titel", "content": text("geheim")}),
        json!({"content": text("fourth"), "title": "Fourth"}),
        json!({"variant": "de", "title": "Neuer Titel"}),
        json!({"variant": "de", "content": text("neu")}),
    ] {
        update(&service, &id, &change).await;
        expected.push(states(&service, &path).await);
    }
    let purge = async |number: i64, status: u16| {
        let revision = revision(&service, &id, number).await;
        let path = format!("/content-pieces/revision?id={id}&revision={revision}");
        let purged = service.delete(&path).await;
        assert_eq!(purged.status, status, "{number}: {}", purged.body);
        if status == 204 {
            service.delete(&path).await.assert_problem(404, "not_found", &[]);
        }
    };
    let check = async |expected: &[Vec<Value>], left: &[i64]| {
        let all = revisions(&service, &id).await;
        let numbers: Vec<_> = all.iter().map(|one| one["number"].as_i64().unwrap()).collect();
        assert_eq!(numbers, left);
        for found in all {
            let number = usize::try_from(found["number"].as_i64().unwrap()).unwrap();
            let revision = found["id"].as_str().unwrap();
            let path = format!("/content-pieces/revision?id={id}&revision={revision}");
            assert_eq!(states(&service, &path).await, expected[number - 1], "{found}");
        }
    };
    // The values of the latest ones are current, each in its part.
    for latest in [5, 7] {
        purge(latest, 409).await;
    }
    purge(3, 204).await;
    // The piece itself at the variant's revision is the one before.
    let as_before = |expected: &mut Vec<Vec<Value>>, number: usize, of: usize| {
        for (index, state) in expected[number - 1].clone().into_iter().enumerate() {
            let before = expected[of - 1][index].clone();
            let is_own = |field: &str| index == 0 || (field != "title" && field != "content");
            let mut mixed = state;
            for field in ["title", "content"].into_iter().filter(|field| is_own(field)) {
                mixed[field] = before[field].clone();
            }
            expected[number - 1][index] = mixed;
        }
    };
    as_before(&mut expected, 4, 2);
    check(&expected, &[7, 6, 5, 4, 2, 1]).await;
    // The oldest revision becomes that of the next one.
    purge(1, 204).await;
    check(&expected, &[7, 6, 5, 4, 2]).await;
    assert_eq!(revisions(&service, &id).await[4]["fields"], json!([]));
    // The first one of a variant: the piece has no override before the next one.
    purge(4, 204).await;
    purge(6, 204).await;
    let all = revisions(&service, &id).await;
    assert_eq!(all[0]["fields"], json!(["title", "content"]));
    expected[4][0]["variants"] = json!([]);
    expected[4][1] = expected[4][0].clone();
    check(&expected, &[7, 5, 2]).await;
    let of_variant = service.get(&format!("/content-pieces/revisions?id={id}&variant=de")).await;
    assert_eq!(of_variant.body.as_array().unwrap().len(), 1);
    // Without the permission, nothing is removed.
    let token = service.token("contentPieces:write", None).await;
    let second = revision(&service, &id, 2).await;
    let path = format!("/content-pieces/revision?id={id}&revision={second}");
    let rejected = service.send_as(&token, Method::DELETE, &path, None).await;
    rejected.assert_problem(403, "insufficient_permissions", &[]);
    check(&expected, &[7, 5, 2]).await;
    // A piece with its creation alone has nothing to purge.
    let new = service.create("/content-pieces", &service.piece("b")).await;
    let first = revision(&service, &new, 1).await;
    let path = format!("/content-pieces/revision?id={new}&revision={first}");
    service.delete(&path).await.assert_problem(409, "latest_revision", &[]);
}

#[on_both_engines]
async fn a_purged_first_revision_leaves_the_states_before_the_second(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    for change in [
        json!({"variant": "de", "title": "Titel"}),
        json!({"title": "Third", "content": "<p>Third</p>"}),
        json!({"title": "Fourth", "content": "<p>Fourth</p>"}),
    ] {
        update(&service, &id, &change).await;
    }
    let first = revision(&service, &id, 1).await;
    let path = format!("/content-pieces/revision?id={id}&revision={first}");
    assert_eq!(service.delete(&path).await.status, 204);
    update(&service, &id, &json!({"title": "Fifth"})).await;
    // The piece itself at the variant's revision is the oldest that is left.
    for (number, title) in [(2, "Third"), (3, "Third"), (4, "Fourth"), (5, "Fifth")] {
        let revision = revision(&service, &id, number).await;
        let path = format!("/content-pieces/revision?id={id}&revision={revision}");
        assert_eq!(service.get(&path).await.body["title"], title, "{number}");
    }
}

#[on_both_engines]
async fn the_deletion_of_a_variant_removes_the_values_of_its_revisions(store: TestStore) {
    let service = Service::start(store).await;
    let german = service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let id = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={id}");
    let own = service.get(&format!("{path}&content=true")).await.body;
    update(&service, &id, &json!({"variant": "de", "title": "Titel"})).await;
    update(&service, &id, &json!({"variant": "de", "title": "Neuer Titel"})).await;
    assert_eq!(service.delete(&format!("/variants?id={german}")).await.status, 204);
    for found in revisions(&service, &id).await {
        assert_eq!((&found["fields"], found["size"].as_i64() < Some(8)), (&json!([]), true));
        let revision = found["id"].as_str().unwrap();
        let path = format!("/content-pieces/revision?id={id}&revision={revision}&content=true");
        let state = service.get(&path).await.body;
        assert_eq!((&state["title"], &state["content"]), (&own["title"], &own["content"]));
    }
    update(&service, &id, &json!({"title": "Later"})).await;
    assert_eq!(revisions(&service, &id).await[0]["number"], 4);
}
