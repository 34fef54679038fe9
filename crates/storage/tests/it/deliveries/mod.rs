//! Storage of deliveries: they are created in slices, and leased by one session at a time. Only the
//! holder of the lease records their results.

mod fan_out;
mod leases;

use std::sync::Arc;

use galley_domain::delivery::{AttemptOutcome, DISABLED_BACKLOG_MAX, DeliveryStatus, DeliveryStep};
use galley_domain::event::{EventType, EventTypes, ResourceChange};
use galley_domain::publication::ContentView;
use galley_domain::webhook::{DisabledReason, Webhook, WebhookName, WebhookUrl};
use galley_domain::{ContentGroupId, DeliveryId, EventId, Timestamp, WebhookId, WorkspaceId};
use galley_storage::delivery_queue::{
    self, AttemptResult, ClaimRequest, ClaimedDelivery, DeliveryListQuery, DeliverySelection,
    LockedQueues, ScanPosition,
};
use galley_storage::event_append::{self, NewEvent};
use galley_storage::events;
use galley_storage::webhooks::VisibleWebhooks;
use galley_storage::{Affects, Database, Error, IdPage, Tx, WriteTx, webhooks};
use galley_testing::{TestStore, on_both_engines};

use crate::plans;
use crate::store::{NOW, OpenStore, id};

const FAILED: AttemptOutcome = AttemptOutcome::Failed { retry_after: None };

fn later(ms: i64) -> Timestamp {
    Timestamp::from_ms(NOW.ms() + ms)
}

async fn write<T: Send + 'static>(
    database: &Database,
    operation: impl AsyncFn(&WriteTx<'_>) -> Result<T, Error> + Send + Sync + 'static,
) -> T {
    database.write("test", operation).await.unwrap()
}

/// Creates a webhook for the whole workspace.
pub(crate) async fn webhook(open: &OpenStore) -> WebhookId {
    webhook_for(open, EventType::MemberAdded, None).await
}

/// Creates a webhook for an event, of a content group or the whole workspace.
async fn webhook_for(
    open: &OpenStore,
    event: EventType,
    content_group_id: Option<ContentGroupId>,
) -> WebhookId {
    let workspace = open.workspace;
    let webhook = Webhook {
        id: WebhookId::new(id()),
        hides_emails: false,
        url: WebhookUrl::parse("https://example.org/").unwrap(),
        name: WebhookName::parse("h").unwrap(),
        description: None,
        event,
        events: EventTypes::new([event]),
        content_group_id,
        view: ContentView::Current,
        extension: None,
        enabled: true,
        disabled_reason: None,
        failing_since: None,
        dropped: 0,
        version: 1,
    };
    let id = webhook.id;
    let insert =
        async move |tx: &WriteTx<'_>| webhooks::insert(tx, workspace, &webhook, None, NOW).await;
    write(&open.database, insert).await;
    let sessions = async |tx: &WriteTx<'_>| {
        let find = "SELECT 1 FROM delivery_sessions WHERE session = ?1";
        let opened = [
            "INSERT INTO delivery_sessions (session, node) VALUES (?1, ?1)",
            "INSERT INTO delivery_heartbeats (session, seen_at_ms, server, backend_pid)
             VALUES (?1, 0, 0, 0)",
        ];
        for session in ["a", "b"] {
            if !tx.exists(find, &[session.into()]).await? {
                for sql in opened {
                    tx.execute(sql, &[session.into()], Affects::Everything).await?;
                }
            }
        }
        Ok(())
    };
    write(&open.database, sessions).await;
    id
}

/// Stores `count` events in one transaction.
async fn append_events(open: &OpenStore, count: usize) {
    append_events_at(open, count, NOW).await;
}

/// Stores `count` events with this time.
pub(crate) async fn append_events_at(open: &OpenStore, count: usize, now: Timestamp) {
    let ids: Vec<EventId> = (0..count).map(|_| EventId::new(id())).collect();
    append_events_with_ids(open, &ids, now).await;
}

/// The data of each event.
const DATA: &str = "{}";

/// Stores events with these ids in one transaction.
async fn append_events_with_ids(open: &OpenStore, ids: &[EventId], now: Timestamp) {
    let workspace = open.workspace;
    let new = |&id: &EventId| NewEvent {
        id,
        occurrence: ResourceChange::MemberAdded,
        view: ContentView::Current,
        data: DATA.to_owned(),
        data_before: None,
        custom_data_of: None,
    };
    let events: Vec<NewEvent> = ids.iter().map(new).collect();
    let append = async move |tx: &WriteTx<'_>| {
        event_append::append(tx, workspace, events.clone(), now).await
    };
    write(&open.database, append).await;
}

async fn expand(open: &OpenStore, max: usize) -> bool {
    let expand = async move |tx: &WriteTx<'_>| {
        let (mut lines, front) = (LockedQueues::default(), ScanPosition::default());
        let new_id = || DeliveryId::new(id());
        let more = delivery_queue::fan_out(tx, &mut lines, &front, new_id, max, NOW).await?;
        lines.save(tx).await?;
        Ok(more)
    };
    write(&open.database, expand).await
}

fn lease_request(session: &str, now: Timestamp) -> ClaimRequest {
    ClaimRequest {
        now,
        until: Timestamp::from_ms(now.ms() + 60_000),
        lease: id().to_string(),
        session: session.to_owned(),
        max: 100,
        failing_max: 100,
    }
}

async fn lease(open: &OpenStore, session: &str, now: Timestamp) -> Vec<ClaimedDelivery> {
    let request = lease_request(session, now);
    let lease = async move |tx: &WriteTx<'_>| {
        let mut lines = LockedQueues::default();
        let leased =
            delivery_queue::claim(tx, &mut lines, &ScanPosition::default(), &request).await?;
        lines.save(tx).await?;
        Ok(leased)
    };
    write(&open.database, lease).await.0
}

fn settlement(
    leased: &ClaimedDelivery,
    outcome: AttemptOutcome,
    step: DeliveryStep,
) -> AttemptResult {
    AttemptResult {
        workspace: leased.workspace,
        webhook: leased.webhook,
        delivery: leased.id,
        lease: leased.lease.clone(),
        is_test: leased.is_test,
        outcome,
        step,
        attempts: leased.attempts + 1,
        log: "[]".to_owned(),
    }
}

/// Records the same result for all of these. Returns the number of recorded results.
async fn settle(
    open: &OpenStore,
    leased: &[ClaimedDelivery],
    outcome: AttemptOutcome,
    step: DeliveryStep,
    now: Timestamp,
) -> usize {
    let settlements: Vec<_> = leased.iter().map(|one| settlement(one, outcome, step)).collect();
    let settle = async move |tx: &WriteTx<'_>| {
        let mut lines = LockedQueues::default();
        let settled =
            delivery_queue::record_results(tx, &mut lines, &settlements, now, || 0.0).await?;
        lines.save(tx).await?;
        Ok(settled)
    };
    write(&open.database, settle).await.recorded
}

/// In one transaction, records these as delivered, fans out events, and leases deliveries.
async fn exchange(
    open: &OpenStore,
    front: &Arc<ScanPosition>,
    done: Vec<ClaimedDelivery>,
    max: usize,
    now: Timestamp,
) -> Vec<ClaimedDelivery> {
    let outcome = |leased: &ClaimedDelivery| {
        settlement(leased, AttemptOutcome::Accepted, DeliveryStep::Delivered)
    };
    let settlements: Vec<_> = done.iter().map(outcome).collect();
    let (front, request) = (Arc::clone(front), ClaimRequest { max, ..lease_request("a", now) });
    let exchange = async move |tx: &WriteTx<'_>| {
        let mut lines = LockedQueues::default();
        delivery_queue::lock_queues_ahead(tx, &mut lines, &front, &settlements, 100).await?;
        delivery_queue::record_results(tx, &mut lines, &settlements, now, || 0.0).await?;
        let new_id = || DeliveryId::new(id());
        delivery_queue::fan_out(tx, &mut lines, &front, new_id, 100, now).await?;
        let (leased, _) = delivery_queue::claim(tx, &mut lines, &front, &request).await?;
        lines.save(tx).await?;
        Ok(leased)
    };
    write(&open.database, exchange).await
}

async fn statuses(open: &OpenStore) -> Vec<DeliveryStatus> {
    statuses_of(open, 1_000).await
}

async fn statuses_of(open: &OpenStore, limit: i64) -> Vec<DeliveryStatus> {
    let workspace = open.workspace;
    let list = async move |tx: &Tx<'_>| {
        let query = DeliveryListQuery {
            page: IdPage { limit, ..IdPage::default() },
            ..DeliveryListQuery::default()
        };
        delivery_queue::list(tx, workspace, &query).await
    };
    let found = open.database.read_long::<_, Error, _>("list", list).await.unwrap();
    found.iter().map(|delivery| delivery.status).collect()
}

async fn gauges(open: &OpenStore) -> delivery_queue::QueueMetrics {
    let read = async move |tx: &Tx<'_>| delivery_queue::queue_metrics(tx, NOW).await;
    open.database.read::<_, Error, _>("gauges", read).await.unwrap()
}

/// Checks the plans of the statements so far, except for the test's own.
async fn check_plans(open: &OpenStore) {
    let statements = open.log.take();
    let of_the_test = |sql: &&String| sql.starts_with("SELECT count(*)");
    plans::check(&open.store.url, statements.keys().filter(|sql| !of_the_test(sql))).await;
}

#[on_both_engines]
async fn paused_deliveries_are_limited(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, id) = (open.workspace, webhook(&open).await);
    append_events(&open, 5).await;
    expand(&open, 100).await;
    let disable = async move |tx: &WriteTx<'_>| {
        let fails = webhooks::record_failure(tx, workspace, id, NOW).await?;
        assert_eq!(fails, Some(NOW));
        assert_eq!(webhooks::record_failure(tx, workspace, id, later(5)).await?, Some(NOW));
        assert!(webhooks::disable(tx, workspace, id, DisabledReason::Failing).await?);
        assert!(!webhooks::disable(tx, workspace, id, DisabledReason::Gone).await?);
        // This simulates the largest number of held deliveries.
        let sql = format!("UPDATE webhook_queues SET pending = {DISABLED_BACKLOG_MAX}");
        tx.execute(&sql, &[], Affects::Everything).await
    };
    write(&open.database, disable).await;
    assert_eq!(lease(&open, "a", NOW).await, [], "nothing is sent");
    let oldest = open.count("deliveries").await;
    append_events(&open, 3).await;
    expand(&open, 100).await;
    assert_eq!((oldest, open.count("deliveries").await), (5, 5), "the oldest three went");
    assert_eq!(statuses(&open).await, [DeliveryStatus::Paused; 5]);
    let find = async move |tx: &Tx<'_>| {
        webhooks::find(tx, workspace, id, VisibleWebhooks::default()).await
    };
    let found = open.database.read::<_, Error, _>("find", find).await.unwrap().unwrap();
    assert_eq!((found.dropped, found.enabled), (3, false));
    let troubled = async move |tx: &Tx<'_>| webhooks::list_failing(tx, 10).await;
    let troubled = open.database.read::<_, Error, _>("troubled", troubled).await.unwrap();
    assert_eq!(troubled, [(id, "h".to_owned(), Some(DisabledReason::Failing), Some(NOW))]);
    let succeed = async move |tx: &WriteTx<'_>| webhooks::record_success(tx, workspace, id).await;
    write(&open.database, succeed).await;
    let found = open.database.read::<_, Error, _>("find", find).await.unwrap().unwrap();
    assert_eq!(found.failing_since, None);
    assert_eq!(gauges(&open).await.paused, DISABLED_BACKLOG_MAX);
    check_plans(&open).await;
}

#[on_both_engines]
async fn deliveries_are_repeated_recovered_and_tested_on_request(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, id) = (open.workspace, webhook(&open).await);
    append_events(&open, 2).await;
    expand(&open, 100).await;
    let leased = lease(&open, "a", NOW).await;
    settle(&open, &leased, FAILED, DeliveryStep::Failed, NOW).await;
    assert_eq!(statuses(&open).await, [DeliveryStatus::Failed; 2]);
    let delivery = leased[0].id;
    let again = async move |tx: &WriteTx<'_>| {
        assert_eq!(delivery_queue::find_webhook(tx, workspace, delivery).await?, Some(id));
        assert_eq!(delivery_queue::find_webhook(tx, WorkspaceId::new(1), delivery).await?, None);
        delivery_queue::redeliver(tx, workspace, id, &[delivery], NOW).await?;
        delivery_queue::redeliver(tx, workspace, id, &[delivery], NOW).await
    };
    write(&open.database, again).await;
    assert_eq!(gauges(&open).await.pending, 1, "asked for twice, it is there once");
    let taken = lease(&open, "a", NOW).await;
    assert_eq!(taken.iter().map(|one| (one.id, one.attempts)).collect::<Vec<_>>(), [(delivery, 0)]);
    let last = DeliveryId::new(crate::store::id());
    let recover = async move |tx: &WriteTx<'_>| {
        delivery_queue::start_recovery(tx, workspace, id, NOW, last).await?;
        delivery_queue::start_recovery(tx, workspace, id, NOW, last).await?;
        delivery_queue::continue_recoveries(tx, &mut LockedQueues::default(), NOW).await
    };
    write(&open.database, recover).await;
    assert_eq!(open.count("webhook_recoveries").await, 0);
    assert_eq!(statuses(&open).await, [DeliveryStatus::Pending; 2]);
    let sample = DeliveryId::new(crate::store::id());
    let event = (EventId::new(crate::store::id()), EventType::MemberAdded);
    let test = async move |tx: &WriteTx<'_>| {
        delivery_queue::enqueue_test(tx, workspace, id, sample, event, "{}", NOW).await?;
        delivery_queue::webhook_changed(tx, workspace, id, true, NOW).await
    };
    write(&open.database, test).await;
    let taken = lease(&open, "a", NOW).await;
    assert_eq!((taken[0].id, taken[0].is_test, taken[0].sequence), (sample, true, None));
    check_plans(&open).await;
}

#[on_both_engines]
async fn expired_deliveries_and_events_are_deleted(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, id) = (open.workspace, webhook(&open).await);
    append_events(&open, 5).await;
    expand(&open, 100).await;
    let read = async move |tx: &Tx<'_>| events::bounds(tx, workspace).await;
    assert_eq!(open.database.read::<_, Error, _>("bounds", read).await.unwrap(), (Some(1), 5));
    let listed = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(
            events::list_with_paths(tx, workspace, ContentView::Current, 3, 10, usize::MAX)
                .await?
                .0,
        )
    };
    let listed = open.database.read::<_, Error, _>("placed", listed).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.event.sequence).collect::<Vec<_>>(), [4, 5]);
    for (after, limit, bytes, sequences, is_much) in [
        (0, 100, 1, vec![1], true),
        (0, 100, 2 * DATA.len(), vec![1, 2], true),
        (0, 100, 2 * DATA.len() + 1, vec![1, 2, 3], true),
        (0, 2, usize::MAX, vec![1, 2], false),
        (0, 2, 1, vec![1, 2], false),
        (4, 100, 2 * DATA.len(), vec![5], false),
        (5, 100, 1, vec![], false),
    ] {
        let listed = async move |tx: &Tx<'_>| {
            events::list_with_paths(tx, workspace, ContentView::Published, after, limit, bytes)
                .await
        };
        let (listed, much) = open.database.read::<_, Error, _>("placed", listed).await.unwrap();
        let found: Vec<_> = listed.iter().map(|one| one.event.sequence).collect();
        assert_eq!((found, much), (sequences, is_much), "{after}, {limit}, {bytes}");
    }
    let forget = async move |tx: &WriteTx<'_>| {
        assert_eq!(
            delivery_queue::delete_expired(tx, workspace, NOW, 3).await?,
            0,
            "none is older"
        );
        assert_eq!(events::delete_expired(tx, workspace, NOW, 3).await?, 0);
        assert_eq!(delivery_queue::delete_expired(tx, workspace, later(1), 3).await?, 3);
        assert_eq!(events::delete_expired(tx, workspace, later(1), 3).await?, 3);
        Ok(())
    };
    write(&open.database, forget).await;
    assert_eq!(open.database.read::<_, Error, _>("bounds", read).await.unwrap(), (Some(4), 5));
    assert_eq!(gauges(&open).await.pending, 2);
    let delete = async move |tx: &WriteTx<'_>| {
        webhooks::delete(tx, workspace, id).await?;
        assert_eq!(delivery_queue::delete_orphans(tx, 1).await?, 1);
        while delivery_queue::delete_orphans(tx, 1).await? > 0 {}
        Ok(())
    };
    write(&open.database, delete).await;
    assert_eq!((open.count("deliveries").await, open.count("webhook_queues").await), (0, 0));
    // Sequence numbers continue after the last one, even if its event has expired.
    let forget =
        async move |tx: &WriteTx<'_>| events::delete_expired(tx, workspace, later(1), 100).await;
    assert_eq!(write(&open.database, forget).await, 1);
    assert_eq!(write(&open.database, forget).await, 0);
    assert_eq!(open.database.read::<_, Error, _>("bounds", read).await.unwrap(), (Some(5), 5));
    append_events(&open, 1).await;
    assert_eq!(open.database.read::<_, Error, _>("bounds", read).await.unwrap(), (Some(5), 6));
    check_plans(&open).await;
}

#[on_both_engines]
async fn the_event_types_of_deliveries_are_listed(store: TestStore) {
    let open = OpenStore::new(store).await;
    let webhook = webhook(&open).await;
    let workspace = open.workspace;
    append_events(&open, 5).await;
    let shown = async |which| {
        let list = async move |tx: &WriteTx<'_>| {
            delivery_queue::lock_queue_of_webhook(tx, workspace, webhook).await?;
            delivery_queue::list_visible_occurrences(tx, workspace, webhook, which).await
        };
        write(&open.database, list).await
    };
    let all = [(EventType::MemberAdded, ResourceChange::MemberAdded)];
    assert_eq!(shown(DeliverySelection::Pending).await, all, "no delivery is made yet");
    expand(&open, 100).await;
    assert_eq!(shown(DeliverySelection::Pending).await, all);
    assert_eq!(shown(DeliverySelection::RecoverableSince(NOW)).await, []);
    let leased = lease(&open, "a", NOW).await;
    settle(&open, &leased, FAILED, DeliveryStep::Failed, NOW).await;
    assert_eq!(shown(DeliverySelection::RecoverableSince(NOW)).await, all);
    assert_eq!(shown(DeliverySelection::RecoverableSince(later(1))).await, []);
    assert_eq!(shown(DeliverySelection::One(leased[0].id)).await, all);
    assert_eq!(shown(DeliverySelection::One(DeliveryId::new(id()))).await, []);
    let mut left = lease(&open, "a", later(60_000)).await;
    while !left.is_empty() {
        settle(&open, &left, AttemptOutcome::Accepted, DeliveryStep::Delivered, later(60_000))
            .await;
        left = lease(&open, "a", later(60_000)).await;
    }
    assert_eq!(shown(DeliverySelection::Pending).await, []);
    // Deliveries under recovery count as pending.
    let recover = async move |tx: &WriteTx<'_>| {
        delivery_queue::start_recovery(tx, workspace, webhook, NOW, DeliveryId::new(id())).await
    };
    write(&open.database, recover).await;
    assert_eq!(shown(DeliverySelection::Pending).await, all);
    check_plans(&open).await;
}
