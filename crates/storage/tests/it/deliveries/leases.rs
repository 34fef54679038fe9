//! Leases, and results of attempts.

use std::sync::Arc;
use std::time::Duration;

use galley_domain::Timestamp;
use galley_domain::delivery::{
    AttemptOutcome, CircuitBreaker, DISABLED_BACKLOG_MAX, DeliveryStatus, DeliveryStep,
};
use galley_domain::webhook::DisabledReason;
use galley_storage::delivery_queue::{self, DeadSession, LockedQueues, ScanPosition};
use galley_storage::{Affects, DatabaseUrl, Error, Tx, WriteTx, webhooks};
use galley_testing::{TestStore, on_both_engines};
use tokio_postgres::NoTls;

use super::{
    FAILED, append_events, check_plans, exchange, expand, gauges, later, lease, lease_request,
    settle, statuses, statuses_of, webhook, write,
};
use crate::store::{NOW, OpenStore};

#[on_both_engines]
async fn deliveries_with_an_earlier_due_time_than_their_queue_are_leased(store: TestStore) {
    let open = OpenStore::new(store).await;
    webhook(&open).await;
    append_events(&open, 3).await;
    expand(&open, 100).await;
    let leased = lease(&open, "a", NOW).await;
    assert_eq!(leased.len(), 2);
    settle(&open, &leased, FAILED, DeliveryStep::Retry(later(7_200_000)), NOW).await;
    let first = lease(&open, "a", NOW).await;
    settle(&open, &first, AttemptOutcome::Accepted, DeliveryStep::Delivered, NOW).await;
    assert_eq!(lease(&open, "a", later(60_000)).await, [], "those that wait are due later");
    // An operator could change the due time by hand like this.
    let hurry = async |tx: &WriteTx<'_>| {
        tx.execute(
            &format!("UPDATE deliveries SET due_at_ms = {}", NOW.ms() - 1_000),
            &[],
            Affects::Everything,
        )
        .await?;
        tx.execute(
            &format!("UPDATE webhook_queues SET next_at_ms = {}", NOW.ms()),
            &[],
            Affects::Everything,
        )
        .await
    };
    write(&open.database, hurry).await;
    let mut found = lease(&open, "a", later(61_000)).await;
    found.extend(lease(&open, "a", later(61_000)).await);
    assert_eq!(found.len(), 2);
}

#[on_both_engines]
async fn concurrent_senders_to_the_same_webhooks_never_deadlock(store: TestStore) {
    const WEBHOOKS: usize = 25;
    const EVENTS: usize = 40;
    const PROGRAMS: usize = 4;
    let DatabaseUrl::Postgres(url) = store.url.clone() else { return };
    let open = Arc::new(OpenStore::new(store).await);
    for _ in 0..WEBHOOKS {
        webhook(&open).await;
    }
    let programs: Vec<_> = (0..PROGRAMS)
        .map(|_| {
            let open = Arc::clone(&open);
            tokio::spawn(async move {
                let (front, mut leased, mut idle) = (Arc::default(), Vec::new(), 0);
                while idle < 20 {
                    leased = exchange(&open, &front, leased, 3, NOW).await;
                    idle = if leased.is_empty() { idle + 1 } else { 0 };
                    tokio::time::sleep(Duration::from_millis(if leased.is_empty() {
                        20
                    } else {
                        1
                    }))
                    .await;
                }
            })
        })
        .collect();
    for _ in 0..EVENTS {
        append_events(&open, 1).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for program in programs {
        program.await.unwrap();
    }
    assert_eq!(
        statuses_of(&open, (WEBHOOKS * EVENTS) as i64).await,
        vec![DeliveryStatus::Delivered; WEBHOOKS * EVENTS]
    );
    assert_eq!(gauges(&open).await.pending, 0);
    open.database.close().await;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[on_both_engines]
async fn deliveries_in_progress_are_not_dropped(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, id) = (open.workspace, webhook(&open).await);
    append_events(&open, 2).await;
    expand(&open, 100).await;
    let leased = lease(&open, "a", NOW).await;
    assert_eq!(leased.len(), 2);
    let disable = async move |tx: &WriteTx<'_>| {
        webhooks::disable(tx, workspace, id, DisabledReason::Failing).await?;
        let sql = format!("UPDATE webhook_queues SET pending = {DISABLED_BACKLOG_MAX}");
        tx.execute(&sql, &[], Affects::Everything).await
    };
    write(&open.database, disable).await;
    append_events(&open, 2).await;
    expand(&open, 100).await;
    assert_eq!(gauges(&open).await.paused, DISABLED_BACKLOG_MAX, "the two new ones went");
    settle(&open, &leased, AttemptOutcome::Accepted, DeliveryStep::Delivered, NOW).await;
    assert_eq!(statuses(&open).await, [DeliveryStatus::Delivered; 2]);
    assert_eq!(gauges(&open).await.paused, DISABLED_BACKLOG_MAX - 2);
}

#[on_both_engines]
async fn results_with_an_expired_lease_are_ignored(store: TestStore) {
    let open = OpenStore::new(store).await;
    webhook(&open).await;
    append_events(&open, 5).await;
    expand(&open, 100).await;
    let mine = lease(&open, "a", NOW).await;
    assert_eq!(mine.len(), 2, "of a receiver that nothing is known of");
    assert_eq!(lease(&open, "a", later(1_000)).await, [], "they are not handed out twice");
    // Another session gets them after the lease has expired, and not before.
    assert_eq!(lease(&open, "b", later(59_000)).await, []);
    let theirs = lease(&open, "b", later(60_000)).await;
    assert_eq!(
        theirs.iter().map(|one| one.id).collect::<Vec<_>>(),
        mine.iter().map(|one| one.id).collect::<Vec<_>>()
    );
    assert_eq!(
        settle(&open, &mine, AttemptOutcome::Accepted, DeliveryStep::Delivered, later(61_000))
            .await,
        0
    );
    assert_eq!(statuses(&open).await, [DeliveryStatus::Pending; 5]);
    assert_eq!(
        settle(&open, &theirs, AttemptOutcome::Accepted, DeliveryStep::Delivered, later(61_000))
            .await,
        2
    );
    assert_eq!(
        settle(&open, &theirs, FAILED, DeliveryStep::Failed, later(61_000)).await,
        0,
        "once"
    );
    let found = statuses(&open).await;
    assert_eq!(found.iter().filter(|&&status| status == DeliveryStatus::Delivered).count(), 2);
    assert_eq!(gauges(&open).await.pending, 3);
    // The receiver's concurrency limit applies to all sessions together.
    append_events(&open, 12).await;
    expand(&open, 100).await;
    assert_eq!(lease(&open, "a", later(62_000)).await.len(), 8);
    assert_eq!(lease(&open, "b", later(63_000)).await, []);
    check_plans(&open).await;
}

#[on_both_engines]
async fn leases_are_released(store: TestStore) {
    let open = OpenStore::new(store).await;
    webhook(&open).await;
    append_events(&open, 2).await;
    expand(&open, 100).await;
    let leased = lease(&open, "a", NOW).await;
    let release = async move |tx: &WriteTx<'_>| delivery_queue::release(tx, &leased, NOW).await;
    write(&open.database, release).await;
    // A worker does not know a lease if its connection ended during the commit.
    let leased = lease(&open, "a", NOW).await;
    for (name, free) in [("another", 0), (leased[0].lease.as_str(), 2)] {
        let name = name.to_owned();
        let release = async move |tx: &WriteTx<'_>| {
            delivery_queue::release_unknown(tx, "a", &name, NOW).await
        };
        write(&open.database, release).await;
        assert_eq!(lease(&open, "a", NOW).await.len(), free);
    }
    // Another session considers session `a` dead. Since then, `a` has written a heartbeat in
    // the first case.
    let seen_at = Timestamp::from_ms(0);
    let dead = DeadSession { session: "a".to_owned(), seen_at, is_gone: true };
    let was_seen = DeadSession { seen_at: Timestamp::from_ms(1), ..dead.clone() };
    for (dead, freed) in [(was_seen, 0), (dead.clone(), 2), (dead, 0)] {
        let bury =
            async move |tx: &WriteTx<'_>| delivery_queue::delete_dead_session(tx, &dead, NOW).await;
        assert_eq!(write(&open.database, bury).await, freed);
    }
    assert_eq!(lease(&open, "b", NOW).await.len(), 2);
    // A session declared dead can no longer lease deliveries.
    let request = lease_request("a", later(60_000));
    let lease_again = async move |tx: &WriteTx<'_>| {
        let front = ScanPosition::default();
        delivery_queue::claim(tx, &mut LockedQueues::default(), &front, &request).await.map(drop)
    };
    let rejected = open.database.write::<_, Error, _>("lease", lease_again).await;
    assert!(rejected.is_err(), "{rejected:?}");
    let close = async |tx: &WriteTx<'_>| delivery_queue::close_session(tx, "b", NOW).await;
    assert_eq!(write(&open.database, close).await, 2);
    let start = async |tx: &WriteTx<'_>| delivery_queue::open_session(tx, "b", "b", NOW).await;
    assert_eq!(write(&open.database, start).await, 0);
    assert_eq!(lease(&open, "b", NOW).await.len(), 2);
    let look =
        async move |tx: &Tx<'_>| delivery_queue::has_work(tx, &ScanPosition::default(), NOW).await;
    assert!(!open.database.read::<_, Error, _>("look", look).await.unwrap());
    check_plans(&open).await;
}

#[on_both_engines]
async fn a_failing_receiver_is_probed(store: TestStore) {
    let open = OpenStore::new(store).await;
    webhook(&open).await;
    append_events(&open, 20).await;
    expand(&open, 100).await;
    let mut now = NOW;
    let mut tried = Vec::new();
    for _ in 0..8 {
        let leased = lease(&open, "a", now).await;
        tried.push(leased.len());
        settle(&open, &leased, FAILED, DeliveryStep::Retry(later(10_000_000)), now).await;
        now = Timestamp::from_ms(now.ms() + 1_000);
    }
    assert_eq!(tried, [2, 1, 1, 1, 0, 0, 0, 0], "after five failures it rests");
    let probe = lease(&open, "a", later(60_000)).await;
    assert_eq!(probe.len(), 1);
    settle(&open, &probe, AttemptOutcome::Accepted, DeliveryStep::Delivered, later(60_000)).await;
    assert_eq!(lease(&open, "a", later(60_001)).await.len(), 2);
    assert_eq!(CircuitBreaker::default().slots, 2);
    check_plans(&open).await;
}
