//! The lines of webhooks: a row each, which is locked by whoever works on the line.

use std::collections::{BTreeMap, BTreeSet};

use galley_domain::delivery::Health;
use galley_domain::{DeliveryId, Timestamp, WebhookId, WorkspaceId};

use crate::content_pieces::in_list;
use crate::error::{Error, Result};
use crate::row::Row;
use crate::tx::WriteTx;
use crate::value::{Value, params};

use super::{Match, Recovery};

/// A webhook's line, locked.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) workspace: WorkspaceId,
    pub(super) webhook: WebhookId,
    pub(super) state: State,
    /// As it is in the store.
    saved: State,
}

/// What a line's row says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    /// When to look at it next.
    pub(super) next_at: Option<Timestamp>,
    /// How its receiver has been doing.
    pub(super) health: Health,
    /// How many deliveries wait.
    pub(super) pending: i64,
    /// None of them is due before.
    pub(super) due_from: Timestamp,
    /// None with a smaller id is leased; nothing: none at all.
    pub(super) leased_from: Option<DeliveryId>,
}

pub(super) const COLUMNS: &str = "workspace_id, webhook_id, next_at_ms, failures, slots, open_until_ms, pending, due_from_ms, leased_from";

pub(super) fn read(row: &Row<'_>) -> Result<Line> {
    let count = |column| u32::try_from(row.int(column)?).map_err(Error::corrupt);
    let state = State {
        next_at: row.opt_time(2)?,
        health: Health { failures: count(3)?, slots: count(4)?, open_until: row.opt_time(5)? },
        pending: row.int(6)?,
        due_from: row.time(7)?,
        leased_from: row.opt_parse(8)?,
    };
    Ok(Line { workspace: row.parse(0)?, webhook: row.parse(1)?, saved: state.clone(), state })
}

/// Makes the line of a new webhook.
pub(crate) async fn open(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
) -> Result<()> {
    let health = Health::default();
    tx.execute(
        "INSERT INTO webhook_queues (workspace_id, webhook_id, failures, slots, pending, leased_from)
         VALUES (?1, ?2, ?3, ?4, 0, NULL)",
        params![workspace, webhook, i64::from(health.failures), i64::from(health.slots)],
    )
    .await?;
    Ok(())
}

/// Locks the lines of webhooks, in an order that all keep to.
async fn lock_all(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhooks: &[WebhookId],
) -> Result<Vec<Line>> {
    let mut params = vec![Value::from(workspace)];
    let listed = in_list("webhook_id", webhooks.iter().copied(), &mut params);
    let lock = tx.for_update();
    let sql = format!(
        "SELECT {COLUMNS} FROM webhook_queues WHERE workspace_id = ?1{listed}
         ORDER BY webhook_id{lock}"
    );
    tx.query(&sql, &params, read).await
}

/// Locks the line of a webhook.
pub(super) async fn lock(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
) -> Result<Option<Line>> {
    Ok(lock_all(tx, workspace, &[webhook]).await?.pop())
}

impl Line {
    /// When it was to be looked at when it was locked.
    pub(super) fn was_to_be_looked_at(&self) -> Option<Timestamp> {
        self.saved.next_at
    }

    /// Sees to it that the line is looked at then at the latest, if anything may be sent by then.
    pub(super) fn look_at(&mut self, at: Timestamp) {
        let at = at.max(self.state.health.open_until.unwrap_or(at));
        self.state.next_at = Some(self.state.next_at.map_or(at, |next| next.min(at)));
    }

    /// To be called where deliveries begin to wait that are due then or later.
    pub(super) fn waits_from(&mut self, due: Timestamp) {
        self.state.due_from = self.state.due_from.min(due);
    }

    /// From now on its deliveries and leases are looked for from the beginning on.
    pub(super) fn forget_bounds(&mut self) {
        self.state.due_from = Timestamp::from_ms(0);
        self.state.leased_from = Some(DeliveryId::new(0));
    }

    /// Keeps the line, if it has changed.
    pub(super) async fn save(&self, tx: &WriteTx<'_>) -> Result<()> {
        save_all(tx, std::iter::once(self)).await
    }
}

async fn save_all(tx: &WriteTx<'_>, lines: impl Iterator<Item = &Line>) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = lines
        .filter(|line| line.state != line.saved)
        .map(|Line { workspace, webhook, state, .. }| {
            params![
                *workspace,
                *webhook,
                state.next_at,
                i64::from(state.health.failures),
                i64::from(state.health.slots),
                state.health.open_until,
                state.pending,
                state.due_from,
                state.leased_from
            ]
            .to_vec()
        })
        .collect();
    tx.execute_each(
        "UPDATE webhook_queues SET next_at_ms = ?3, failures = ?4, slots = ?5, open_until_ms = ?6,
            pending = ?7, due_from_ms = ?8, leased_from = ?9
         WHERE workspace_id = ?1 AND webhook_id = ?2",
        &rows,
    )
    .await
}

/// The lines that a transaction works on: each is read once, and written once at the end, where it has changed.
#[derive(Debug, Default)]
pub struct Lines {
    locked: BTreeMap<(WorkspaceId, WebhookId), Line>,
    /// What was looked up for the lines to be locked in time.
    matches: Option<Vec<Match>>,
    recoveries: Option<Vec<Recovery>>,
}

impl Lines {
    /// One that was locked before.
    pub(super) fn get(&self, workspace: WorkspaceId, webhook: WebhookId) -> Option<&Line> {
        self.locked.get(&(workspace, webhook))
    }

    /// All that were locked.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Line> {
        self.locked.values()
    }

    /// Locks those of webhooks that are not locked yet, and gives them all.
    pub(super) async fn lock(
        &mut self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
        webhooks: &[WebhookId],
    ) -> Result<Vec<&mut Line>> {
        let is_new = |webhook: &WebhookId| !self.locked.contains_key(&(workspace, *webhook));
        let new: Vec<WebhookId> = webhooks.iter().copied().filter(is_new).collect();
        if !new.is_empty() {
            for line in lock_all(tx, workspace, &new).await? {
                self.put(line);
            }
        }
        let wanted: BTreeSet<_> = webhooks.iter().map(|webhook| (workspace, *webhook)).collect();
        let locked = self.locked.iter_mut().filter(|(of, _)| wanted.contains(of));
        Ok(locked.map(|(_, line)| line).collect())
    }

    /// Keeps what the lines that are locked now are locked for.
    pub(super) fn look_ahead(&mut self, matches: Vec<Match>, recoveries: Vec<Recovery>) {
        (self.matches, self.recoveries) = (Some(matches), Some(recoveries));
    }

    /// Whether all that is to be expanded was looked up before.
    pub fn has_matches_ahead(&self) -> bool {
        self.matches.is_some()
    }

    pub(super) fn matches_ahead(&mut self) -> Option<Vec<Match>> {
        self.matches.as_mut().map(std::mem::take)
    }

    pub(super) fn recoveries_ahead(&mut self) -> Option<Vec<Recovery>> {
        self.recoveries.as_mut().map(std::mem::take)
    }

    /// Keeps in mind what became of a line.
    pub(super) fn put(&mut self, line: Line) {
        self.locked.insert((line.workspace, line.webhook), line);
    }

    /// Writes the lines that have changed: to be called at the transaction's end.
    pub async fn save(self, tx: &WriteTx<'_>) -> Result<()> {
        save_all(tx, self.locked.values()).await
    }

    /// Writes those that have changed, for others to read them.
    pub(super) async fn save_for_now(&mut self, tx: &WriteTx<'_>) -> Result<()> {
        let written = std::mem::take(&mut self.locked);
        save_all(tx, written.values()).await
    }
}
