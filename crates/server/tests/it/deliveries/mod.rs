//! Deliveries from a change to its receiver: content, time and result.

mod recovery;

use std::time::Duration;

use galley_domain::address_policy::AddressPolicy;
use galley_server::{ServerLimits, signature};
use galley_testing::{Behaviour, ReceivedRequest, Receiver, TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

const HOUR: Duration = Duration::from_hours(1);

async fn start(store: TestStore) -> Service {
    let webhook_addresses = AddressPolicy { allowed: Vec::new(), allows_loopback: true };
    Service::start_with(store, ServerLimits { webhook_addresses, ..ServerLimits::default() }).await
}

/// Creates a webhook for added groups.
async fn create_group_webhook(service: &Service, receiver: &Receiver) -> String {
    let body = json!({"url": receiver.url, "name": "w", "event": "contentGroupAdded"});
    service.create("/webhooks", &body).await
}

async fn add_group(service: &Service, name: &str) -> String {
    service.create("/content-groups", &json!({"name": name})).await
}

/// Returns the deliveries of a webhook, latest first.
async fn deliveries(service: &Service, webhook: &str) -> Vec<Value> {
    let answer =
        service.get(&format!("/webhooks/deliveries?webhookId={webhook}&perPage=100")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body.as_array().expect("a list").clone()
}

/// Waits until the webhook's deliveries, latest first, have these statuses.
async fn wait_for_statuses(service: &Service, webhook: &str, expected: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    for _ in 0..3_000 {
        found = deliveries(service, webhook).await;
        let statuses: Vec<_> = found.iter().map(|one| one["status"].as_str().unwrap()).collect();
        if statuses == expected {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{expected:?} never came, last there was {found:#?}");
}

/// Makes the dispatcher check the webhook's queue, as it does not notice that the test's clock has
/// advanced.
async fn wake_dispatcher(service: &Service, webhook: &str) {
    let description = service.environment.new_id().to_string();
    let answer =
        service.put("/webhooks", &json!({"id": webhook, "description": description})).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

/// Waits until the latest delivery has `count` attempts.
async fn wait_for_attempts(service: &Service, webhook: &str, count: usize) -> Value {
    let mut found = Vec::new();
    for _ in 0..3_000 {
        found = deliveries(service, webhook).await;
        if found.first().is_some_and(|one| one["attempts"].as_array().unwrap().len() >= count) {
            return found.swap_remove(0);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{count} attempts were never made, last there was {found:#?}");
}

fn names(received: &[ReceivedRequest]) -> Vec<String> {
    received.iter().map(|one| one.json()["data"]["name"].as_str().unwrap().to_owned()).collect()
}

#[on_both_engines]
async fn a_change_is_delivered_with_a_signature(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let body = json!({"url": receiver.url, "name": "w", "event": "contentGroupAdded",
        "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"});
    let webhook = service.create("/webhooks", &body).await;
    let before = service.last_sequence().await;
    let group = add_group(&service, "News").await;
    let received = receiver.wait_for(1).await.remove(0);
    let envelope = received.json();
    let shown = service.get(&format!("/content-groups?id={group}")).await.body;
    assert_eq!(envelope["type"], "contentGroupAdded");
    assert_eq!(envelope["data"], shown);
    assert_eq!(envelope["sequence"], before + 1);
    assert_eq!(envelope["webhookId"], webhook);
    assert_eq!(envelope["workspaceId"], service.home.made.workspace.to_string());
    assert_eq!(envelope.get("test"), None);
    let event = &service.events_after(before).await[0];
    assert_eq!(received.field("webhook-id"), event.id.to_string());
    assert_eq!(envelope["timestamp"], event.created_at.to_string());
    let time: i64 = received.field("webhook-timestamp").parse().unwrap();
    assert!((service.environment.now().ms() / 1_000 - time).abs() < 60, "{time}");
    let key =
        galley_domain::webhook::WebhookSecret::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
            .unwrap()
            .key();
    let (id, sent) = (received.field("webhook-id"), received.field("webhook-signature"));
    assert!(signature::is_signed(&key, id, time, &received.body, sent), "{sent}");
    let delivery = wait_for_statuses(&service, &webhook, &["delivered"]).await.remove(0);
    assert_eq!(delivery["eventId"], received.field("webhook-id"));
    assert_eq!(delivery["attempts"][0]["status"], 200);
    assert_eq!(delivery["attempts"][0]["answer"], Value::Null, "loopback is an exception");
    assert_eq!(delivery["nextAttemptAt"], Value::Null);
}

#[on_both_engines]
async fn one_webhook_receives_all_its_events(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let body = json!({"url": receiver.url, "name": "w", "event": "tagChanged",
        "events": ["tagChanged", "contentPieceAdded"], "wholeWorkspace": true});
    let webhook = service.create("/webhooks", &body).await;
    add_group(&service, "not sent").await;
    service.create("/tags", &json!({"label": "News"})).await;
    service.create("/content-pieces", &service.piece("Hello")).await;
    let received = receiver.wait_for(2).await;
    let types: Vec<_> = received.iter().map(|one| one.json()["type"].clone()).collect();
    assert!(types.contains(&json!("tagChanged")), "{types:?}");
    assert!(types.contains(&json!("contentPieceAdded")), "{types:?}");
    // Deliveries are created in the order of events, so one of the group would be listed.
    wait_for_statuses(&service, &webhook, &["delivered", "delivered"]).await;
}

#[on_both_engines]
async fn a_deleted_group_ends_all_events_of_its_webhook(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let group = add_group(&service, "watched").await;
    let body = json!({"url": receiver.url, "name": "w", "event": "contentGroupRemoved",
        "events": ["contentGroupRemoved", "tagChanged"], "metadata": {"contentGroupId": group}});
    let webhook = service.create("/webhooks", &body).await;
    service.create("/tags", &json!({"label": "sent"})).await;
    assert_eq!(service.delete(&format!("/content-groups?id={group}")).await.status, 204);
    service.create("/tags", &json!({"label": "not sent"})).await;
    // A later event of another webhook shows that the tag's event was matched before.
    let other = Receiver::start(Behaviour::Status(200)).await;
    create_group_webhook(&service, &other).await;
    add_group(&service, "other").await;
    other.wait_for(1).await;
    let listed = wait_for_statuses(&service, &webhook, &["delivered", "delivered"]).await;
    let types: Vec<_> = listed.iter().map(|one| &one["event"]).collect();
    assert_eq!(types, ["contentGroupRemoved", "tagChanged"]);
    let shown = service.get(&format!("/webhooks?id={webhook}")).await.body;
    assert_eq!(
        (&shown["enabled"], &shown["disabledReason"]),
        (&json!(false), &json!("group_deleted"))
    );
}

#[on_both_engines]
async fn both_secrets_sign_for_a_day_after_a_rotation(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let body = json!({"url": receiver.url, "name": "w", "event": "contentGroupAdded",
        "secret": "first"});
    let webhook = service.create("/webhooks", &body).await;
    let sent = async |count: usize| {
        add_group(&service, "News").await;
        let received = receiver.wait_for(count).await.swap_remove(count - 1);
        // A delivery without a recorded result would be repeated after the clock is advanced.
        wait_for_statuses(&service, &webhook, &vec!["delivered"; count]).await;
        let time: i64 = received.field("webhook-timestamp").parse().unwrap();
        let (id, signatures) = (received.field("webhook-id"), received.field("webhook-signature"));
        ["first", "second", "third"].map(|secret| {
            signature::is_signed(secret.as_bytes(), id, time, &received.body, signatures)
        })
    };
    let rotate = async |secret: &str| {
        let body = json!({"id": webhook, "secret": secret});
        assert_eq!(service.post("/webhooks/rotate-secret", &body).await.status, 204);
    };
    assert_eq!(sent(1).await, [true, false, false]);
    rotate("second").await;
    assert_eq!(sent(2).await, [true, true, false]);
    // A repeated request keeps the previous secret.
    rotate("second").await;
    assert_eq!(sent(3).await, [true, true, false]);
    service.advance_clock(HOUR * 23);
    assert_eq!(sent(4).await, [true, true, false]);
    service.advance_clock(HOUR);
    assert_eq!(sent(5).await, [false, true, false]);
    let third = json!({"id": webhook, "secret": "third"});
    let rotate_once = async || {
        let request = service.request(Method::POST, "/webhooks/rotate-secret");
        let request = request.bearer_auth(&service.home.token).header("idempotency-key", "k");
        TestResponse::of(request.json(&third)).await
    };
    assert_eq!(rotate_once().await.status, 204);
    assert_eq!(sent(6).await, [false, true, true]);
    // A late repeat with a key does not bring back an older secret.
    rotate("fourth").await;
    let repeated = rotate_once().await;
    assert_eq!((repeated.status.as_u16(), repeated.header("idempotency-replayed")), (204, "true"));
    rotate("fourth").await;
    assert_eq!(sent(7).await, [false, false, true]);
}

#[on_both_engines]
async fn failed_deliveries_are_retried_on_schedule(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(500)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    add_group(&service, "News").await;
    // Its sample is sent after the queue of the first webhook was scanned.
    let other = Receiver::start(Behaviour::Status(200)).await;
    let barrier = create_group_webhook(&service, &other).await;
    let mut due = 0;
    let pauses = [1, 5, 30, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (made, pause) in (1..).zip(pauses) {
        let delivery = wait_for_attempts(&service, &webhook, made).await;
        assert_eq!(delivery["status"], "pending", "{delivery}");
        let ms = |value: &Value| {
            let text = value.as_str().expect("a time");
            galley_domain::Timestamp::parse_iso8601(text).unwrap().ms()
        };
        let started = ms(&delivery["attempts"][made - 1]["startedAt"]);
        assert!(started >= due, "{made}: {started} is before {due}");
        due = ms(&delivery["nextAttemptAt"]);
        let waits = ms(&delivery["nextAttemptAt"]) - started;
        assert!((pause * 1_000..pause * 1_100 + 30_000).contains(&waits), "{made}: {waits}");
        // No attempt is early, even if the queue is checked. The clock also advances by itself, so
        // this leaves out the shortest pause.
        if pause > 1 {
            service.advance_clock(Duration::from_millis(pause.cast_unsigned() * 1_000 - 1_000));
            wake_dispatcher(&service, &webhook).await;
            let samples = other.count();
            service.post("/webhooks/test", &json!({"id": barrier})).await;
            other.wait_for(samples + 1).await;
            assert_eq!(receiver.count(), made, "early");
        }
        service.advance_clock(Duration::from_millis(pause.cast_unsigned() * 100 + 31_000));
        wake_dispatcher(&service, &webhook).await;
    }
    let delivery = wait_for_attempts(&service, &webhook, 12).await;
    let failed = wait_for_statuses(&service, &webhook, &["failed"]).await;
    assert_eq!(delivery["id"], failed[0]["id"]);
    let shown = service.get(&format!("/webhooks?id={webhook}")).await.body;
    assert_ne!(shown["failingSince"], Value::Null);
    receiver.set_behaviour(Behaviour::Status(200));
    let answer = service.post("/webhooks/deliveries/retry", &json!({"id": delivery["id"]})).await;
    assert_eq!((answer.status.as_u16(), &answer.body["id"]), (202, &delivery["id"]));
    wait_for_statuses(&service, &webhook, &["delivered"]).await;
    assert_eq!(receiver.count(), 13);
    let shown = service.get(&format!("/webhooks?id={webhook}")).await.body;
    assert_eq!(shown["failingSince"], Value::Null);
}

#[on_both_engines]
async fn status_410_disables_the_webhook(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(410)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    add_group(&service, "first").await;
    wait_for_statuses(&service, &webhook, &["held"]).await;
    let shown = service.get(&format!("/webhooks?id={webhook}")).await.body;
    assert_eq!((&shown["enabled"], &shown["disabledReason"]), (&json!(false), &json!("gone")));
    add_group(&service, "second").await;
    wait_for_statuses(&service, &webhook, &["held", "held"]).await;
    service.advance_clock(HOUR * 24);
    assert_eq!(receiver.count(), 1);
    // Held deliveries are sent when the webhook is enabled.
    receiver.set_behaviour(Behaviour::Status(200));
    service.put("/webhooks", &json!({"id": webhook, "enabled": true})).await;
    wait_for_statuses(&service, &webhook, &["delivered", "delivered"]).await;
    assert_eq!(names(&receiver.received()[1..]).len(), 2);
}

#[on_both_engines]
async fn five_days_without_success_disable_the_webhook(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(500)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    for day in 0..5 {
        add_group(&service, &format!("{day}")).await;
        for _ in 0..11 {
            service.advance_clock(HOUR * 2);
            wake_dispatcher(&service, &webhook).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let shown = service.get(&format!("/webhooks?id={webhook}")).await.body;
        assert_eq!(shown["enabled"], true, "day {day}");
    }
    add_group(&service, "last").await;
    let mut shown = Value::Null;
    for _ in 0..1_000 {
        shown = service.get(&format!("/webhooks?id={webhook}")).await.body;
        if shown["enabled"] == false {
            break;
        }
        service.advance_clock(HOUR);
        wake_dispatcher(&service, &webhook).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(shown["disabledReason"], "failing");
    let mails = service
        .read(async |tx: &galley_storage::Tx<'_>| {
            tx.query("SELECT kind, recipient FROM mails", &[], |row| {
                Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
            })
            .await
        })
        .await;
    assert_eq!(mails, [("webhook_disabled".to_owned(), "home@example.org".to_owned())]);
}

#[on_both_engines]
async fn concurrent_updates_do_not_enable_a_disabled_webhook(store: TestStore) {
    let service = std::sync::Arc::new(start(store).await);
    let receiver = Receiver::start(Behaviour::Status(410)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    for round in 0..10 {
        service.put("/webhooks", &json!({"id": webhook, "enabled": true})).await;
        add_group(&service, &format!("{round}")).await;
        let path = format!("/webhooks?id={webhook}");
        let nudges = async || {
            for _ in 0..2_000 {
                if service.get(&path).await.body["enabled"] == false {
                    return;
                }
                wake_dispatcher(&service, &webhook).await;
            }
            panic!("it was enabled again");
        };
        tokio::join!(nudges(), nudges(), nudges(), nudges());
        let found = service.get(&path).await.body;
        assert_eq!((&found["enabled"], &found["disabledReason"]), (&json!(false), &json!("gone")));
    }
}

#[on_both_engines]
async fn a_disabled_webhook_receives_only_samples(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    service.put("/webhooks", &json!({"id": webhook, "enabled": false})).await;
    add_group(&service, "News").await;
    wait_for_statuses(&service, &webhook, &["held"]).await;
    let answer = service.post("/webhooks/test", &json!({"id": webhook})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let received = receiver.wait_for(1).await.remove(0);
    let envelope = received.json();
    assert_eq!((&envelope["test"], &envelope["sequence"]), (&json!(true), &json!(0)));
    assert_eq!(envelope["type"], "contentGroupAdded");
    let found = wait_for_statuses(&service, &webhook, &["delivered", "held"]).await;
    assert_eq!(found[0]["id"], answer.body["id"]);
    assert_eq!(found[0]["test"], true);
    // A sample is sent once, regardless of the result.
    receiver.set_behaviour(Behaviour::Status(500));
    service.post("/webhooks/test", &json!({"id": webhook})).await;
    wait_for_statuses(&service, &webhook, &["failed", "delivered", "held"]).await;
}

#[on_both_engines]
async fn events_are_delivered_as_seen_in_scope(store: TestStore) {
    let service = start(store).await;
    let [outer, other] = [add_group(&service, "outer").await, add_group(&service, "other").await];
    let inner =
        service.create("/content-groups", &json!({"name": "inner", "ancestor": outer})).await;
    let mut receivers = Vec::new();
    for (group, event) in [
        (&outer, "contentPieceAdded"),
        (&outer, "contentPieceUpdated"),
        (&outer, "contentPieceRemoved"),
        (&other, "contentPieceAdded"),
        (&other, "contentPieceUpdated"),
        (&other, "contentPieceRemoved"),
    ] {
        let receiver = Receiver::start(Behaviour::Status(200)).await;
        let body = json!({"url": receiver.url, "name": "w", "event": event, "metadata": {"contentGroupId": group}});
        service.create("/webhooks", &body).await;
        receivers.push(receiver);
    }
    let counts = || receivers.iter().map(Receiver::count).collect::<Vec<_>>();
    let reach = async |expected: [usize; 6]| {
        for (receiver, count) in receivers.iter().zip(expected) {
            receiver.wait_for(count).await;
        }
        assert_eq!(counts(), expected);
    };
    let body = crate::service::piece_in(&inner, "a");
    let piece = service.create("/content-pieces", &body).await;
    reach([1, 0, 0, 0, 0, 0]).await;
    service.put("/content-pieces", &json!({"id": piece, "title": "New"})).await;
    reach([1, 1, 0, 0, 0, 0]).await;
    service.put("/content-pieces", &json!({"id": piece, "contentGroupId": outer})).await;
    reach([1, 2, 0, 0, 0, 0]).await;
    service.put("/content-pieces", &json!({"id": piece, "contentGroupId": other})).await;
    reach([1, 2, 1, 1, 0, 0]).await;
    let removed = receivers[2].received().remove(0).json();
    assert_eq!(removed["data"]["contentGroupId"], outer, "as it was before it left");
    let added = receivers[3].received().remove(0).json();
    assert_eq!(added["data"]["contentGroupId"], other);
    assert_eq!(removed["sequence"], added["sequence"], "it is one event");
    let [first, second] = [&receivers[2], &receivers[3]].map(|one| one.received().remove(0));
    assert_eq!(first.field("webhook-id"), second.field("webhook-id"));
    service.delete(&format!("/content-pieces?id={piece}")).await;
    reach([1, 2, 1, 1, 0, 1]).await;
}

#[on_both_engines]
async fn events_of_a_group_deletion_are_delivered_before_its_webhook_is_disabled(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let group = add_group(&service, "doomed").await;
    for slug in ["a", "b"] {
        service.create("/content-pieces", &crate::service::piece_in(&group, slug)).await;
    }
    let body = json!({"url": receiver.url, "name": "w", "event": "contentPieceRemoved", "metadata": {"contentGroupId": group}});
    let webhook = service.create("/webhooks", &body).await;
    service.delete(&format!("/content-groups?id={group}&recursive=true")).await;
    receiver.wait_for(2).await;
    wait_for_statuses(&service, &webhook, &["delivered", "delivered"]).await;
    let shown = service.get(&format!("/webhooks?id={webhook}")).await.body;
    assert_eq!(shown["disabledReason"], "group_deleted");
}

#[on_both_engines]
async fn a_dead_receiver_delays_no_other_and_gets_few_attempts(store: TestStore) {
    let service = start(store).await;
    let dead = Receiver::start(Behaviour::Stall).await;
    let failing = Receiver::start(Behaviour::Status(500)).await;
    let healthy = Receiver::start(Behaviour::Status(200)).await;
    for receiver in [&dead, &failing, &healthy] {
        create_group_webhook(&service, receiver).await;
    }
    for number in 0..40 {
        add_group(&service, &format!("{number}")).await;
    }
    let received = healthy.wait_for(40).await;
    let mut all = names(&received);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 40, "each once");
    assert!(dead.count() <= 2, "{} to a receiver that nothing is known of", dead.count());
    assert!(failing.count() <= 8, "{} to one that fails", failing.count());
    assert!(healthy.concurrent_requests_max() <= 8, "{}", healthy.concurrent_requests_max());
}

#[on_both_engines]
async fn a_deleted_webhook_gets_no_deliveries(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(500)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    add_group(&service, "News").await;
    wait_for_attempts(&service, &webhook, 1).await;
    service.delete(&format!("/webhooks?id={webhook}")).await;
    service.advance_clock(HOUR);
    add_group(&service, "Later").await;
    let answer = service.get(&format!("/webhooks/deliveries?webhookId={webhook}")).await;
    answer.assert_problem(404, "not_found", &[]);
    assert_eq!(service.get("/webhooks/deliveries").await.body, json!([]));
    assert_eq!(receiver.count(), 1);
}
