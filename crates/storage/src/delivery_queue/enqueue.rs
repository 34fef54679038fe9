//! Enqueueing: deliveries of events, and of samples.

use galley_domain::delivery::{DISABLED_BACKLOG_MAX, DeliveryStatus, Lane};
use galley_domain::event::EventType;
use galley_domain::{DeliveryId, EventId, Timestamp, WebhookId, WorkspaceId};

use super::claim::NOT_LEASED;
use super::pending::{FAN_OUTS_PER_BATCH, PendingFanOut, pending_fan_outs};
use super::scan_position::ScanPosition;
use super::webhook_queues::{LockedQueues, WebhookQueue, lock as lock_queue};
use crate::engine::{Affects, Error, Result, Tx, WriteTx, params, row};
use crate::tables::webhooks;

/// Creates deliveries for events that matched webhooks, about `max` of them, the oldest events
/// first. Returns true if more may be left.
pub async fn fan_out(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    position: &ScanPosition,
    mut new_id: impl FnMut() -> DeliveryId,
    max: usize,
    now: Timestamp,
) -> Result<bool> {
    let matches = match queues.take_fan_outs() {
        Some(ahead) => ahead,
        None => pending_fan_outs(tx, position).await?,
    };
    let more = matches.len() == FAN_OUTS_PER_BATCH;
    let mut left = max;
    for (index, matched) in matches.into_iter().enumerate() {
        if left == 0 || (index > 0 && tx.should_yield()) {
            return Ok(true);
        }
        if !fan_out_run(tx, queues, matched, &mut new_id, &mut left, now).await? {
            return Ok(true);
        }
    }
    // Runs that were read ahead end at the batch limit.
    Ok(more || left == 0)
}

/// Returns the sequences and ids of the first events of a run.
async fn first_events(
    tx: &Tx<'_>,
    matched: &PendingFanOut,
    count: usize,
) -> Result<Vec<(i64, EventId)>> {
    let sql = "SELECT sequence, id FROM events
        WHERE workspace_id = ?1 AND sequence >= ?2 AND sequence <= ?3
        ORDER BY sequence LIMIT ?4";
    let params = params![matched.workspace, matched.first_sequence, matched.last_sequence, count];
    tx.query(sql, params, |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Creates deliveries for the next events of a run, or for the next event and some of its webhooks.
/// Returns true if the run is complete.
async fn fan_out_run(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    matched: PendingFanOut,
    new_id: &mut impl FnMut() -> DeliveryId,
    left: &mut usize,
    now: Timestamp,
) -> Result<bool> {
    let PendingFanOut { workspace, event_type, done, .. } = &matched;
    let waiting = matched.webhooks.get(*done..).unwrap_or_default();
    let webhooks = &waiting[..waiting.len().min((*left).max(1))];
    let count = if *done == 0 { (*left / webhooks.len().max(1)).max(1) } else { 1 };
    let events = first_events(tx, &matched, count).await?;
    *left = left.saturating_sub(events.len().max(1) * webhooks.len());
    let locked = queues.lock(tx, *workspace, webhooks).await?;
    let sending = webhooks::find_sending(tx, *workspace, webhooks).await?;
    let mut rows = Vec::new();
    let mut over_limit = Vec::new();
    for queue in locked {
        // A webhook that was deleted since gets no delivery.
        let Some(&sends) = sending.get(&queue.webhook) else { continue };
        for &(sequence, event) in &events {
            rows.push(row! {
                *workspace, new_id(), queue.webhook, event, *event_type, sequence,
                DeliveryStatus::Pending, Lane::FirstAttempt, now
            });
        }
        queue.state.pending += i64::try_from(events.len()).unwrap_or_default();
        queue.add_due_from(now);
        if sends {
            queue.scan_at(now);
        }
        if !sends && queue.state.pending > DISABLED_BACKLOG_MAX {
            over_limit.push(queue);
        }
    }
    let sql =
        "INSERT INTO deliveries (workspace_id, id, webhook_id, event_id, event_type, sequence,
            status, lane, due_at_ms, attempts, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?9)";
    tx.insert_each(sql, rows, Affects::Nothing).await?;
    for queue in over_limit {
        drop_oldest(tx, queue, now).await?;
    }
    // The next batch begins here. Expired events are before it.
    let last = events.last().map_or(matched.last_sequence, |(sequence, _)| *sequence);
    let (next, done) =
        if webhooks.len() < waiting.len() { (last, done + webhooks.len()) } else { (last + 1, 0) };
    save_progress(tx, &matched, next, done).await
}

/// Stores the next event of a run, and the number of webhooks that are done with it. Deletes a
/// complete run, and returns true then.
async fn save_progress(
    tx: &WriteTx<'_>,
    matched: &PendingFanOut,
    next: i64,
    done: usize,
) -> Result<bool> {
    let done = i64::try_from(done).map_err(Error::corrupt)?;
    let key = params![matched.id, matched.event_type.as_str(), matched.part, next, done];
    if next > matched.last_sequence {
        let sql = "DELETE FROM event_matches WHERE id = ?1 AND event_type = ?2 AND part = ?3";
        tx.execute(sql, &key[..3], Affects::Nothing).await?;
        return Ok(true);
    }
    let sql = "UPDATE event_matches SET first_sequence = ?4, done = ?5
        WHERE id = ?1 AND event_type = ?2 AND part = ?3";
    tx.execute(sql, key, Affects::Nothing).await?;
    Ok(false)
}

/// Deletes the oldest deliveries of a disabled webhook that is over its limit, except leased ones.
async fn drop_oldest(tx: &WriteTx<'_>, queue: &mut WebhookQueue, now: Timestamp) -> Result<()> {
    let many = queue.state.pending - DISABLED_BACKLOG_MAX;
    let sql = format!(
        "DELETE FROM deliveries WHERE workspace_id = ?1 AND id IN (
         SELECT d.id FROM deliveries d WHERE d.workspace_id = ?1 AND d.webhook_id = ?2
             AND status = 'pending' AND lane > 0 AND due_at_ms >= ?5 AND {NOT_LEASED}
         ORDER BY lane, due_at_ms LIMIT ?4)"
    );
    let dropped = tx
        .execute(
            &sql,
            params![queue.workspace, queue.webhook, now, many, queue.state.due_from],
            Affects::Nothing,
        )
        .await?;
    let dropped = i64::try_from(dropped).unwrap_or(many);
    queue.state.pending -= dropped;
    webhooks::count_dropped(tx, queue.workspace, queue.webhook, dropped).await
}

/// Enqueues a sample of an event for a webhook, due at once.
pub async fn enqueue_test(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    id: DeliveryId,
    event: (EventId, EventType),
    data: &str,
    now: Timestamp,
) -> Result<()> {
    let Some(mut queue) = lock_queue(tx, workspace, webhook).await? else { return Ok(()) };
    let (event, event_type) = event;
    let sql =
        "INSERT INTO deliveries (workspace_id, id, webhook_id, event_id, event_type, data, status,
            lane, due_at_ms, attempts, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?9)";
    tx.execute(
        sql,
        params! {
            workspace, id, webhook, event, event_type.as_str(), data, DeliveryStatus::Pending,
            Lane::Test, now
        },
        Affects::Nothing,
    )
    .await?;
    queue.state.pending += 1;
    queue.add_due_from(now);
    queue.state.next_at = Some(now);
    queue.save(tx).await?;
    tx.notify_on_commit();
    Ok(())
}
