//! Fan-out of events to deliveries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_domain::content_group::GroupPath;
use galley_domain::delivery::{AttemptOutcome, DeliveryStep};
use galley_domain::event::{EventType, ResourceChange};
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, DeliveryId, EventId};
use galley_storage::delivery_queue::{self, ClaimedDelivery, LockedQueues, ScanPosition};
use galley_storage::event_append::{self, NewEvent};
use galley_storage::{Affects, DatabaseUrl, Error, Tx, WriteTx};
use galley_testing::{TestStore, on_both_engines};
use tokio_postgres::NoTls;

use super::{
    append_events, append_events_with_ids, check_plans, exchange, expand, gauges, later, lease,
    settle, webhook, webhook_for, write,
};
use crate::store::{NOW, OpenStore, id};

/// Returns the number of entries read from each index of these tables.
async fn index_reads(open: &OpenStore, url: &str, tables: &[&str]) -> Vec<(String, i64)> {
    // PostgreSQL adds a connection's reads to the statistics when the connection ends.
    open.database.close().await;
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let others = "SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'galley'";
    let started = Instant::now();
    while !client.query(others, &[]).await.unwrap().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(30), "connections stay");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let sql = "SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE relname = ANY($1)";
    let rows = client.query(sql, &[&tables]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[on_both_engines]
async fn events_become_deliveries_in_slices(store: TestStore) {
    let open = OpenStore::new(store).await;
    for _ in 0..30 {
        webhook(&open).await;
    }
    append_events(&open, 5).await;
    append_events(&open, 1).await;
    assert_eq!(open.count("event_matches").await, 2, "five events in a row are one run");
    let mut made = Vec::new();
    while expand(&open, 7).await {
        made.push(open.count("deliveries").await);
    }
    assert!(made.windows(2).all(|two| two[1] - two[0] <= 30), "an event at a time: {made:?}");
    assert!(made.len() >= 5, "{made:?}");
    assert_eq!(open.count("deliveries").await, 180);
    assert_eq!(open.count("event_matches").await, 0);
    assert_eq!(open.count("(SELECT DISTINCT webhook_id, event_id FROM deliveries) d").await, 180);
    assert_eq!(gauges(&open).await.pending, 180);
    check_plans(&open).await;
}

#[on_both_engines]
async fn webhooks_of_a_group_receive_events_that_follow_thousands_of_other_groups(
    store: TestStore,
) {
    let open = OpenStore::new(store).await;
    let (workspace, other) = (open.workspace, ContentGroupId::new(id()));
    webhook_for(&open, EventType::ContentPieceRemoved, Some(other)).await;
    let path = |group| GroupPath::new(vec![open.group, group]);
    let removed = |group| NewEvent {
        id: EventId::new(id()),
        occurrence: ResourceChange::PieceRemoved(path(group)),
        view: ContentView::Current,
        data: "{}".to_owned(),
        data_before: None,
        custom_data_of: None,
    };
    let elsewhere = ContentGroupId::new(id());
    let mut events: Vec<NewEvent> = (0..2_000).map(|_| removed(elsewhere)).collect();
    events.push(removed(other));
    let append = async move |tx: &WriteTx<'_>| {
        event_append::append(tx, workspace, events.clone(), NOW).await
    };
    write(&open.database, append).await;
    while expand(&open, 7).await {}
    assert_eq!(open.count("deliveries").await, 1);
}

#[on_both_engines]
async fn a_tag_event_reaches_webhooks_of_other_groups_than_its_transaction(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, other) = (open.workspace, ContentGroupId::new(id()));
    webhook_for(&open, EventType::TagChanged, Some(other)).await;
    let path = GroupPath::new(vec![open.group]);
    let new = |occurrence| NewEvent {
        id: EventId::new(id()),
        occurrence,
        view: ContentView::Current,
        data: "{}".to_owned(),
        data_before: None,
        custom_data_of: None,
    };
    let events = [new(ResourceChange::TagChanged), new(ResourceChange::PieceAdded(path))];
    let append = async move |tx: &WriteTx<'_>| {
        event_append::append(tx, workspace, events.clone(), NOW).await
    };
    write(&open.database, append).await;
    while expand(&open, 7).await {}
    assert_eq!(open.count("deliveries").await, 1);
}

#[on_both_engines]
async fn growing_tables_are_read_by_the_right_index(store: TestStore) {
    const ROUNDS: i64 = 150;
    const WEBHOOKS: i64 = 40;
    // SQLite has statistics from the beginning.
    let DatabaseUrl::Postgres(url) = store.url.clone() else { return };
    let open = OpenStore::new(store).await;
    for _ in 0..WEBHOOKS {
        webhook(&open).await;
    }
    for _ in 0..ROUNDS {
        append_events(&open, 1).await;
        while expand(&open, 100).await {}
        while gauges(&open).await.pending > 0 {
            let leased = lease(&open, "a", NOW).await;
            settle(&open, &leased, AttemptOutcome::Accepted, DeliveryStep::Delivered, NOW).await;
        }
    }
    assert_eq!(open.count("deliveries").await, ROUNDS * WEBHOOKS);
    let mut all = 0;
    for (index, read) in index_reads(&open, &url, &["deliveries"]).await {
        // `deliveries_due` has pending deliveries only. Its dead entries are read until PostgreSQL
        // may remove them, which an `ANALYZE` of autovacuum delays on a busy machine.
        let expected = index == "deliveries_due" || read <= 50 * ROUNDS * WEBHOOKS;
        assert!(expected, "{index}: {read}");
        all += read;
    }
    assert!(all >= ROUNDS * WEBHOOKS, "each was read at least once, and counted: {all}");
}

#[on_both_engines]
async fn finished_deliveries_are_not_scanned_again(store: TestStore) {
    const ROUNDS: i64 = 300;
    let DatabaseUrl::Postgres(url) = store.url.clone() else { return };
    let open = OpenStore::new(store).await;
    webhook(&open).await;
    // This transaction keeps PostgreSQL from vacuuming rows that exist from here on.
    let (foreign, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let look = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM events";
    foreign.batch_execute(look).await.unwrap();
    let front = Arc::new(ScanPosition::default());
    let mut leased: Vec<ClaimedDelivery> = Vec::new();
    for round in 0..ROUNDS {
        if round == 50 {
            // Autovacuum does this some time after a table has grown.
            let analyze =
                async |tx: &WriteTx<'_>| tx.execute("ANALYZE", &[], Affects::Everything).await;
            write(&open.database, analyze).await;
        }
        let now = later(round * 1_000);
        let made_at = u128::try_from(now.ms()).unwrap() << 80;
        append_events_with_ids(&open, &[EventId::new(made_at)], now).await;
        let done = std::mem::take(&mut leased);
        leased = exchange(&open, &front, done, 100, now).await;
        assert_eq!(leased.len(), 1);
    }
    let tables = ["deliveries", "delivery_leases", "webhook_queues", "event_matches"];
    for (index, read) in index_reads(&open, &url, &tables).await {
        // Reading the rows of all earlier rounds would add up to more than a hundred entries
        // per round.
        eprintln!("{index}: {read}");
        assert!(read <= 40 * ROUNDS, "{index}: {read}");
    }
    drop(foreign);
}

#[on_both_engines]
async fn fan_out_reports_remaining_events(store: TestStore) {
    const WEBHOOKS: usize = 30;
    let open = OpenStore::new(store).await;
    for _ in 0..WEBHOOKS {
        webhook(&open).await;
    }
    append_events(&open, 1).await;
    append_events(&open, 1).await;
    for is_more in [true, false] {
        let expand = async move |tx: &WriteTx<'_>| {
            let (mut lines, front) = (LockedQueues::default(), ScanPosition::default());
            // In the second round, the limit is one delivery more than an event creates.
            let max = WEBHOOKS + usize::from(!is_more);
            delivery_queue::lock_queues_ahead(tx, &mut lines, &front, &[], max).await?;
            let new_id = || DeliveryId::new(id());
            let more = delivery_queue::fan_out(tx, &mut lines, &front, new_id, max, NOW).await?;
            lines.save(tx).await?;
            Ok(more)
        };
        assert_eq!(write(&open.database, expand).await, is_more);
    }
    assert_eq!(open.count("deliveries").await, 2 * WEBHOOKS as i64);
}

#[on_both_engines]
async fn events_committed_late_are_found(store: TestStore) {
    let open = OpenStore::new(store).await;
    webhook(&open).await;
    let front = Arc::new(ScanPosition::default());
    let made_at = |ms: i64| EventId::new(u128::try_from(later(ms).ms()).unwrap() << 80);
    append_events_with_ids(&open, &[made_at(60_000)], NOW).await;
    exchange(&open, &front, Vec::new(), 100, NOW).await;
    // The first event's id is slightly older than the scan position. The second one's is so
    // much older that only a full scan finds it.
    for (ms, waits) in
        [(56_000, false), (1_000, matches!(open.store.url, DatabaseUrl::Postgres(_)))]
    {
        append_events_with_ids(&open, &[made_at(ms)], NOW).await;
        exchange(&open, &front, Vec::new(), 100, NOW).await;
        let left = open.count("event_matches").await;
        assert_eq!(left == 1, waits);
    }
    let started = Instant::now();
    while open.count("event_matches").await > 0 {
        assert!(started.elapsed() < Duration::from_mins(1), "it waits for good");
        tokio::time::sleep(Duration::from_millis(200)).await;
        let (look, front) = (Arc::clone(&front), Arc::clone(&front));
        let look = async move |tx: &Tx<'_>| delivery_queue::has_work(tx, &look, NOW).await;
        if open.database.read::<_, Error, _>("look", look).await.unwrap() {
            exchange(&open, &front, Vec::new(), 100, NOW).await;
        }
    }
    assert_eq!(open.count("deliveries").await, 3);
}
