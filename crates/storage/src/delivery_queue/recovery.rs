//! Recovery: failed deliveries are sent again.

use galley_domain::delivery::Lane;
use galley_domain::{DeliveryId, Timestamp, WebhookId, WorkspaceId};

use super::claim::NOT_LEASED;
use super::history::AWAITS_RETRY;
use super::pending::{PendingRecovery, pending_recoveries};
use super::webhook_queues::{LockedQueues, lock as lock_queue};
use crate::engine::{Affects, Result, WriteTx, params, row};

/// The recovered deliveries that may be due before more are added to them.
const RECOVERY_DUE_LIMIT: i64 = 1_000;

/// The deliveries that one transaction recovers.
const RECOVERY_BATCH: usize = 200;

/// Schedules deliveries again from their first attempt, except leased ones.
pub async fn redeliver(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    ids: &[DeliveryId],
    now: Timestamp,
) -> Result<()> {
    let Some(mut queue) = lock_queue(tx, workspace, webhook).await? else { return Ok(()) };
    let sql = format!(
        "UPDATE deliveries AS d SET lane = CASE d.lane WHEN 0 THEN 0 ELSE ?4 END, due_at_ms = ?3,
            attempts = 0, status = 'pending'
         WHERE d.workspace_id = ?1 AND d.id = ?2 AND d.status {{}} 'pending' AND {NOT_LEASED}"
    );
    // Pending ones are counted already.
    let rows = || ids.iter().map(|id| row![workspace, id, now, Lane::Retry]);
    tx.change_each(&sql.replace("{}", "="), rows(), Affects::Nothing).await?;
    let rescheduled: u64 =
        tx.execute_each(&sql.replace("{}", "<>"), rows(), Affects::Nothing).await?.iter().sum();
    queue.state.pending += i64::try_from(rescheduled).unwrap_or_default();
    queue.add_due_from(now);
    // The caller expects that the receiver has recovered, so the circuit breaker closes.
    queue.state.health.open_until = None;
    queue.state.next_at = Some(now);
    queue.save(tx).await?;
    tx.notify_on_commit();
    Ok(())
}

/// Starts a recovery of the failed deliveries of a webhook and of those that await a retry. It
/// covers those created at `since` or later, with ids up to `last`, and redelivers a few at a time.
pub async fn start_recovery(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    since: Timestamp,
    last: DeliveryId,
) -> Result<()> {
    let sql =
        "INSERT INTO webhook_recoveries (workspace_id, webhook_id, since_ms, done_id, last_id)
         VALUES (?1, ?2, ?3, '', ?4)
         ON CONFLICT (workspace_id, webhook_id) DO UPDATE SET since_ms = excluded.since_ms,
            done_id = excluded.done_id, last_id = excluded.last_id";
    tx.execute(sql, params![workspace, webhook, since, last], Affects::Nothing).await?;
    tx.notify_on_commit();
    Ok(())
}

/// Continues recoveries whose receivers keep up.
pub async fn continue_recoveries(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    now: Timestamp,
) -> Result<()> {
    let recoveries = match queues.take_recoveries() {
        Some(ahead) => ahead,
        None => pending_recoveries(tx).await?,
    };
    if !recoveries.is_empty() {
        queues.flush(tx).await?;
    }
    for PendingRecovery { workspace, webhook, since, done, last } in recoveries {
        lock_queue(tx, workspace, webhook).await?;
        if count_due(tx, workspace, webhook, now).await? > RECOVERY_DUE_LIMIT {
            continue;
        }
        let limit = i64::try_from(RECOVERY_BATCH).unwrap_or(i64::MAX);
        let of = |condition: &str| {
            format!(
                "SELECT d.id FROM deliveries d
                 WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND {condition} AND d.id > ?3
                    AND d.id <= ?4 AND d.created_at_ms >= ?5"
            )
        };
        let sql = format!(
            "SELECT * FROM ({} UNION ALL {}) recovered ORDER BY id LIMIT ?6",
            of("d.status = 'failed'"),
            of(AWAITS_RETRY)
        );
        let params = params![workspace, webhook, &done, &last, since, limit];
        let found = tx.query(&sql, params, |row| row.get::<DeliveryId>(0)).await?;
        redeliver(tx, workspace, webhook, &found, now).await?;
        match found.last() {
            Some(last) if found.len() == RECOVERY_BATCH => {
                let sql = "UPDATE webhook_recoveries SET done_id = ?3
                    WHERE workspace_id = ?1 AND webhook_id = ?2";
                tx.execute(sql, params![workspace, webhook, *last], Affects::Nothing).await?;
            }
            _ => {
                let sql =
                    "DELETE FROM webhook_recoveries WHERE workspace_id = ?1 AND webhook_id = ?2";
                tx.execute(sql, params![workspace, webhook], Affects::Nothing).await?;
            }
        }
    }
    Ok(())
}

/// Counts the deliveries of a webhook that are due for a retry, up to one more than
/// [`RECOVERY_DUE_LIMIT`]. Later ones don't count.
async fn count_due(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    now: Timestamp,
) -> Result<i64> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM deliveries
        WHERE workspace_id = ?1 AND webhook_id = ?2 AND status = 'pending' AND lane = ?3
            AND due_at_ms <= ?4 LIMIT ?5) due";
    let params = params![workspace, webhook, Lane::Retry, now, RECOVERY_DUE_LIMIT + 1];
    tx.get(sql, params, |row| row.get(0)).await
}
