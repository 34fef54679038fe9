//! Groups whose pieces have unique slugs.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse, piece_in};

async fn group(service: &Service, ancestor: Option<&str>, unique: bool) -> String {
    let body = json!({"name": "g", "ancestor": ancestor, "uniqueSlugs": unique});
    service.create("/content-groups", &body).await
}

async fn piece(service: &Service, group: &str, slug: &str) -> String {
    service.create("/content-pieces", &piece_in(group, slug)).await
}

/// Asserts that a request is rejected because of the slug of `pieces`, and names them.
fn assert_taken(answer: &TestResponse, issue: &str, slug: &str, variant: Value, pieces: &[&str]) {
    answer.assert_problem(409, "slug_taken", &[issue]);
    let expected = json!([{"slug": slug, "variant": variant, "contentPieceIds": pieces}]);
    assert_eq!(answer.body["duplicates"], expected);
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(pieces.iter().all(|piece| detail.contains(piece)), "{detail}");
}

#[on_both_engines]
async fn no_two_pieces_under_a_group_with_unique_slugs_have_the_same_slug(store: TestStore) {
    let service = Service::start(store).await;
    let root = group(&service, None, true).await;
    let (left, right) =
        (group(&service, Some(&root), false).await, group(&service, Some(&root), false).await);
    let outside = group(&service, None, false).await;
    let first = piece(&service, &left, "a").await;
    let other = piece(&service, &right, "b").await;
    let free = piece(&service, &outside, "a").await;
    piece(&service, &outside, "a").await;
    let after = service.last_sequence().await;
    for target in [&root, &left, &right] {
        let answer = service.post("/content-pieces", &piece_in(target, "a")).await;
        assert_taken(&answer, "slug", "a", Value::Null, &[&first]);
    }
    let dry = service.post("/content-pieces?dryRun=true", &piece_in(&left, "a")).await;
    assert_taken(&dry, "slug", "a", Value::Null, &[&first]);
    let several = json!({"pieces": [piece_in(&left, "new"), piece_in(&right, "b")]});
    let answer = service.post("/content-pieces/batch", &several).await;
    assert_taken(&answer, "pieces[1].slug", "b", Value::Null, &[&other]);
    let twice = json!({"pieces": [piece_in(&left, "new"), piece_in(&right, "new")]});
    let answer = service.post("/content-pieces/batch", &twice).await;
    assert_taken(&answer, "pieces[1].slug", "new", Value::Null, &[]);
    assert!(answer.body["detail"].as_str().unwrap().contains("is the slug of pieces[0]"));
    let answer = service.put("/content-pieces", &json!({"id": other, "slug": "a"})).await;
    assert_taken(&answer, "slug", "a", Value::Null, &[&first]);
    let change = json!({"id": free, "contentGroupId": right});
    let answer = service.put("/content-pieces", &change).await;
    assert_taken(&answer, "contentGroupId", "a", Value::Null, &[&first]);
    assert_eq!(service.last_sequence().await, after, "nothing was changed");
    for change in [
        json!({"id": other, "slug": "b", "title": "Title"}),
        json!({"id": free, "contentGroupId": right, "slug": "c"}),
        json!({"id": other, "contentGroupId": left}),
    ] {
        assert_eq!(service.put("/content-pieces", &change).await.status, 204, "{change}");
    }
    assert_eq!(service.delete(&format!("/content-pieces?id={first}")).await.status, 204);
    piece(&service, &right, "a").await;
}

#[on_both_engines]
async fn the_slugs_that_a_variant_shows_are_compared(store: TestStore) {
    let service = Service::start(store).await;
    for key in ["de", "fr"] {
        service.create("/variants", &json!({"key": key, "label": key})).await;
    }
    let root = group(&service, None, true).await;
    let first = piece(&service, &root, "a").await;
    let second = piece(&service, &root, "b").await;
    let change = async |id: &str, variant: Value, slug: Value| {
        let mut body = json!({"id": id, "slug": slug});
        if !variant.is_null() {
            body["variant"] = variant;
        }
        service.put("/content-pieces", &body).await
    };
    assert_eq!(change(&first, json!("de"), json!("x")).await.status, 204);
    let taken = change(&second, json!("de"), json!("x")).await;
    assert_taken(&taken, "slug", "x", json!("de"), &[&first]);
    assert_eq!(change(&second, json!("fr"), json!("x")).await.status, 204, "another variant");
    // The first piece shows its own slug in French, and its German one only in German.
    let taken = change(&second, json!("fr"), json!("a")).await;
    assert_taken(&taken, "slug", "a", json!("fr"), &[&first]);
    assert_eq!(change(&second, json!("de"), json!("a")).await.status, 204);
    let taken = change(&first, json!("de"), Value::Null).await;
    assert_taken(&taken, "slug", "a", json!("de"), &[&second]);
    // A new piece shows its slug in all variants.
    let answer = service.post("/content-pieces", &piece_in(&root, "x")).await;
    answer.assert_problem(409, "slug_taken", &["slug", "slug"]);
    let duplicates = [("de", &first), ("fr", &second)]
        .map(|(key, piece)| json!({"slug": "x", "variant": key, "contentPieceIds": [piece]}));
    assert_eq!(answer.body["duplicates"], json!(duplicates));
}

#[on_both_engines]
async fn a_group_with_duplicates_gets_no_unique_slugs(store: TestStore) {
    let service = Service::start(store).await;
    let root = group(&service, None, false).await;
    let below = group(&service, Some(&root), false).await;
    let first = piece(&service, &root, "a").await;
    let second = piece(&service, &below, "a").await;
    let third = piece(&service, &below, "b").await;
    let enable = json!({"id": root, "uniqueSlugs": true});
    let answer = service.put("/content-groups", &enable).await;
    answer.assert_problem(409, "slug_taken", &["uniqueSlugs"]);
    let duplicate = &answer.body["duplicates"][0];
    assert_eq!((&duplicate["slug"], &duplicate["variant"]), (&json!("a"), &Value::Null));
    let mut named: Vec<_> = duplicate["contentPieceIds"].as_array().unwrap().clone();
    named.sort_by_key(Value::to_string);
    assert_eq!(named, [json!(first), json!(second)]);
    let shown = async |id: &str| service.get(&format!("/content-groups?id={id}")).await.body;
    assert_eq!(shown(&root).await["uniqueSlugs"], false);
    let change = json!({"id": second, "slug": "c"});
    assert_eq!(service.put("/content-pieces", &change).await.status, 204);
    let after = service.last_sequence().await;
    for _ in 0..2 {
        assert_eq!(service.put("/content-groups", &enable).await.status, 204);
    }
    assert_eq!(shown(&root).await["uniqueSlugs"], true);
    let events = service.events_after(after).await;
    assert_eq!(events.len(), 1, "a repeated change is none: {events:?}");
    assert_eq!(events[0].event_type, "contentGroupChanged");
    // A group moves below it only without duplicates.
    let elsewhere = group(&service, None, true).await;
    let fourth = piece(&service, &elsewhere, "b").await;
    let moves = json!({"id": elsewhere, "ancestor": below});
    let answer = service.put("/content-groups", &moves).await;
    answer.assert_problem(409, "slug_taken", &["ancestor"]);
    let named = answer.body["duplicates"][0]["contentPieceIds"].as_array().unwrap();
    assert!([&third, &fourth].iter().all(|id| named.contains(&json!(id))), "{named:?}");
    assert_eq!(shown(&elsewhere).await["ancestors"], json!([]));
    assert_eq!(service.delete(&format!("/content-pieces?id={third}")).await.status, 204);
    assert_eq!(service.put("/content-groups", &moves).await.status, 204);
    let answer = service.post("/content-pieces", &piece_in(&root, "b")).await;
    assert_taken(&answer, "slug", "b", Value::Null, &[&fourth]);
    let disable = json!({"id": root, "uniqueSlugs": false});
    assert_eq!(service.put("/content-groups", &disable).await.status, 204);
    piece(&service, &root, "b").await;
    let answer = service.post("/content-pieces", &piece_in(&elsewhere, "b")).await;
    assert_taken(&answer, "slug", "b", Value::Null, &[&fourth]);
}

#[on_both_engines]
async fn a_limited_token_does_not_learn_pieces_of_other_groups(store: TestStore) {
    let service = Service::start(store).await;
    let root = group(&service, None, true).await;
    let (mine, hidden) =
        (group(&service, Some(&root), false).await, group(&service, Some(&root), false).await);
    let secret = piece(&service, &hidden, "a").await;
    let token = service.token("all", Some(&[&mine])).await;
    let body = piece_in(&mine, "a");
    let answer = service.send_as(&token, Method::POST, "/content-pieces", Some(&body)).await;
    assert_taken(&answer, "slug", "a", Value::Null, &[]);
    assert!(!answer.body.to_string().contains(&secret), "{answer:?}");
}

#[on_both_engines]
async fn a_token_without_access_to_pieces_does_not_learn_their_slugs(store: TestStore) {
    let service = Service::start(store).await;
    let root = group(&service, None, false).await;
    for _ in 0..2 {
        piece(&service, &root, "confidential").await;
    }
    let token = service.token("contentGroups:write", None).await;
    let enable = json!({"id": root, "uniqueSlugs": true});
    let answer = service.send_as(&token, Method::PUT, "/content-groups", Some(&enable)).await;
    answer.assert_problem(409, "slug_taken", &["uniqueSlugs"]);
    let text = answer.body.to_string();
    assert!(!text.contains("confidential") && !text.contains("cp_"), "{text}");
}

/// Sends requests that race for slugs, on all nodes.
#[on_both_engines]
async fn slugs_stay_unique_under_concurrent_changes(store: TestStore) {
    let service = Service::start(store).await;
    let second = service.start_second_server().await;
    let nodes = [Some(service.url.clone()), second].into_iter().flatten().collect::<Vec<_>>();
    service.create("/variants", &json!({"key": "de", "label": "de"})).await;
    let send = async |number: usize, method: Method, path: &str, body: &Value| {
        let request = service.request_to(&nodes[number % nodes.len()], method, path);
        let request = request.bearer_auth(&service.home.token).json(body);
        TestResponse::of(request).await.status.as_u16()
    };
    let mut conflicts = 0;
    for round in 0..12 {
        let root = group(&service, None, round % 2 == 0).await;
        let (inner, apart) =
            (group(&service, Some(&root), false).await, group(&service, None, false).await);
        let mut pieces = Vec::new();
        for number in 0..6 {
            let target = if number % 2 == 0 { &root } else { &apart };
            pieces.push(piece(&service, target, &format!("own{number}")).await);
        }
        let mut requests: Vec<(Method, &str, Value)> = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let slug = format!("s{}", number % 2);
            requests.extend([
                (Method::POST, "/content-pieces", piece_in(&inner, &slug)),
                (Method::PUT, "/content-pieces", json!({"id": piece, "slug": slug})),
                (
                    Method::PUT,
                    "/content-pieces",
                    json!({"id": piece, "variant": "de", "slug": slug}),
                ),
                (
                    Method::PUT,
                    "/content-pieces",
                    json!({"id": piece, "contentGroupId": root, "slug": slug}),
                ),
            ]);
        }
        // Their autosaves raise events later, with the next change.
        for piece in &pieces {
            let autosave = json!({"id": piece, "title": "autosaved", "autosave": true});
            assert_eq!(service.put("/content-pieces", &autosave).await.status, 204);
            let path = format!("/content-pieces/revisions?id={piece}");
            let revision = service.get(&path).await.column("id").pop();
            let body = json!({"id": piece, "revision": revision});
            requests.push((Method::POST, "/content-pieces/restore", body));
        }
        let several = json!({"pieces": [piece_in(&apart, "s0"), piece_in(&root, "b0")]});
        let more = json!({"pieces": [piece_in(&root, "b1"), piece_in(&root, "b2")]});
        requests.extend([
            (Method::POST, "/content-pieces/batch", several),
            (Method::POST, "/content-pieces/batch", more),
            (Method::PUT, "/content-groups", json!({"id": root, "uniqueSlugs": true})),
            (Method::PUT, "/content-groups", json!({"id": apart, "ancestor": root})),
        ]);
        let sent = requests
            .iter()
            .enumerate()
            .map(|(number, (method, path, body))| send(number, method.clone(), path, body));
        let statuses = join_all(sent).await;
        let known = statuses.iter().all(|status| [201, 204, 409].contains(status));
        assert!(known, "{statuses:?}");
        conflicts += statuses.iter().filter(|status| **status == 409).count();
        let root_group = service.get(&format!("/content-groups?id={root}")).await.body;
        if root_group["uniqueSlugs"] == false {
            continue;
        }
        for variant in ["", "&variant=de"] {
            let path = format!(
                "/content-pieces/list?perPage=100&subtree=true&contentGroupId={root}{variant}"
            );
            let mut counts = BTreeMap::new();
            for slug in service.get(&path).await.column("slug") {
                *counts.entry(slug).or_insert(0) += 1;
            }
            assert!(counts.values().all(|count| *count == 1), "{variant}: {counts:?}");
            assert!(counts.contains_key("b1"), "{counts:?}");
        }
    }
    assert!(conflicts > 0, "no two changes conflicted");
    assert_eq!(service.deadlocks().await, 0);
}
