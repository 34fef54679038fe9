//! Deliveries that are sent again on request.

use std::time::Duration;

use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    HOUR, add_group, create_group_webhook, deliveries, start, wait_for_attempts, wait_for_statuses,
    wake_dispatcher,
};
use crate::service::TestResponse;

#[on_both_engines]
async fn failed_deliveries_are_recovered(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(500)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    add_group(&service, "old").await;
    wait_for_attempts(&service, &webhook, 1).await;
    service.advance_clock(HOUR);
    let since = service.environment.now();
    for number in 0..3 {
        add_group(&service, &format!("{number}")).await;
    }
    // This repeats until all deliveries have used up their attempts.
    for _ in 0..400 {
        service.advance_clock(HOUR * 2);
        wake_dispatcher(&service, &webhook).await;
        let found = deliveries(&service, &webhook).await;
        if found.iter().all(|one| one["status"] == "failed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        // On a busy machine, five days of the test's clock may have passed.
        service.put("/webhooks", &json!({"id": webhook, "enabled": true})).await;
    }
    wait_for_statuses(&service, &webhook, &["failed"; 4]).await;
    let enabled = json!({"id": webhook, "enabled": true});
    assert_eq!(service.put("/webhooks", &enabled).await.status, 204, "it may have been disabled");
    receiver.set_behaviour(Behaviour::Status(200));
    let answer = service.post("/webhooks/recover", &json!({"id": webhook, "since": since})).await;
    assert_eq!((answer.status.as_u16(), &answer.body["id"]), (202, &json!(webhook)));
    wait_for_statuses(&service, &webhook, &["delivered", "delivered", "delivered", "failed"]).await;
}

#[on_both_engines]
async fn deliveries_that_wait_for_their_next_attempt_are_recovered(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(500)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    let since = service.environment.now();
    add_group(&service, "waiting").await;
    wait_for_attempts(&service, &webhook, 1).await;
    // The second attempt fails as well, and the next one is minutes away.
    service.advance_clock(Duration::from_secs(10));
    wake_dispatcher(&service, &webhook).await;
    wait_for_attempts(&service, &webhook, 2).await;
    let waiting = wait_for_statuses(&service, &webhook, &["pending"]).await;
    assert!(waiting[0]["nextAttemptAt"].as_str() > Some(&service.environment.now().to_string()));
    receiver.set_behaviour(Behaviour::Status(200));
    let answer = service.post("/webhooks/recover", &json!({"id": webhook, "since": since})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    wait_for_statuses(&service, &webhook, &["delivered"]).await;
}

#[on_both_engines]
async fn a_token_cannot_send_deliveries_that_it_does_not_see(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let elsewhere = Receiver::start(Behaviour::Status(200)).await;
    let seen = add_group(&service, "seen").await;
    let hidden = add_group(&service, "hidden").await;
    let limited = service.token("all", Some(&[&seen])).await;
    let of_groups = service.token("webhooks:write webhooks:read contentGroups:read", None).await;
    // Each case has the webhook's first and later filter, a token, the reason of its rejection,
    // and true if the webhook is enabled.
    let mut cases = Vec::new();
    let piece =
        |group: &str| json!({"event": "contentPieceAdded", "metadata": {"contentGroupId": group}});
    for enabled in [true, false] {
        cases.push((piece(&hidden), piece(&seen), limited.clone(), "outside_group_limit", enabled));
        let (of_members, later) =
            (json!({"event": "memberAdded"}), json!({"event": "contentGroupAdded"}));
        cases.push((of_members, later, of_groups.clone(), "insufficient_permissions", enabled));
    }
    let mut webhooks = Vec::new();
    for (first, _, _, _, enabled) in &cases {
        let mut body = first.clone();
        body["url"] = json!(receiver.url);
        body["name"] = json!("w");
        body["enabled"] = json!(enabled);
        webhooks.push(service.create("/webhooks", &body).await);
    }
    service.create("/content-pieces", &crate::service::piece_in(&hidden, "secret")).await;
    let [_, _, viewer] = service.roles();
    service.person("guest", &viewer).await;
    for (webhook, (_, then, token, reason, enabled)) in webhooks.iter().zip(cases) {
        let status = if enabled { "delivered" } else { "held" };
        let delivery = wait_for_statuses(&service, webhook, &[status]).await.remove(0);
        let mut body = then;
        body["id"] = json!(webhook);
        assert_eq!(service.put("/webhooks", &body).await.status, 204);
        let send = async |method, path: &str, body: Value| {
            service.send_as(&token, method, path, Some(&body)).await
        };
        let retry = json!({"id": delivery["id"]});
        send(Method::POST, "/webhooks/deliveries/retry", retry.clone()).await.assert_problem(
            403,
            reason,
            &[],
        );
        if !enabled {
            for change in [
                json!({"url": elsewhere.url, "enabled": true}),
                json!({"enabled": true}),
                json!({"url": elsewhere.url}),
            ] {
                let mut body = change;
                body["id"] = json!(webhook);
                send(Method::PUT, "/webhooks", body).await.assert_problem(403, reason, &[]);
            }
            // Other fields may be changed.
            let named = send(Method::PUT, "/webhooks", json!({"id": webhook, "name": "n"})).await;
            assert_eq!(named.status, 204, "{named:?}");
        }
        // A token that sees everything may do this.
        assert_eq!(service.post("/webhooks/deliveries/retry", &retry).await.status, 202);
    }
    assert_eq!(elsewhere.count(), 0);
}

#[on_both_engines]
async fn repeated_delivery_requests_with_a_key_run_once(store: TestStore) {
    let service = start(store).await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let webhook = create_group_webhook(&service, &receiver).await;
    for name in ["first", "second"] {
        add_group(&service, name).await;
    }
    let found = wait_for_statuses(&service, &webhook, &["delivered"; 2]).await;
    let since = |day| json!({"id": webhook, "since": format!("2026-01-{day}T00:00:00Z")});
    let other = create_group_webhook(&service, &receiver).await;
    // Each case has a request, another one to the same path, and the expected attempts of each
    // delivery.
    let requests = [
        (
            "/webhooks/deliveries/retry",
            json!({"id": found[1]["id"]}),
            json!({"id": found[0]["id"]}),
            vec![1, 2],
        ),
        ("/webhooks/test", json!({"id": webhook}), json!({"id": other}), vec![1, 1, 2]),
        ("/webhooks/recover", since("01"), since("02"), vec![1, 1, 2]),
    ];
    for (path, body, another, attempts) in requests {
        let send = async |body: &Value| {
            let request = service.request(Method::POST, path).bearer_auth(&service.home.token);
            TestResponse::of(request.header("idempotency-key", path).json(body)).await
        };
        // The deliveries have another status while a requested one is pending.
        let check = async || {
            let found =
                wait_for_statuses(&service, &webhook, &vec!["delivered"; attempts.len()]).await;
            let made = |one: &Value| one["attempts"].as_array().unwrap().len();
            assert_eq!(found.iter().map(made).collect::<Vec<_>>(), attempts, "{path}");
        };
        let first = send(&body).await;
        assert_eq!(first.status, 202, "{first:?}");
        check().await;
        for _ in 0..2 {
            let again = send(&body).await;
            assert_eq!((again.status.as_u16(), &again.body), (202, &first.body));
            assert_eq!(again.header("idempotency-replayed"), "true");
            check().await;
        }
        send(&another).await.assert_problem(422, "idempotency_key_reused", &[]);
        check().await;
    }
    assert_eq!(receiver.count(), 4, "two events, one of them again, and a sample");
}
