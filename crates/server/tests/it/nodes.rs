//! Several servers of one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use galley_domain::Timestamp;
use galley_server::{Clock, DatabaseClock, SystemClock};
use galley_storage::{Error, WriteTx};
use galley_testing::on_both_engines;
use reqwest::Method;

use crate::service::{Answer, Service};

/// That of a machine whose clock nobody looks after.
#[derive(Debug)]
struct WrongClock {
    ahead_ms: AtomicI64,
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(SystemClock.now().ms() + self.ahead_ms.load(Ordering::Relaxed))
    }
}

on_both_engines! {
    async fn servers_go_by_the_clock_of_a_database_that_they_share(store: TestStore) {
        const HOUR: i64 = 3_600_000;
        let service = Service::start(store).await;
        let is_shared = service.another_server().await.is_some();
        for ahead_ms in [-HOUR, HOUR] {
            let own = Arc::new(WrongClock { ahead_ms: AtomicI64::new(ahead_ms) });
            let follow = DatabaseClock::follow(&service.database, Arc::clone(&own) as Arc<dyn Clock>);
            let clock = follow.await.unwrap();
            let off = || clock.now().ms() - SystemClock.now().ms();
            // PostgreSQL is on this machine, and goes by its clock.
            let expected = if is_shared { 0 } else { ahead_ms };
            assert!((off() - expected).abs() < HOUR / 2, "{} ms off", off());
            // Somebody sets the machine's clock right.
            own.ahead_ms.store(0, Ordering::Relaxed);
            let started = Instant::now();
            while off().abs() > HOUR / 2 {
                assert!(started.elapsed() < Duration::from_mins(1), "it is not followed");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    async fn a_server_whose_database_is_too_new_by_now_is_not_to_be_asked(store: TestStore) {
        let service = Service::start(store).await;
        let ready = async || Answer::of(service.request(Method::GET, "/readyz")).await;
        for (version, oldest_program) in [(998, "0.1.0"), (999, "99.0.0")] {
            assert_eq!(ready().await.status, 200);
            let change = async move |tx: &WriteTx<'_>| {
                let sql = format!(
                    "INSERT INTO schema_migrations (version, name, checksum, oldest_program, applied_at_ms)
                     VALUES ({version}, 'of a newer program', 'x', '{oldest_program}', 0)"
                );
                tx.execute(&sql, &[]).await
            };
            service.database.write::<_, Error, _>("change", change).await.unwrap();
        }
        let answer = ready().await;
        answer.assert_problem(503, "not_ready", &[]);
        assert!(answer.body["detail"].as_str().unwrap().contains("99.0.0"), "{answer:?}");
        // Whoever asks all the same is answered.
        assert_eq!(service.get("/tags/list").await.status, 200);
    }
}
