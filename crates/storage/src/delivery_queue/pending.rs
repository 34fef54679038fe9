//! Work that waits in the queue: events to fan out, and recoveries.

use galley_domain::event::EventType;
use galley_domain::{EventId, Timestamp, WebhookId, WorkspaceId};

use super::scan_position::ScanPosition;
use crate::engine::{Candidates, Result, Row, WriteTx, lock_candidates, params, read_row};

/// The runs of events that one batch reads.
pub(super) const FAN_OUTS_PER_BATCH: usize = 16;

/// The recoveries that one batch reads.
const RECOVERIES_PER_BATCH: usize = 16;

/// A run of events with the webhooks that they matched, whose deliveries are not all created yet.
#[derive(Debug)]
pub(super) struct PendingFanOut {
    pub(super) id: EventId,
    pub(super) event_type: EventType,
    pub(super) part: i64,
    pub(super) workspace: WorkspaceId,
    pub(super) first_sequence: i64,
    pub(super) last_sequence: i64,
    pub(super) webhooks: Vec<WebhookId>,
    /// The number of webhooks that have a delivery of the first event.
    pub(super) done: usize,
}

fn read_fan_out(row: &Row<'_>) -> Result<PendingFanOut> {
    Ok(read_row!(row, 0 => PendingFanOut {
        id, event_type, part, workspace, first_sequence, last_sequence, webhooks, done
    }))
}

/// Locks and returns the next runs of events to fan out, the oldest first.
pub(super) async fn pending_fan_outs(
    tx: &WriteTx<'_>,
    position: &ScanPosition,
) -> Result<Vec<PendingFanOut>> {
    let rows = Candidates {
        columns: "id, event_type, part, workspace_id, first_sequence, last_sequence, webhook_ids,
            done",
        table: "event_matches",
        key: "id",
        condition: "id >= ?1",
        order: "id, event_type, part",
    };
    let params = params![position.begin_scan(tx)];
    let mut matches =
        lock_candidates::<EventId, _>(tx, rows, params, FAN_OUTS_PER_BATCH, read_fan_out).await?;
    matches.sort_by_key(|matched| (matched.id, matched.part));
    if let Some(first) = matches.first() {
        position.found(first.id);
    }
    Ok(matches)
}

/// A request to send deliveries of a webhook again, and its progress.
#[derive(Debug)]
pub(super) struct PendingRecovery {
    pub(super) workspace: WorkspaceId,
    pub(super) webhook: WebhookId,
    pub(super) since: Timestamp,
    pub(super) done: String,
    pub(super) last: String,
}

/// Locks and returns the next recoveries.
pub(super) async fn pending_recoveries(tx: &WriteTx<'_>) -> Result<Vec<PendingRecovery>> {
    let rows = Candidates {
        columns: "workspace_id, webhook_id, since_ms, done_id, last_id",
        table: "webhook_recoveries",
        key: "webhook_id",
        condition: "1 = 1",
        order: "workspace_id, webhook_id",
    };
    let read = |row: &Row<'_>| {
        Ok(read_row!(row, 0 => PendingRecovery { workspace, webhook, since, done, last }))
    };
    lock_candidates::<WebhookId, _>(tx, rows, &[], RECOVERIES_PER_BATCH, read).await
}
