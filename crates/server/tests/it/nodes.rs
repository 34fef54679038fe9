//! Several servers on one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use galley_application::{Clock, DatabaseClock, SystemClock};
use galley_domain::Timestamp;
use galley_storage::{Affects, Error, WriteTx};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use crate::service::{Service, TestResponse};

/// The clock of a machine without time synchronization.
#[derive(Debug)]
struct WrongClock {
    ahead_ms: AtomicI64,
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(SystemClock.now().ms() + self.ahead_ms.load(Ordering::Relaxed))
    }
}

#[on_both_engines]
async fn servers_use_the_clock_of_a_shared_database(store: TestStore) {
    const HOUR: i64 = 3_600_000;
    let service = Service::start(store).await;
    let is_shared = service.start_second_server().await.is_some();
    for ahead_ms in [-HOUR, HOUR] {
        let own = Arc::new(WrongClock { ahead_ms: AtomicI64::new(ahead_ms) });
        let follow = DatabaseClock::follow(&service.database, Arc::clone(&own) as Arc<dyn Clock>);
        let clock = follow.await.unwrap();
        let off = || clock.now().ms() - SystemClock.now().ms();
        // PostgreSQL runs on this machine and uses its clock.
        let expected = if is_shared { 0 } else { ahead_ms };
        assert!((off() - expected).abs() < HOUR / 2, "{} ms off", off());
        // The machine's clock is corrected.
        own.ahead_ms.store(0, Ordering::Relaxed);
        let started = Instant::now();
        while off().abs() > HOUR / 2 {
            assert!(started.elapsed() < Duration::from_mins(1), "it is not followed");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[on_both_engines]
async fn a_server_with_a_too_new_database_is_not_ready(store: TestStore) {
    let service = Service::start(store).await;
    let ready = async || TestResponse::of(service.request(Method::GET, "/readyz")).await;
    for (version, oldest_program) in [(998, "0.1.0"), (999, "99.0.0")] {
        assert_eq!(ready().await.status, 200);
        let change = async move |tx: &WriteTx<'_>| {
            let sql = format!(
                "INSERT INTO schema_migrations (version, name, checksum, oldest_program, applied_at_ms)
                 VALUES ({version}, 'of a newer program', 'x', '{oldest_program}', 0)"
            );
            tx.execute(&sql, &[], Affects::Everything).await
        };
        service.database.write::<_, Error, _>("change", change).await.unwrap();
    }
    let answer = ready().await;
    answer.assert_problem(503, "not_ready", &[]);
    assert!(answer.body["detail"].as_str().unwrap().contains("99.0.0"), "{answer:?}");
    // The server still responds to requests.
    assert_eq!(service.get("/tags/list").await.status, 200);
}

#[on_both_engines]
async fn a_change_by_one_server_is_visible_to_the_next_request_on_another(store: TestStore) {
    let service = Service::start(store).await;
    let Some(another) = service.start_second_server().await else { return };
    let ask = async |token: &str, path: &str| {
        TestResponse::of(service.request_to(&another, Method::GET, path).bearer_auth(token)).await
    };
    let piece = service.create("/content-pieces", &service.piece("a")).await;
    let path = format!("/content-pieces?id={piece}");
    let role = json!({"name": "Reader", "permissions": ["contentPieces:read"]});
    let role = service.create("/roles", &role).await;
    let person = service.person("Ada", &role).await;
    for number in 0..20 {
        let token = service.token("contentPieces:read", None).await;
        for token in [&token, &person.token] {
            // Responses are cached from the second request on.
            for _ in 0..3 {
                assert_eq!(ask(token, &path).await.status, 200);
            }
        }
        let title = format!("{number}");
        assert_eq!(
            service.put("/content-pieces", &json!({"id": piece, "title": title})).await.status,
            204
        );
        assert_eq!(ask(&token, &path).await.body["title"], json!(title));

        let revoked = format!("/tokens?id={}", service.token_id(&token).await);
        assert_eq!(service.delete(&revoked).await.status, 204);
        assert_eq!(ask(&token, &path).await.status, 401);

        for (permissions, status) in [("tags:read", 403), ("contentPieces:read", 200)] {
            let change = json!({"id": role, "permissions": [permissions]});
            assert_eq!(service.put("/roles", &change).await.status, 204);
            assert_eq!(ask(&person.token, &path).await.status, status);
        }
    }
    let member = format!("/workspace-memberships?id={}", person.member);
    assert_eq!(service.delete(&member).await.status, 204);
    assert_eq!(ask(&person.token, &path).await.status, 401);
}
