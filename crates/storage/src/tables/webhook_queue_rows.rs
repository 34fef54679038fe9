//! The queue of each webhook: a row that the delivery queue locks and updates.

use galley_domain::delivery::CircuitBreaker;
use galley_domain::{WebhookId, WorkspaceId};

use crate::engine::{Affects, Result, WriteTx, params};

/// Inserts the queue of a new webhook.
pub(crate) async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
) -> Result<()> {
    let health = CircuitBreaker::default();
    let sql = "INSERT INTO webhook_queues
            (workspace_id, webhook_id, failures, slots, pending, leased_from)
        VALUES (?1, ?2, ?3, ?4, 0, NULL)";
    tx.change(sql, params![workspace, webhook, health.failures, health.slots], Affects::Nothing)
        .await
}
