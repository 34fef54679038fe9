//! Recording: the results of attempts.

use std::collections::BTreeMap;

use galley_domain::delivery::{AttemptOutcome, DeliveryStatus, DeliveryStep, Lane};
use galley_domain::{DeliveryId, Timestamp, WebhookId, WorkspaceId};

use super::slice::until_contended;
use super::webhook_queues::{LockedQueues, WebhookQueue, lock as lock_queue};
use crate::engine::{Affects, Result, Tx, Value, WriteTx, in_list, row};

/// The result of an attempt to deliver.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The delivery.
    pub delivery: DeliveryId,
    /// The lease under which it was sent.
    pub lease: String,
    /// True for a sample.
    pub is_test: bool,
    /// The outcome of the attempt.
    pub outcome: AttemptOutcome,
    /// The next step of the delivery.
    pub step: DeliveryStep,
    /// The number of attempts so far.
    pub attempts: u32,
    /// The results of all attempts, as JSON.
    pub log: String,
}

/// The state of a webhook's receiver after attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverState {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The webhook.
    pub webhook: WebhookId,
    /// True if the last attempt succeeded.
    pub is_well: bool,
    /// True if the receiver responded with 410, so that no more deliveries are sent to it.
    pub is_gone: bool,
}

/// The outcome of recording results.
#[derive(Debug)]
pub struct RecordedResults {
    /// The number of recorded results.
    pub recorded: usize,
    /// The states of receivers that fail, or did before.
    pub receivers: Vec<ReceiverState>,
    /// Results that are not recorded yet, as the transaction was contended.
    pub deferred: Vec<AttemptResult>,
}

/// Records the results of attempts. A result is ignored if its delivery was leased again since.
/// `random` returns numbers from 0 up to 1, for back-off.
pub async fn record_results(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    results: &[AttemptResult],
    now: Timestamp,
    mut random: impl FnMut() -> f64,
) -> Result<RecordedResults> {
    let mut by_queue: BTreeMap<(WorkspaceId, WebhookId), Vec<(&AttemptResult, f64)>> =
        BTreeMap::new();
    for one in results {
        by_queue.entry((one.workspace, one.webhook)).or_default().push((one, random()));
    }
    let counts: Vec<usize> = by_queue.values().map(Vec::len).collect();
    let all: Vec<&AttemptResult> = by_queue.values().flatten().map(|(one, _)| *one).collect();
    let mut tasks = Vec::new();
    for ((workspace, webhook), results) in by_queue {
        let known = queues.get(workspace, webhook).cloned();
        tasks.push(async move {
            let queue = match known {
                Some(queue) => Some(queue),
                None => lock_queue(tx, workspace, webhook).await?,
            };
            match queue {
                Some(queue) => record_for_queue(tx, queue, results, now).await.map(Some),
                None => Ok(None),
            }
        });
    }
    let done = until_contended(tx, tasks).await?;
    let deferred = all.into_iter().skip(counts.iter().take(done.len()).sum()).cloned().collect();
    let mut recorded = RecordedResults { recorded: 0, receivers: Vec::new(), deferred };
    for (queue, kept, receiver) in done.into_iter().flatten() {
        queues.put(queue);
        recorded.recorded += kept;
        recorded.receivers.extend(receiver);
    }
    Ok(recorded)
}

/// Returns the leases of the deliveries in `results` that have not expired.
async fn current_leases(
    tx: &Tx<'_>,
    queue: &WebhookQueue,
    results: &[(&AttemptResult, f64)],
) -> Result<Vec<(DeliveryId, String)>> {
    let mut params = vec![Value::from(queue.workspace), Value::from(queue.webhook)];
    let listed = in_list("delivery_id", results.iter().map(|(one, _)| one.delivery), &mut params);
    let sql = format!(
        "SELECT delivery_id, lease FROM delivery_leases
         WHERE workspace_id = ?1 AND webhook_id = ?2{listed}"
    );
    tx.query(&sql, &params, |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Records the results of one queue, each with a random number. Returns the number of recorded
/// ones.
async fn record_for_queue(
    tx: &WriteTx<'_>,
    mut queue: WebhookQueue,
    results: Vec<(&AttemptResult, f64)>,
    now: Timestamp,
) -> Result<(WebhookQueue, usize, Option<ReceiverState>)> {
    let (workspace, webhook) = (queue.workspace, queue.webhook);
    let leases = current_leases(tx, &queue, &results).await?;
    let mut rows = Vec::new();
    let mut ended: Vec<DeliveryId> = Vec::new();
    let mut ends: Vec<bool> = Vec::new();
    let mut receiver: Option<ReceiverState> = None;
    let mut has_failed = queue.state.health.is_failing();
    for (one, random) in results {
        let is_leased =
            |(id, lease): &(DeliveryId, String)| *id == one.delivery && *lease == one.lease;
        if !leases.iter().any(is_leased) || ended.contains(&one.delivery) {
            continue;
        }
        ended.push(one.delivery);
        let (status, due) = match one.step {
            DeliveryStep::Delivered => (DeliveryStatus::Delivered, now),
            DeliveryStep::Failed => (DeliveryStatus::Failed, now),
            DeliveryStep::Retry(due) => {
                queue.add_due_from(due);
                (DeliveryStatus::Pending, due)
            }
        };
        ends.push(status != DeliveryStatus::Pending);
        rows.push(row! {
            workspace, one.delivery, status, due, one.attempts, &one.log,
            if one.is_test { Lane::Test } else { Lane::Retry }
        });
        let is_well = one.outcome == AttemptOutcome::Accepted;
        // A sample can show that a receiver has recovered, but not that it fails.
        if is_well || !one.is_test {
            queue.state.health = queue.state.health.after(one.outcome, now, random);
            has_failed |= !is_well;
            let was_gone = receiver.is_some_and(|receiver| receiver.is_gone);
            let is_gone = was_gone || one.outcome == AttemptOutcome::Gone;
            receiver = Some(ReceiverState { workspace, webhook, is_well, is_gone });
        }
    }
    if ended.is_empty() {
        return Ok((queue, 0, None));
    }
    let mut params = vec![Value::from(workspace), Value::from(webhook)];
    let listed = in_list("delivery_id", ended.iter().copied(), &mut params);
    let sql =
        format!("DELETE FROM delivery_leases WHERE workspace_id = ?1 AND webhook_id = ?2{listed}");
    tx.execute(&sql, &params, Affects::Nothing).await?;
    let sql =
        "UPDATE deliveries SET status = ?3, due_at_ms = ?4, attempts = ?5, log = ?6, lane = ?7
         WHERE workspace_id = ?1 AND id = ?2";
    let kept = tx.execute_each(sql, rows, Affects::Nothing).await?;
    // An expired delivery was deleted meanwhile, and is not pending any more.
    let no_longer = ends.iter().zip(kept).filter(|(ends, kept)| **ends && *kept > 0).count();
    queue.state.pending -= i64::try_from(no_longer).unwrap_or_default();
    queue.state.next_at = Some(now);
    Ok((queue, ended.len(), receiver.filter(|_| has_failed)))
}
