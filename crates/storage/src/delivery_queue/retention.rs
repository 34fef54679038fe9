//! Retention: expired deliveries and those of deleted webhooks are deleted. Metrics of the queues.

use std::collections::BTreeMap;

use galley_domain::{DeliveryId, Timestamp, WebhookId, WorkspaceId};

use super::webhook_queues::lock as lock_queue;
use crate::engine::{Affects, Result, Tx, WriteTx, params, read_row, row};
use crate::tables::webhooks::{self, SENDS};

/// Deletes deliveries that were created before `before`, at most `limit` of them. Returns their
/// number.
pub async fn delete_expired(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    // Ids sort by time of creation.
    let sql = "SELECT id, webhook_id, status FROM (
            SELECT id, webhook_id, status, created_at_ms FROM deliveries
            WHERE workspace_id = ?1 ORDER BY id LIMIT ?3) d
        WHERE created_at_ms < ?2";
    let old = tx
        .query(sql, params![workspace, before, limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.text(2)? == "pending"))
        })
        .await?;
    delete_listed(tx, workspace, &old).await
}

/// Deletes deliveries and queues of deleted webhooks, at most `limit` deliveries. Returns the
/// number of rows.
pub async fn delete_orphans(tx: &WriteTx<'_>, limit: i64) -> Result<u64> {
    let sql = "SELECT q.workspace_id, q.webhook_id FROM webhook_queues q
        WHERE NOT EXISTS (SELECT 1 FROM webhooks h
            WHERE h.workspace_id = q.workspace_id AND h.id = q.webhook_id)
        LIMIT 16";
    let orphans = tx
        .query(sql, &[], |row| Ok((row.get::<WorkspaceId>(0)?, row.get::<WebhookId>(1)?)))
        .await?;
    let mut deleted = 0;
    for (workspace, webhook) in orphans {
        let sql = "SELECT id FROM deliveries WHERE workspace_id = ?1 AND webhook_id = ?2 LIMIT ?3";
        let left = tx
            .query(sql, params![workspace, webhook, limit], |row| Ok((row.get(0)?, webhook, false)))
            .await?;
        if left.is_empty() {
            for table in ["delivery_leases", "webhook_recoveries", "webhook_queues"] {
                let sql =
                    format!("DELETE FROM {table} WHERE workspace_id = ?1 AND webhook_id = ?2");
                deleted += tx.execute(&sql, params![workspace, webhook], Affects::Nothing).await?;
            }
            continue;
        }
        deleted += delete_listed(tx, workspace, &left).await?;
        break;
    }
    Ok(deleted)
}

/// Deletes deliveries with their leases, and updates the counts of their queues.
async fn delete_listed(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    deliveries: &[(DeliveryId, WebhookId, bool)],
) -> Result<u64> {
    let mut waited: BTreeMap<WebhookId, i64> = BTreeMap::new();
    for (_, webhook, _) in deliveries.iter().filter(|(_, _, is_pending)| *is_pending) {
        *waited.entry(*webhook).or_default() += 1;
    }
    for (webhook, count) in waited {
        if let Some(mut queue) = lock_queue(tx, workspace, webhook).await? {
            queue.state.pending -= count;
            queue.save(tx).await?;
            webhooks::count_dropped(tx, workspace, webhook, count).await?;
        }
    }
    let leases = deliveries.iter().map(|(id, webhook, _)| row![workspace, webhook, id]);
    let sql = "DELETE FROM delivery_leases
        WHERE workspace_id = ?1 AND webhook_id = ?2 AND delivery_id = ?3";
    tx.change_each(sql, leases, Affects::Nothing).await?;
    let rows = deliveries.iter().map(|(id, ..)| row![workspace, id]);
    let sql = "DELETE FROM deliveries WHERE workspace_id = ?1 AND id = ?2";
    Ok(tx.execute_each(sql, rows, Affects::Nothing).await?.iter().sum())
}

/// Metrics of all queues together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueMetrics {
    /// Pending deliveries of enabled webhooks.
    pub pending: i64,
    /// Deliveries of disabled webhooks.
    pub paused: i64,
    /// The earliest time at which a queue was to be scanned.
    pub next_at: Option<Timestamp>,
    /// Webhooks whose circuit breaker is open.
    pub open: i64,
}

/// Returns the metrics of all queues.
pub async fn queue_metrics(tx: &Tx<'_>, now: Timestamp) -> Result<QueueMetrics> {
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(CASE WHEN {SENDS} THEN q.pending ELSE 0 END), 0) AS BIGINT),
            CAST(COALESCE(SUM(CASE WHEN {SENDS} THEN 0 ELSE q.pending END), 0) AS BIGINT),
            MIN(q.next_at_ms),
            COALESCE(SUM(CASE WHEN q.open_until_ms > ?1 THEN 1 ELSE 0 END), 0)
         FROM webhook_queues q
         JOIN webhooks h ON h.workspace_id = q.workspace_id AND h.id = q.webhook_id"
    );
    tx.get(&sql, params![now], |row| {
        Ok(read_row!(row, 0 => QueueMetrics { pending, paused, next_at, open }))
    })
    .await
}
