//! The queues of webhooks: a row each, which the transaction that works on it locks.

use std::collections::{BTreeMap, BTreeSet};

use galley_domain::delivery::CircuitBreaker;
use galley_domain::{DeliveryId, Timestamp, WebhookId, WorkspaceId};

use super::pending::{PendingFanOut, PendingRecovery};
use crate::engine::{Affects, Result, Row, Value, WriteTx, in_list, read_row, row};

/// The locked queue of a webhook.
#[derive(Debug, Clone)]
pub(super) struct WebhookQueue {
    pub(super) workspace: WorkspaceId,
    pub(super) webhook: WebhookId,
    pub(super) state: QueueState,
    /// The state in the store.
    saved: QueueState,
}

/// The columns of a queue's row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueueState {
    /// The time of the next scan.
    pub(super) next_at: Option<Timestamp>,
    /// The health of the receiver.
    pub(super) health: CircuitBreaker,
    /// The number of pending deliveries.
    pub(super) pending: i64,
    /// A lower bound of the times at which pending deliveries are due.
    pub(super) due_from: Timestamp,
    /// A lower bound of the ids of leased deliveries; `None` if none is leased.
    pub(super) leased_from: Option<DeliveryId>,
}

pub(super) const COLUMNS: &str = "workspace_id, webhook_id, next_at_ms, failures, slots, \
    open_until_ms, pending, due_from_ms, leased_from";

pub(super) fn read(row: &Row<'_>) -> Result<WebhookQueue> {
    let health = read_row!(row, 3 => CircuitBreaker { failures, slots, open_until });
    let next_at = row.get(2)?;
    let state = read_row!(row, 6 => QueueState { pending, due_from, leased_from; next_at, health });
    Ok(read_row!(row, 0 => WebhookQueue { workspace, webhook; saved: state.clone(), state }))
}

/// Locks the queues of webhooks, in the order of their ids.
async fn lock_all(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhooks: &[WebhookId],
) -> Result<Vec<WebhookQueue>> {
    let mut params = vec![Value::from(workspace)];
    let listed = in_list("webhook_id", webhooks.iter().copied(), &mut params);
    let lock = tx.for_update();
    let sql = format!(
        "SELECT {COLUMNS} FROM webhook_queues WHERE workspace_id = ?1{listed}
         ORDER BY webhook_id{lock}"
    );
    tx.query(&sql, &params, read).await
}

/// Locks the queue of a webhook.
pub(super) async fn lock(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
) -> Result<Option<WebhookQueue>> {
    Ok(lock_all(tx, workspace, &[webhook]).await?.pop())
}

impl WebhookQueue {
    /// Returns the time of the next scan in the store.
    pub(super) fn saved_next_scan(&self) -> Option<Timestamp> {
        self.saved.next_at
    }

    /// Schedules a scan at that time at the latest, but not while the circuit breaker is open.
    pub(super) fn scan_at(&mut self, at: Timestamp) {
        let at = at.max(self.state.health.open_until.unwrap_or(at));
        self.state.next_at = Some(self.state.next_at.map_or(at, |next| next.min(at)));
    }

    /// Lowers the bound for deliveries that are due at that time or later.
    pub(super) fn add_due_from(&mut self, due: Timestamp) {
        self.state.due_from = self.state.due_from.min(due);
    }

    /// Resets the bounds, so that the next scan begins at the start.
    pub(super) fn reset_bounds(&mut self) {
        self.state.due_from = Timestamp::from_ms(0);
        self.state.leased_from = Some(DeliveryId::new(0));
    }

    /// Writes the queue if it has changed.
    pub(super) async fn save(&self, tx: &WriteTx<'_>) -> Result<()> {
        save_all(tx, std::iter::once(self)).await
    }
}

async fn save_all(
    tx: &WriteTx<'_>,
    queues: impl Iterator<Item = &WebhookQueue> + Send,
) -> Result<()> {
    let changed = queues.filter(|queue| queue.state != queue.saved);
    let rows = changed.map(|WebhookQueue { workspace, webhook, state, .. }| {
        row! {
            workspace, webhook, state.next_at, state.health.failures, state.health.slots,
            state.health.open_until, state.pending, state.due_from, state.leased_from
        }
    });
    let sql =
        "UPDATE webhook_queues SET next_at_ms = ?3, failures = ?4, slots = ?5, open_until_ms = ?6,
            pending = ?7, due_from_ms = ?8, leased_from = ?9
         WHERE workspace_id = ?1 AND webhook_id = ?2";
    tx.change_each(sql, rows, Affects::Nothing).await
}

/// The queues that a transaction has locked. Each is read once, and written once at the end if it
/// has changed.
#[derive(Debug, Default)]
pub struct LockedQueues {
    locked: BTreeMap<(WorkspaceId, WebhookId), WebhookQueue>,
    /// Work that was read ahead to lock its queues in order.
    fan_outs: Option<Vec<PendingFanOut>>,
    recoveries: Option<Vec<PendingRecovery>>,
}

impl LockedQueues {
    /// Returns a queue that is locked.
    pub(super) fn get(&self, workspace: WorkspaceId, webhook: WebhookId) -> Option<&WebhookQueue> {
        self.locked.get(&(workspace, webhook))
    }

    /// Iterates over the locked queues.
    pub(super) fn iter(&self) -> impl Iterator<Item = &WebhookQueue> {
        self.locked.values()
    }

    /// Locks queues that are not locked yet, and returns them all.
    pub(super) async fn lock(
        &mut self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
        webhooks: &[WebhookId],
    ) -> Result<Vec<&mut WebhookQueue>> {
        let is_new = |webhook: &WebhookId| !self.locked.contains_key(&(workspace, *webhook));
        let new: Vec<WebhookId> = webhooks.iter().copied().filter(is_new).collect();
        if !new.is_empty() {
            for queue in lock_all(tx, workspace, &new).await? {
                self.put(queue);
            }
        }
        let wanted: BTreeSet<_> = webhooks.iter().map(|webhook| (workspace, *webhook)).collect();
        let locked = self.locked.iter_mut().filter(|(of, _)| wanted.contains(of));
        Ok(locked.map(|(_, queue)| queue).collect())
    }

    /// Stores the work that was read ahead.
    pub(super) fn set_read_ahead(
        &mut self,
        fan_outs: Vec<PendingFanOut>,
        recoveries: Vec<PendingRecovery>,
    ) {
        (self.fan_outs, self.recoveries) = (Some(fan_outs), Some(recoveries));
    }

    /// Returns true if all work to fan out was read ahead.
    pub fn has_read_ahead(&self) -> bool {
        self.fan_outs.is_some()
    }

    pub(super) fn take_fan_outs(&mut self) -> Option<Vec<PendingFanOut>> {
        self.fan_outs.as_mut().map(std::mem::take)
    }

    pub(super) fn take_recoveries(&mut self) -> Option<Vec<PendingRecovery>> {
        self.recoveries.as_mut().map(std::mem::take)
    }

    /// Stores the state of a locked queue, to be written by `save` or `flush`.
    pub(super) fn put(&mut self, queue: WebhookQueue) {
        self.locked.insert((queue.workspace, queue.webhook), queue);
    }

    /// Writes the queues that have changed. Call it at the transaction's end.
    pub async fn save(self, tx: &WriteTx<'_>) -> Result<()> {
        save_all(tx, self.locked.values()).await
    }

    /// Writes the queues that have changed and forgets them, so that they can be read again.
    pub(super) async fn flush(&mut self, tx: &WriteTx<'_>) -> Result<()> {
        let written = std::mem::take(&mut self.locked);
        save_all(tx, written.values()).await
    }
}
