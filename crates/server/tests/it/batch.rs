//! Batches of pieces: all pieces are created in their order, or none.

use futures_util::future::join_all;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

const BATCH: &str = "/content-pieces/batch";

fn slugs(pieces: &Value) -> Vec<&str> {
    pieces.as_array().unwrap().iter().map(|piece| piece["slug"].as_str().unwrap()).collect()
}

#[on_both_engines]
async fn a_batch_is_created_in_its_order(store: TestStore) {
    let service = Service::start(store).await;
    let first = service.create("/content-pieces", &service.piece("first")).await;
    service.create("/content-pieces", &service.piece("last")).await;
    let mut pieces: Vec<Value> =
        (0..100).map(|number| service.piece(&format!("b{number:03}"))).collect();
    pieces[0]["content"] = json!("<p>One</p>");
    // Custom data keeps its key order.
    pieces[2]["customData"] = json!({"b": 1.50, "a": [1, {"x": "\u{e9}"}]});
    pieces[99]["referenceId"] = json!(first);
    let answer = service.post(BATCH, &json!({"pieces": pieces})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.body["pieces"].as_array().unwrap().clone();
    assert_eq!(made.len(), 100);
    let list = service.get("/content-pieces/list?perPage=1000").await.body;
    let mut expected = vec!["first".to_owned(), "b099".to_owned(), "last".to_owned()];
    expected.extend((0..99).map(|number| format!("b{number:03}")));
    assert_eq!(slugs(&list), expected);
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|piece| &piece["id"]).collect();
    for (number, one) in made.iter().take(99).enumerate() {
        assert_eq!(ids[number + 3], &one["id"], "answered in the order of the request");
    }
    let path = format!(
        "/content-pieces?id={}&content=true&contentFormat=html",
        made[0]["id"].as_str().unwrap()
    );
    assert_eq!(service.get(&path).await.body["content"], "<p>One</p>");
    assert_eq!(list[5]["customData"], "{\"b\":1.5,\"a\":[1,{\"x\":\"\u{e9}\"}]}");
    let events = service.get("/events?perPage=1000").await.body;
    let added = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "contentPieceAdded")
        .count();
    assert_eq!(added, 102);
}

#[on_both_engines]
async fn an_invalid_piece_rejects_the_whole_batch(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let before = service.workspace_state().await;
    for (field, value) in
        [("title", json!("")), ("tags", json!(["tag_x"])), ("contentGroupId", json!(other.group))]
    {
        let mut bad = service.piece("bad");
        bad[field] = value;
        let body = json!({"pieces": [service.piece("good"), bad]});
        let answer = service.post(BATCH, &body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        let path = answer.body["issues"][0]["path"].clone();
        assert_eq!([&path[0], &path[1], &path[2]], [&json!("pieces"), &json!(1), &json!(field)]);
        let message = answer.body["issues"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("pieces[1].{field}")), "{message}");
    }
    assert_eq!(service.workspace_state().await, before);
}

#[on_both_engines]
async fn a_repeated_batch_is_created_once(store: TestStore) {
    let service = Service::start(store).await;
    let body = json!({"pieces": [service.piece("a"), service.piece("b")]});
    let send = async || {
        let request = service.request(Method::POST, BATCH).bearer_auth(&service.home.token);
        TestResponse::of(request.header("idempotency-key", "k").json(&body)).await
    };
    let answers = join_all((0..6).map(|_| send())).await;
    for answer in &answers {
        assert_eq!(answer.body, answers[0].body);
    }
    assert_eq!(slugs(&service.get("/content-pieces/list").await.body), ["a", "b"]);
}

#[on_both_engines]
async fn concurrent_batches_are_not_interleaved(store: TestStore) {
    let service = Service::start(store).await;
    let batch = |name: usize| json!({"pieces": (0..20).map(|number| service.piece(&format!("{name}-{number:02}"))).collect::<Vec<_>>()});
    let answers = join_all((0..6).map(async |name| service.post(BATCH, &batch(name)).await)).await;
    assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
    let list = service.get("/content-pieces/list?perPage=1000").await.body;
    let slugs = slugs(&list);
    assert_eq!(slugs.len(), 120);
    for name in 0..6 {
        let own: Vec<_> =
            slugs.iter().filter(|slug| slug.starts_with(&format!("{name}-"))).collect();
        assert!(own.len() == 20 && own.is_sorted(), "{own:?}");
    }
}
