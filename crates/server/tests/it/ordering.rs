//! Positions of pieces: new ones, moved ones, and many inserts at one position.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_storage::{Tx, order_key_spread};
use galley_testing::reliability_suite::size;
use galley_testing::{TestStore, on_both_engines};
use serde_json::{Value, json};

use crate::service::{Service, piece_in};

async fn slugs(service: &Service, query: &str) -> Vec<String> {
    service.get(&format!("/content-pieces/list?perPage=1000&{query}")).await.column("slug")
}

#[on_both_engines]
async fn pieces_go_last_or_right_after_their_reference(store: TestStore) {
    let service = Service::start(store).await;
    let a = service.create("/content-pieces", &service.piece("a")).await;
    service.create("/content-pieces", &service.piece("d")).await;
    for slug in ["c", "b"] {
        let mut body = service.piece(slug);
        body["referenceId"] = json!(a);
        service.create("/content-pieces", &body).await;
    }
    assert_eq!(slugs(&service, "").await, ["a", "b", "c", "d"]);
    let other = service.create("/content-groups", &json!({"name": "Other"})).await;
    let mut body = piece_in(&other, "x");
    body["referenceId"] = json!(a);
    let answer = service.post("/content-pieces", &body).await;
    answer.assert_problem(400, "unknown_reference", &["referenceId"]);
}

#[on_both_engines]
async fn pieces_move_within_and_between_groups(store: TestStore) {
    let service = Service::start(store).await;
    let mut ids = Vec::new();
    for slug in ["a", "b", "c"] {
        ids.push(service.create("/content-pieces", &service.piece(slug)).await);
    }
    let other = service.create("/content-groups", &json!({"name": "Other"})).await;
    let x = service.create("/content-pieces", &piece_in(&other, "x")).await;
    service.create("/content-pieces", &piece_in(&other, "y")).await;
    let home = format!("contentGroupId={}", service.home.group);
    let there = format!("contentGroupId={other}");
    let put = async |body: Value| {
        let sequence = service.last_sequence().await;
        assert_eq!(service.put("/content-pieces", &body).await.status, 204);
        service.events_after(sequence).await.len()
    };
    assert_eq!(put(json!({"id": ids[2], "referenceId": null})).await, 1);
    assert_eq!(slugs(&service, &home).await, ["c", "a", "b"]);
    assert_eq!(put(json!({"id": ids[2], "referenceId": null})).await, 0, "it is there already");
    assert_eq!(put(json!({"id": ids[2], "referenceId": ids[0]})).await, 1);
    assert_eq!(slugs(&service, &home).await, ["a", "c", "b"]);
    assert_eq!(put(json!({"id": ids[2], "referenceId": ids[0]})).await, 0, "it is there already");
    assert_eq!(put(json!({"id": ids[2], "contentGroupId": service.home.group})).await, 0);
    assert_eq!(put(json!({"id": ids[0], "contentGroupId": other})).await, 1);
    assert_eq!(slugs(&service, &there).await, ["x", "y", "a"]);
    assert_eq!(put(json!({"id": ids[1], "contentGroupId": other, "referenceId": x})).await, 1);
    assert_eq!(slugs(&service, &there).await, ["x", "b", "y", "a"]);
    assert_eq!(put(json!({"id": ids[2], "contentGroupId": other, "referenceId": null})).await, 1);
    assert_eq!(slugs(&service, &there).await, ["c", "x", "b", "y", "a"]);
    assert_eq!(slugs(&service, &home).await, Vec::<String>::new());
    let itself = service.put("/content-pieces", &json!({"id": x, "referenceId": x})).await;
    itself.assert_problem(400, "validation", &["referenceId"]);
    let elsewhere = json!({"id": x, "contentGroupId": service.home.group, "referenceId": ids[0]});
    let answer = service.put("/content-pieces", &elsewhere).await;
    answer.assert_problem(400, "unknown_reference", &["referenceId"]);
}

#[on_both_engines]
async fn an_order_changes_only_when_its_piece_is_moved(store: TestStore) {
    let service = Service::start(store).await;
    let a = service.create("/content-pieces", &service.piece("a")).await;
    let b = service.create("/content-pieces", &service.piece("b")).await;
    let order = async |id: &str| {
        service.get(&format!("/content-pieces?id={id}")).await.body["order"].clone()
    };
    let before = (order(&a).await, order(&b).await);
    for round in 0..50 {
        let mut body = service.piece(&format!("{round}"));
        body["referenceId"] = json!(a);
        service.create("/content-pieces", &body).await;
    }
    service.put("/content-pieces", &json!({"id": a, "title": "other"})).await;
    assert_eq!((order(&a).await, order(&b).await), before);
}

#[on_both_engines]
async fn keys_stay_short_when_two_pieces_swap_repeatedly(store: TestStore) {
    let service = Service::start(store).await;
    let a = service.create("/content-pieces", &service.piece("a")).await;
    let b = service.create("/content-pieces", &service.piece("b")).await;
    for number in 0..20 {
        let mut body = service.piece(&format!("n{number}"));
        body["referenceId"] = json!(b);
        service.create("/content-pieces", &body).await;
    }
    for _ in 0..150 {
        for (moved, reference) in [(&a, &b), (&b, &a)] {
            // Placements are ordered by their time in milliseconds.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            service.put("/content-pieces", &json!({"id": moved, "referenceId": reference})).await;
        }
    }
    let orders = service.get("/content-pieces/list?perPage=100").await.column("order");
    assert!(orders.iter().all(|order| order.len() < 64), "{orders:?}");
}

#[on_both_engines]
async fn long_keys_from_zigzag_inserts_are_spread_out(store: TestStore) {
    let service = Service::start(store).await;
    let tag = service.create("/tags", &json!({"label": "a", "color": "red"})).await;
    let mut before = service.create("/content-pieces", &service.piece("first")).await;
    let mut expected_left = vec!["first".to_owned()];
    let mut expected_right = vec!["last".to_owned()];
    service.create("/content-pieces", &service.piece("last")).await;
    let (mut longest, mut inserted) = (0, 0);
    // Each insert is between the last two pieces. No choice of keys can keep keys short for
    // this pattern.
    for round in 0..700 {
        let slug = format!("z{round}");
        let mut body = service.piece(&slug);
        body["referenceId"] = json!(before);
        body["tags"] = json!([tag]);
        body["customData"] =
            json!(json!({"round": round, "text": "\"customData\":null"}).to_string());
        let id = service.create("/content-pieces", &body).await;
        inserted += 1;
        let piece = service.get(&format!("/content-pieces?id={id}")).await;
        longest = longest.max(piece.body["order"].as_str().unwrap().len());
        if round % 2 == 0 {
            before = id;
            expected_left.push(slug);
        } else {
            expected_right.push(slug);
        }
    }
    expected_right.reverse();
    expected_left.extend(expected_right);
    assert_eq!(slugs(&service, "").await, expected_left);
    assert!(longest < 256, "{longest}");
    let started = Instant::now();
    let pending = async |tx: &Tx<'_>| order_key_spread::pending_spreads(tx, None).await;
    while !service.read(pending).await.is_empty() {
        assert!(started.elapsed() < Duration::from_secs(30), "keys stay long");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let pieces = service.get("/content-pieces/list?perPage=1000").await;
    assert_eq!(pieces.column("slug"), expected_left);
    let tagged = slugs(&service, &format!("tagId={tag}")).await;
    assert_eq!(tagged, expected_left[1..expected_left.len() - 1]);
    let orders = pieces.column("order");
    assert!(orders.windows(2).all(|pair| pair[0] < pair[1]), "bytewise order is list order");
    assert!(orders.iter().all(|order| order.len() <= 64));
    // Each piece matches its last event, including its custom data.
    let events = service.events_after(0).await;
    let sequences: Vec<i64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=sequences.len() as i64).collect::<Vec<_>>());
    let mut last: HashMap<String, Value> = HashMap::new();
    for event in &events {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        last.insert(data["id"].as_str().unwrap().to_owned(), data);
    }
    for piece in pieces.body.as_array().unwrap() {
        assert_eq!(last[piece["id"].as_str().unwrap()], *piece);
    }
    let moved = events.len() - inserted - 2;
    assert!(moved > 0 && moved < inserted * 60, "{moved} moved for {inserted}");
}

#[on_both_engines]
async fn concurrent_inserts_at_one_position_all_succeed(store: TestStore) {
    let service = Arc::new(Service::start(store).await);
    let reference = service.create("/content-pieces", &service.piece("reference")).await;
    service.create("/content-pieces", &service.piece("end")).await;
    let inserts: usize = size(60, 60, 1_000);
    let mut writers = Vec::new();
    for writer in 0..16 {
        let (service, reference) = (Arc::clone(&service), reference.clone());
        writers.push(tokio::spawn(async move {
            for number in 0..inserts {
                let mut body = service.piece(&format!("w{writer}-{number}"));
                body["referenceId"] = json!(reference);
                service.create("/content-pieces", &body).await;
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let mut found = Vec::new();
    let mut orders = Vec::new();
    let mut last = String::new();
    loop {
        let path = format!("/content-pieces/list?perPage=100&lastOrder={last}");
        let page = service.get(&path).await;
        let Some(order) = page.column("order").pop() else { break };
        found.extend(page.column("slug"));
        orders.extend(page.column("order"));
        last = order;
    }
    assert_eq!(found.len(), 16 * inserts + 2, "the walk sees each once");
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
    assert_eq!(orders.iter().collect::<HashSet<_>>().len(), orders.len());
    assert!(orders.iter().all(|order| order.len() < 64));
    assert_eq!(found.first().map(String::as_str), Some("reference"));
    assert_eq!(found.last().map(String::as_str), Some("end"));
    let events = service.events_after(0).await;
    let sequences: Vec<i64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=found.len() as i64).collect::<Vec<_>>(), "events are counted");
}
