//! Claiming: leases on deliveries that are due.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use galley_domain::delivery::{CircuitBreaker, Lane};
use galley_domain::event::EventType;
use galley_domain::{DeliveryId, EventId, Timestamp, WebhookId, WorkspaceId};

use super::scan_position::ScanPosition;
use super::slice::until_contended;
use super::webhook_queues::{self, LockedQueues, WebhookQueue, lock as lock_queue};
use crate::engine::{
    Affects, Candidates, Error, Result, Row, Tx, Value, WriteTx, lock_candidates, params, read_row,
    row,
};
use crate::tables::events::{CUSTOM_DATA, with_custom_data};
use crate::tables::webhooks;

/// The condition that a delivery `d` of the workspace `?1` has no lease at the time `?3`. By this
/// subquery, PostgreSQL looks the lease up by its key; `NOT EXISTS` may read all leases of the
/// queue.
pub(super) const NOT_LEASED: &str = "COALESCE((SELECT l.until_ms FROM delivery_leases l
    WHERE l.workspace_id = ?1 AND l.webhook_id = d.webhook_id
        AND l.delivery_id = d.id), 0) <= ?3";

/// A worker's request for deliveries to send.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The current time.
    pub now: Timestamp,
    /// The time at which the leases end.
    pub until: Timestamp,
    /// The name of the new leases. A result must have it to be recorded.
    pub lease: String,
    /// The session that the leases belong to.
    pub session: String,
    /// The limit of deliveries to claim for healthy webhooks.
    pub max: usize,
    /// The limit of deliveries to claim for failing webhooks.
    pub failing_max: usize,
}

/// A delivery to send, leased to one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedDelivery {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The delivery.
    pub id: DeliveryId,
    /// The name of the lease.
    pub lease: String,
    /// The session that the lease belongs to.
    pub session: String,
    /// The time at which the lease ends.
    pub until: Timestamp,
    /// The health of the webhook's receiver.
    pub health: CircuitBreaker,
    /// The URL of the receiver.
    pub url: String,
    /// True if the event is sent without the e-mail addresses of members.
    pub hides_emails: bool,
    /// The webhook's encrypted secrets: none, or the current one and, for a time after a rotation,
    /// the previous one.
    pub sealed_secrets: Vec<Vec<u8>>,
    /// The event.
    pub event: EventId,
    /// The event's type in the webhook's scope.
    pub event_type: EventType,
    /// The event's sequence number; `None` for a sample.
    pub sequence: Option<i64>,
    /// The time of the event.
    pub happened_at: Timestamp,
    /// The resource as JSON; `None` if the event was deleted by retention.
    pub data: Option<String>,
    /// The number of attempts so far.
    pub attempts: u32,
    /// The results of these attempts, as JSON.
    pub log: Option<String>,
    /// True for a sample.
    pub is_test: bool,
}

/// The limit of queues that one claim reads, for healthy and for failing receivers each.
const QUEUES_PER_CLAIM: usize = 64;

/// Claims due deliveries, for each webhook at most as many as its receiver has free slots. Also
/// returns true if more due queues may be left.
pub async fn claim(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    position: &ScanPosition,
    request: &ClaimRequest,
) -> Result<(Vec<ClaimedDelivery>, bool)> {
    let is_full_scan = position.is_full_scan_due(tx);
    let (mut all, mut more) = (Vec::new(), false);
    for (is_failing, max) in [(false, request.max), (true, request.failing_max)] {
        if max == 0 {
            continue;
        }
        let mut found = lock_due_queues(tx, request.now, is_failing).await?;
        let has_all = found.len() < QUEUES_PER_CLAIM;
        // Queues that this transaction has locked are newer in memory, so their rows are ignored.
        found.retain(|queue| queues.get(queue.workspace, queue.webhook).is_none());
        let is_due = |queue: &&WebhookQueue| {
            let WebhookQueue { state, .. } = queue;
            state.health.is_failing() == is_failing
                && state.next_at.is_some_and(|next| next <= request.now)
        };
        found.extend(queues.iter().filter(is_due).cloned());
        found.sort_by_key(|queue| queue.state.next_at);
        let mut left = max;
        let mut tasks = Vec::new();
        for mut queue in found {
            // An upper bound: slots with a lease are subtracted later.
            let share = left.min(queue.state.health.slots as usize);
            if share == 0 {
                break;
            }
            left -= share;
            if is_full_scan {
                queue.reset_bounds();
            }
            tasks.push(claim_from_queue(tx, request, queue, share));
        }
        let wanted = tasks.len();
        let taken = until_contended(tx, tasks).await?;
        more |= left == 0 || !has_all || taken.len() < wanted;
        for (queue, taken) in taken {
            queues.put(queue);
            all.extend(taken);
        }
    }
    Ok((all, more))
}

async fn lock_due_queues(
    tx: &WriteTx<'_>,
    now: Timestamp,
    is_failing: bool,
) -> Result<Vec<WebhookQueue>> {
    let rows = Candidates {
        columns: webhook_queues::COLUMNS,
        table: "webhook_queues",
        key: "webhook_id",
        condition: if is_failing {
            "next_at_ms <= ?1 AND failures > 0"
        } else {
            "next_at_ms <= ?1 AND failures = 0"
        },
        order: "next_at_ms",
    };
    let (params, read) = (params![now], webhook_queues::read);
    lock_candidates::<WebhookId, _>(tx, rows, params, QUEUES_PER_CLAIM, read).await
}

/// Claims at most `max` deliveries of one queue.
async fn claim_from_queue(
    tx: &WriteTx<'_>,
    request: &ClaimRequest,
    mut queue: WebhookQueue,
    max: usize,
) -> Result<(WebhookQueue, Vec<ClaimedDelivery>)> {
    let (workspace, webhook, now) = (queue.workspace, queue.webhook, request.now);
    let found = webhooks::find_to_send(tx, workspace, webhook, now);
    let (found, mut leases) = try_join(found, summarize_leases(tx, &queue, now)).await?;
    let Some(target) = found else {
        // The webhook was deleted; housekeeping deletes its queue.
        queue.state.next_at = None;
        return Ok((queue, Vec::new()));
    };
    let health = queue.state.health;
    let sends_only_samples = !target.sends || health.is_open(now);
    let room = (health.slots as usize).saturating_sub(leases.count);
    let room = room.min(max);
    let mut taken = Vec::new();
    if room > 0 {
        let lanes: &[Lane] = if sends_only_samples { &[Lane::Test] } else { &Lane::ALL };
        for due in due_deliveries(tx, &queue, lanes, room, now).await? {
            taken.push(ClaimedDelivery {
                workspace,
                webhook,
                lease: request.lease.clone(),
                session: request.session.clone(),
                until: request.until,
                health,
                url: target.url.clone(),
                hides_emails: target.hides_emails,
                sealed_secrets: target.sealed_secrets.clone(),
                ..due
            });
        }
        let rows = taken.iter().map(|one| {
            row![workspace, webhook, one.id, &request.lease, &request.session, request.until]
        });
        let sql =
            "INSERT INTO delivery_leases (workspace_id, webhook_id, delivery_id, lease, session,
                until_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (workspace_id, webhook_id, delivery_id)
                DO UPDATE SET lease = excluded.lease, session = excluded.session,
                    until_ms = excluded.until_ms";
        tx.change_each(sql, rows, Affects::Nothing).await?;
        leases.add(taken.iter().map(|one| one.id), request.until);
    }
    queue.state.leased_from = leases.first;
    schedule_next_scan(tx, &mut queue, &leases, target.sends, now).await?;
    Ok((queue, taken))
}

/// The current leases of one queue.
#[derive(Default)]
struct LeaseSummary {
    count: usize,
    first_end: Option<Timestamp>,
    /// The smallest delivery id, a lower bound for the next read.
    first: Option<DeliveryId>,
}

impl LeaseSummary {
    fn add(&mut self, ids: impl Iterator<Item = DeliveryId>, until: Timestamp) {
        for id in ids {
            self.count += 1;
            self.first_end = Some(self.first_end.map_or(until, |end| end.min(until)));
            self.first = Some(self.first.map_or(id, |first| first.min(id)));
        }
    }
}

/// Returns the current leases of a queue.
async fn summarize_leases(
    tx: &Tx<'_>,
    queue: &WebhookQueue,
    now: Timestamp,
) -> Result<LeaseSummary> {
    let Some(from) = queue.state.leased_from else { return Ok(LeaseSummary::default()) };
    let sql = "SELECT COUNT(*), MIN(until_ms), MIN(delivery_id) FROM delivery_leases
        WHERE workspace_id = ?1 AND webhook_id = ?2 AND delivery_id >= ?4 AND until_ms > ?3";
    tx.get(sql, params![queue.workspace, queue.webhook, now, from], |row| {
        Ok(read_row!(row, 0 => LeaseSummary { count, first_end, first }))
    })
    .await
}

/// Reads a delivery. The caller adds the lease, the webhook's URL and its secret.
fn read_claimed(row: &Row<'_>, queue: &WebhookQueue, now: Timestamp) -> Result<ClaimedDelivery> {
    // Column 8 is the data, 9 the lane, 10 the custom data.
    let (data, custom_data) = (row.opt_text(8)?, row.opt_text(10)?);
    Ok(read_row!(row, 0 => ClaimedDelivery {
        id, event, event_type, sequence, attempts, log, happened_at;
        workspace: queue.workspace,
        webhook: queue.webhook,
        lease: String::new(),
        session: String::new(),
        until: now,
        health: queue.state.health,
        url: String::new(),
        hides_emails: true,
        sealed_secrets: Vec::new(),
        data: data.map(|data| with_custom_data(data, custom_data)),
        is_test: row.get::<i64>(9)? == Lane::Test.number(),
    }))
}

/// Returns due deliveries of a queue that are not leased: samples first, then from the other lanes
/// in turn.
async fn due_deliveries(
    tx: &Tx<'_>,
    queue: &WebhookQueue,
    lanes: &[Lane],
    max: usize,
    now: Timestamp,
) -> Result<Vec<ClaimedDelivery>> {
    let of_lane = |lane: &Lane| {
        format!(
            "SELECT * FROM (SELECT d.* FROM deliveries d
             WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND d.status = 'pending'
                 AND d.lane = {lane} AND d.due_at_ms >= ?5 AND d.due_at_ms <= ?3 AND {NOT_LEASED}
             ORDER BY d.due_at_ms LIMIT ?4) lane_{lane}",
            lane = lane.number()
        )
    };
    let of_lanes = lanes.iter().map(of_lane).collect::<Vec<_>>().join(" UNION ALL ");
    let sql = format!(
        "SELECT due.id, due.event_id, due.event_type, due.sequence, due.attempts, due.log,
            COALESCE(e.created_at_ms, due.created_at_ms), due.due_at_ms,
            CASE WHEN due.data IS NOT NULL THEN due.data
                WHEN due.event_type = 'contentPieceRemoved' AND e.data_before IS NOT NULL
                    THEN e.data_before
                ELSE e.data END,
            due.lane, CASE WHEN due.data IS NULL THEN {CUSTOM_DATA} END
         FROM ({of_lanes}) due
         LEFT JOIN events e ON e.workspace_id = ?1 AND e.sequence = due.sequence
         ORDER BY due.lane, due.due_at_ms"
    );
    let read =
        |row: &Row<'_>| Ok((row.get::<usize>(9)?, row.get(7)?, read_claimed(row, queue, now)?));
    let params = params![queue.workspace, queue.webhook, now, max, queue.state.due_from];
    let mut by_lane = Lane::ALL.map(|_| Vec::new());
    for (lane, due_at, leased) in tx.query(&sql, params, read).await? {
        let known = by_lane.get_mut(lane).ok_or_else(|| Error::corrupt("an unknown lane"))?;
        known.push((due_at, leased));
    }
    let mut by_lane: Vec<_> = by_lane.map(Vec::into_iter).into();
    let mut others = by_lane.split_off(1);
    let mut taken: Vec<(Timestamp, ClaimedDelivery)> = by_lane.into_iter().flatten().collect();
    // The lane whose first delivery has waited longer comes first, so that neither lane starves.
    others.sort_by_key(|lane| lane.as_slice().first().map(|(due, _)| *due));
    while taken.len() < max {
        let before = taken.len();
        taken.extend(others.iter_mut().filter_map(Iterator::next));
        if taken.len() == before {
            break;
        }
    }
    taken.truncate(max);
    Ok(taken.into_iter().map(|(_, one)| one).collect())
}

/// Sets the time of the queue's next scan.
async fn schedule_next_scan(
    tx: &Tx<'_>,
    queue: &mut WebhookQueue,
    leases: &LeaseSummary,
    sends: bool,
    now: Timestamp,
) -> Result<()> {
    let is_full = leases.count >= queue.state.health.slots as usize;
    let first = first_due(tx, queue, is_full, now).await?;
    queue.state.due_from = first.all.unwrap_or(queue.state.due_from);
    // The queue is scanned when a lease expires without a result and, if the receiver has free
    // slots, when a delivery is due.
    let not_before = queue.state.health.open_until.unwrap_or(now);
    let others = first.others.filter(|_| sends).map(|at| at.max(not_before));
    let wanted = leases.first_end.into_iter().chain(first.test).chain(others).min();
    // An earlier stored time is kept: one unneeded scan costs less than an update of its index
    // entry after each claim.
    let was = queue.saved_next_scan().filter(|&was| was > now);
    queue.state.next_at = match (was, wanted) {
        (Some(was), Some(wanted)) => Some(was.min(wanted)),
        (was, wanted) => was.or(wanted),
    };
    Ok(())
}

/// The times at which the first deliveries of a queue are due.
struct FirstDue {
    /// The first pending delivery, leased or not.
    all: Option<Timestamp>,
    /// The first sample that is not leased.
    test: Option<Timestamp>,
    /// The first other delivery that is not leased.
    others: Option<Timestamp>,
}

/// Returns the times at which the first deliveries of a queue are due. For a queue without free
/// slots, only the first pending one is read.
async fn first_due(
    tx: &Tx<'_>,
    queue: &WebhookQueue,
    is_full: bool,
    now: Timestamp,
) -> Result<FirstDue> {
    let (workspace, webhook, from) = (queue.workspace, queue.webhook, queue.state.due_from);
    let of_lanes = async |from_param: &str, condition: &str, params: &[Value<'_>]| {
        let of_lane = |lane: Lane| {
            format!(
                "(SELECT d.due_at_ms FROM deliveries d
                  WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND d.status = 'pending'
                      AND d.lane = {} AND d.due_at_ms >= {from_param}{condition}
                  ORDER BY d.due_at_ms LIMIT 1)",
                lane.number()
            )
        };
        let [test, first_attempt, retry] = Lane::ALL.map(of_lane);
        let read = |row: &Row<'_>| {
            Ok((row.get::<Option<Timestamp>>(0)?, [row.get::<Option<Timestamp>>(1)?, row.get(2)?]))
        };
        let (test, others) =
            tx.get(&format!("SELECT {test}, {first_attempt}, {retry}"), params, read).await?;
        Ok::<_, Error>((test, others.into_iter().flatten().min()))
    };
    let all = async {
        let (test, others) = of_lanes("?3", "", params![workspace, webhook, from]).await?;
        Ok(test.into_iter().chain(others).min())
    };
    let free = async {
        if is_full {
            return Ok((None, None));
        }
        let condition = format!(" AND {NOT_LEASED}");
        of_lanes("?4", &condition, params![workspace, webhook, now, from]).await
    };
    let (all, (test, others)) = try_join(all, free).await?;
    Ok(FirstDue { all, test, others })
}

/// Releases the leases of deliveries whose attempts were not made or were abandoned.
pub async fn release(tx: &WriteTx<'_>, leased: &[ClaimedDelivery], now: Timestamp) -> Result<()> {
    let mut by_queue: BTreeMap<(WorkspaceId, WebhookId), Vec<&ClaimedDelivery>> = BTreeMap::new();
    for one in leased {
        by_queue.entry((one.workspace, one.webhook)).or_default().push(one);
    }
    for ((workspace, webhook), leased) in by_queue {
        let Some(mut queue) = lock_queue(tx, workspace, webhook).await? else { continue };
        let rows = leased.iter().map(|one| row![workspace, webhook, one.id, &one.lease]);
        let sql = "DELETE FROM delivery_leases WHERE workspace_id = ?1 AND webhook_id = ?2
            AND delivery_id = ?3 AND lease = ?4";
        tx.change_each(sql, rows, Affects::Nothing).await?;
        queue.state.next_at = Some(now);
        queue.save(tx).await?;
    }
    Ok(())
}

/// Returns true if an exchange at `now` has work: runs to fan out, recoveries, or a queue to scan.
pub async fn has_work(tx: &Tx<'_>, position: &ScanPosition, now: Timestamp) -> Result<bool> {
    let from = position.start(tx);
    let sql = "SELECT EXISTS (SELECT 1 FROM event_matches WHERE id >= ?2)
        OR EXISTS (SELECT 1 FROM webhook_recoveries)
        OR EXISTS (SELECT 1 FROM webhook_queues WHERE next_at_ms <= ?1)";
    let has_work: bool = tx.get(sql, params![now, from], |row| row.get(0)).await?;
    if !has_work {
        position.found_none(from);
    }
    Ok(has_work)
}
