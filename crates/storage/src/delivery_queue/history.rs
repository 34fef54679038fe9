//! History: deliveries as the API lists them.

use galley_domain::delivery::DeliveryStatus;
use galley_domain::event::{EventType, ResourceChange};
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, DeliveryId, EventId, Timestamp, WebhookId, WorkspaceId};

use crate::engine::{Result, Tx, Value, params, read_row, row};
use crate::tables::webhooks::{self, SENDS, VisibleWebhooks};
use crate::tables::{IdPage, events};

/// The condition that a delivery `d` has failed an attempt and awaits a retry.
pub(super) const AWAITS_RETRY: &str = "d.status = 'pending' AND d.attempts > 0";

/// A delivery, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The id.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The event.
    pub event: EventId,
    /// The event's type as the webhook sees it.
    pub event_type: String,
    /// The event's sequence number; `None` for a sample.
    pub sequence: Option<i64>,
    /// The status.
    pub status: DeliveryStatus,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the next attempt of a pending delivery.
    pub next_attempt_at: Option<Timestamp>,
    /// The results of all attempts, as JSON.
    pub log: Option<String>,
}

/// The filters and the page of a list of deliveries.
#[derive(Debug, Clone, Default)]
pub struct DeliveryListQuery {
    /// Deliveries of this webhook only.
    pub webhook: Option<WebhookId>,
    /// Deliveries with this status only.
    pub status: Option<DeliveryStatus>,
    /// Deliveries of this event only.
    pub event: Option<EventId>,
    /// Deliveries of webhooks on groups in the subtree of one of these only; `None` for all.
    pub within: Option<Vec<ContentGroupId>>,
    /// The view of the client ([`VisibleWebhooks`]).
    pub view: ContentView,
    /// The page. It begins with the delivery before the id `after`, as the newest come first.
    pub page: IdPage,
}

/// Lists deliveries, the newest first.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    query: &DeliveryListQuery,
) -> Result<Vec<Delivery>> {
    let mut params = row![workspace, query.page.limit, query.page.offset].to_vec();
    let visible = VisibleWebhooks { within: query.within.as_deref(), view: query.view };
    let mut filter = webhooks::visible_filter(visible, &mut params);
    let mut only = |condition: &str, value: Value<'static>| {
        params.push(value);
        filter.push_str(&format!(" AND {condition} ?{}", params.len()));
    };
    if let Some(webhook) = query.webhook {
        only("d.webhook_id =", webhook.into());
    }
    if let Some(event) = query.event {
        only("d.event_id =", event.into());
    }
    if let Some(before) = &query.page.after {
        only("d.id <", before.clone().into());
    }
    let is_sent = format!("({SENDS} OR d.lane = 0)");
    filter.push_str(&match query.status {
        None => String::new(),
        Some(DeliveryStatus::Pending) => format!(" AND d.status = 'pending' AND {is_sent}"),
        Some(DeliveryStatus::Paused) => format!(" AND d.status = 'pending' AND NOT {is_sent}"),
        Some(DeliveryStatus::Delivered) => " AND d.status = 'delivered'".to_owned(),
        Some(DeliveryStatus::Failed) => " AND d.status = 'failed'".to_owned(),
    });
    let sql = format!(
        "SELECT d.id, d.webhook_id, d.event_id, d.event_type, d.sequence, d.status,
            d.created_at_ms, d.due_at_ms, d.log, {is_sent}
         FROM deliveries d
         JOIN webhooks h ON h.workspace_id = d.workspace_id AND h.id = d.webhook_id
         WHERE d.workspace_id = ?1{filter} ORDER BY d.id DESC LIMIT ?2 OFFSET ?3"
    );
    tx.query(&sql, &params, |row| {
        let status: DeliveryStatus = row.get(5)?;
        let is_paused = status == DeliveryStatus::Pending && !row.get(9)?;
        let status = if is_paused { DeliveryStatus::Paused } else { status };
        let next_attempt_at = Some(row.get(7)?).filter(|_| status == DeliveryStatus::Pending);
        let (created_at, log) = (row.get(6)?, row.get(8)?);
        Ok(read_row!(row, 0 => Delivery {
            id, webhook, event, event_type, sequence; status, created_at, next_attempt_at, log
        }))
    })
    .await
}

/// A selection of a webhook's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverySelection {
    /// Pending deliveries, also those of a disabled webhook, and events to fan out.
    Pending,
    /// Deliveries that failed or await a retry, and were created at this time or later.
    RecoverableSince(Timestamp),
    /// One delivery.
    One(DeliveryId),
}

/// Lists the events that the selected deliveries show, each once: the type as the webhook sees it,
/// and the occurrence. It skips samples and expired events.
pub async fn list_visible_occurrences(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    webhook: WebhookId,
    which: DeliverySelection,
) -> Result<Vec<(EventType, ResourceChange)>> {
    let of_deliveries = |condition: &str| {
        format!(
            "SELECT d.event_type, e.type, e.path_before, e.path_after FROM deliveries d
             JOIN events e ON e.workspace_id = d.workspace_id AND e.sequence = d.sequence
             WHERE d.workspace_id = ?1 AND d.webhook_id = ?2 AND {condition}"
        )
    };
    let mut params = vec![Value::from(workspace), Value::from(webhook)];
    let sql = match which {
        DeliverySelection::Pending => {
            params.push(format!("%{webhook}%").into());
            [
                of_deliveries("d.status = 'pending'"),
                of_deliveries(
                    "d.status = 'failed' AND EXISTS (SELECT 1 FROM webhook_recoveries r
                        WHERE r.workspace_id = ?1 AND r.webhook_id = ?2 AND d.id > r.done_id
                            AND d.id <= r.last_id AND d.created_at_ms >= r.since_ms)",
                ),
                "SELECT m.event_type, e.type, e.path_before, e.path_after FROM event_matches m
                 JOIN events e ON e.workspace_id = m.workspace_id
                    AND e.sequence >= m.first_sequence AND e.sequence <= m.last_sequence
                 WHERE m.workspace_id = ?1 AND m.webhook_ids LIKE ?3"
                    .to_owned(),
            ]
            .join(" UNION ")
        }
        DeliverySelection::RecoverableSince(since) => {
            params.push(since.into());
            of_deliveries(&format!(
                "(d.status = 'failed' OR {AWAITS_RETRY}) AND d.created_at_ms >= ?3"
            ))
        }
        DeliverySelection::One(id) => {
            params.push(id.into());
            of_deliveries("d.id = ?3")
        }
    };
    let sql =
        format!("SELECT DISTINCT event_type, type, path_before, path_after FROM ({sql}) AS shown");
    tx.query(&sql, &params, |row| Ok((row.get(0)?, events::read_change(row.get(1)?, row, 2)?)))
        .await
}

/// Returns the webhook of a delivery.
pub async fn find_webhook(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: DeliveryId,
) -> Result<Option<WebhookId>> {
    let sql = "SELECT webhook_id FROM deliveries WHERE workspace_id = ?1 AND id = ?2";
    tx.find(sql, params![workspace, id], |row| row.get(0)).await
}
