//! Locks on the queues of webhooks.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;
use galley_domain::delivery::CircuitBreaker;
use galley_domain::{Timestamp, WebhookId, WorkspaceId};

use super::pending::{pending_fan_outs, pending_recoveries};
use super::record::AttemptResult;
use super::scan_position::ScanPosition;
use super::webhook_queues::{LockedQueues, lock as lock_queue};
use crate::engine::{Result, WriteTx};

/// Locks the queue of a webhook until the transaction ends, so that no recorded result changes the
/// webhook. Call it before the webhook is read for an update.
pub async fn lock_queue_of_webhook(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
) -> Result<()> {
    if tx.has_other_writers() {
        lock_queue(tx, workspace, webhook).await?;
    }
    Ok(())
}

/// Schedules a scan of a webhook's queue, as the webhook has changed. `starts_afresh` resets the
/// health of its receiver.
pub async fn webhook_changed(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    starts_afresh: bool,
    now: Timestamp,
) -> Result<()> {
    if let Some(mut queue) = lock_queue(tx, workspace, webhook).await? {
        if starts_afresh {
            queue.state.health = CircuitBreaker::default();
        }
        queue.state.next_at = Some(now);
        queue.save(tx).await?;
        tx.notify_on_commit();
    }
    Ok(())
}

/// Locks all queues that a transaction will need, on PostgreSQL: those of results, of about `max`
/// deliveries to fan out, and of recoveries. Call it first. All transactions lock queues in the
/// same order, to avoid a deadlock between two nodes. Claims skip locked queues.
pub async fn lock_queues_ahead(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    position: &ScanPosition,
    results: &[AttemptResult],
    max: usize,
) -> Result<()> {
    if !tx.has_other_writers() {
        return Ok(());
    }
    let mut wanted: BTreeMap<WorkspaceId, BTreeSet<WebhookId>> = BTreeMap::new();
    for one in results {
        wanted.entry(one.workspace).or_default().insert(one.webhook);
    }
    if max > 0 {
        let (found, recoveries) =
            try_join(pending_fan_outs(tx, position), pending_recoveries(tx)).await?;
        let (mut fan_outs, mut left) = (Vec::new(), max);
        for matched in found {
            let webhooks = matched.webhooks.get(matched.done..).unwrap_or_default();
            let webhooks = &webhooks[..webhooks.len().min(left)];
            if left > 0 {
                left -= webhooks.len();
                wanted.entry(matched.workspace).or_default().extend(webhooks);
                fan_outs.push(matched);
            }
        }
        for one in &recoveries {
            wanted.entry(one.workspace).or_default().insert(one.webhook);
        }
        queues.set_read_ahead(fan_outs, recoveries);
    }
    for (workspace, webhooks) in wanted {
        let webhooks: Vec<WebhookId> = webhooks.into_iter().collect();
        queues.lock(tx, workspace, &webhooks).await?;
    }
    Ok(())
}
