//! Webhooks. The callers encrypt the secrets.

use std::collections::BTreeMap;

use galley_domain::delivery::CircuitBreaker;
use galley_domain::event::EventType;
use galley_domain::publication::ContentView;
use galley_domain::webhook::{DisabledReason, Webhook};
use galley_domain::{ContentGroupId, Timestamp, WebhookId, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list, params, read_row, row};
use crate::tables::paging::IdPage;

const COLUMNS: &str = "h.id, h.url, h.name, h.description, h.event, h.events, \
    h.content_group_id, h.extension, h.enabled, h.disabled_reason, h.failing_since_ms, h.version, h.dropped, \
    h.hides_emails, h.view";

/// Returns the condition that a webhook has one of the events.
pub(crate) fn has_one_of(events: impl IntoIterator<Item = EventType>) -> String {
    let events = events.into_iter();
    let conditions: Vec<String> = events
        .map(|event| format!("',' || h.events || ',' LIKE '%,{},%'", event.as_str()))
        .collect();
    format!("({})", conditions.join(" OR "))
}

/// Returns the condition that a webhook's group has an effect on one of its events.
fn group_applies() -> String {
    has_one_of(EventType::ALL.iter().copied().filter(|event| event.is_of_groups()))
}

/// The condition that a webhook's deliveries are sent. They are also sent if the webhook was
/// disabled because its group was deleted; no new events match it.
pub(crate) const SENDS: &str = "(h.enabled OR COALESCE(h.disabled_reason, '') = 'group_deleted')";

fn read(row: &Row<'_>) -> Result<Webhook> {
    Ok(read_row!(row, 0 => Webhook {
        id, url, name, description, event, events, content_group_id, extension, enabled,
        disabled_reason, failing_since, version, dropped, hides_emails, view
    }))
}

/// The webhooks that a client may see; by default all of the workspace.
#[derive(Debug, Clone, Copy, Default)]
pub struct VisibleWebhooks<'g> {
    /// Webhooks on groups in the subtree of one of these, without events of members; `None` for
    /// all.
    pub within: Option<&'g [ContentGroupId]>,
    /// The view of the client. In the published view, only webhooks of that view are visible.
    pub view: ContentView,
}

/// Returns the condition that a webhook is visible.
pub(crate) fn visible_filter(
    VisibleWebhooks { within, view }: VisibleWebhooks<'_>,
    params: &mut Vec<Value<'_>>,
) -> String {
    let of_view = match view {
        ContentView::Current => "",
        ContentView::Published => " AND h.view = 'published'",
    };
    let Some(roots) = within else { return of_view.to_owned() };
    let list = in_list("g.ancestor_id", roots.iter().copied(), params);
    let of_members = EventType::ALL.iter().copied().filter(|event| event.is_of_members());
    format!(
        "{of_view} AND NOT {} AND h.content_group_id IN (
            SELECT g.group_id FROM content_group_paths g WHERE g.workspace_id = ?1{list})",
        has_one_of(of_members)
    )
}

/// Finds a visible webhook.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: WebhookId,
    visible: VisibleWebhooks<'_>,
) -> Result<Option<Webhook>> {
    let mut params = vec![Value::from(workspace), Value::from(id)];
    let filter = visible_filter(visible, &mut params);
    let sql =
        format!("SELECT {COLUMNS} FROM webhooks h WHERE h.workspace_id = ?1 AND h.id = ?2{filter}");
    tx.find(&sql, &params, read).await
}

/// The filters and the page of a list of webhooks.
#[derive(Debug, Clone, Default)]
pub struct WebhookListQuery<'a> {
    /// Webhooks of any extension only, or of this one.
    pub extension: Option<Option<&'a str>>,
    /// Visible webhooks only.
    pub visible: VisibleWebhooks<'a>,
    /// The page.
    pub page: IdPage,
}

/// Lists webhooks by creation.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    query: &WebhookListQuery<'_>,
) -> Result<Vec<Webhook>> {
    let mut params = query.page.params(workspace).to_vec();
    let mut filter = visible_filter(query.visible, &mut params);
    match query.extension {
        Some(Some(extension)) => {
            params.push(extension.into());
            filter.push_str(&format!(" AND h.extension = ?{}", params.len()));
        }
        Some(None) => filter.push_str(" AND h.extension IS NOT NULL"),
        None => {}
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM webhooks h WHERE h.workspace_id = ?1 AND h.id > ?2{filter}
         ORDER BY h.id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Inserts a new webhook with its encrypted secret and its queue.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    webhook: &Webhook,
    sealed_secret: Option<&[u8]>,
    now: Timestamp,
) -> Result<()> {
    let mut params = vec![Value::from(workspace), Value::from(webhook.id)];
    push_columns(webhook, &mut params);
    params.extend(row![&webhook.extension, sealed_secret, now, webhook.view]);
    let sql = "INSERT INTO webhooks (workspace_id, id, url, name, description, event, events,
            content_group_id, enabled, disabled_reason, failing_since_ms, version, hides_emails,
            extension, sealed_secret, created_at_ms, view)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
    tx.execute(sql, &params, Affects::Nothing).await?;
    insert_queue(tx, workspace, webhook.id).await
}

/// Inserts the queue of a new webhook.
async fn insert_queue(tx: &WriteTx<'_>, workspace: WorkspaceId, webhook: WebhookId) -> Result<()> {
    let health = CircuitBreaker::default();
    let sql = "INSERT INTO webhook_queues
            (workspace_id, webhook_id, failures, slots, pending, leased_from)
        VALUES (?1, ?2, ?3, ?4, 0, NULL)";
    tx.change(sql, params![workspace, webhook, health.failures, health.slots], Affects::Nothing)
        .await
}

/// Updates a webhook.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, webhook: &Webhook) -> Result<()> {
    let mut params = vec![Value::from(workspace), Value::from(webhook.id)];
    push_columns(webhook, &mut params);
    let sql = "UPDATE webhooks SET url = ?3, name = ?4, description = ?5, event = ?6,
            events = ?7, content_group_id = ?8, enabled = ?9, disabled_reason = ?10,
            failing_since_ms = ?11, version = ?12, hides_emails = ?13
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, &params, Affects::Nothing).await
}

fn push_columns<'w>(webhook: &'w Webhook, params: &mut Vec<Value<'w>>) {
    params.extend(row! {
        &webhook.url, &webhook.name, &webhook.description, webhook.event, &webhook.events,
        webhook.content_group_id, webhook.enabled, webhook.disabled_reason, webhook.failing_since,
        webhook.version, webhook.hides_emails
    });
}

/// Disables the webhooks on a group that is being deleted.
pub async fn disable_on_group(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<()> {
    let sql = format!(
        "UPDATE webhooks AS h SET enabled = ?3, disabled_reason = ?4, version = version + 1
         WHERE workspace_id = ?1 AND content_group_id = ?2 AND enabled AND {}",
        group_applies()
    );
    tx.change(
        &sql,
        params![workspace, group, false, DisabledReason::GroupDeleted.as_str()],
        Affects::Nothing,
    )
    .await
}

/// The receiver of a webhook's deliveries.
pub(crate) struct DeliveryTarget {
    pub(crate) url: String,
    pub(crate) hides_emails: bool,
    pub(crate) sends: bool,
    /// The encrypted secrets that sign a delivery: the current one, and the previous one for a time
    /// after a rotation.
    pub(crate) sealed_secrets: Vec<Vec<u8>>,
}

pub(crate) async fn find_to_send(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: WebhookId,
    now: Timestamp,
) -> Result<Option<DeliveryTarget>> {
    let sql = format!(
        "SELECT h.url, h.hides_emails, {SENDS}, h.sealed_secret,
            CASE WHEN h.previous_secret_until_ms > ?3 THEN h.previous_sealed_secret END
         FROM webhooks h WHERE h.workspace_id = ?1 AND h.id = ?2"
    );
    tx.find(&sql, params![workspace, id, now], |row| {
        let secrets: [Option<Vec<u8>>; 2] = [row.get(3)?, row.get(4)?];
        let sealed_secrets = secrets.into_iter().flatten().collect();
        Ok(read_row!(row, 0 => DeliveryTarget { url, hides_emails, sends; sealed_secrets }))
    })
    .await
}

/// Finds the current encrypted secret of a webhook.
pub async fn find_sealed_secret(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: WebhookId,
) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT sealed_secret FROM webhooks WHERE workspace_id = ?1 AND id = ?2";
    Ok(tx.find(sql, params![workspace, id], |row| row.get(0)).await?.flatten())
}

/// Replaces the encrypted secret of a webhook. The previous one also signs deliveries until
/// `until`.
pub async fn rotate_secret(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: WebhookId,
    sealed: &[u8],
    previous: Option<&[u8]>,
    until: Timestamp,
) -> Result<()> {
    let sql = "UPDATE webhooks SET sealed_secret = ?3, previous_sealed_secret = ?4,
            previous_secret_until_ms = ?5
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id, sealed, previous, until], Affects::Nothing).await
}

/// Returns those of `ids` that exist, each with true if its deliveries are sent.
pub(crate) async fn find_sending(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[WebhookId],
) -> Result<BTreeMap<WebhookId, bool>> {
    let mut params = vec![Value::from(workspace)];
    let listed = in_list("h.id", ids.iter().copied(), &mut params);
    let sql = format!("SELECT h.id, {SENDS} FROM webhooks h WHERE h.workspace_id = ?1{listed}");
    let found = tx.query(&sql, &params, |row| Ok((row.get(0)?, row.get(1)?))).await?;
    Ok(found.into_iter().collect())
}

/// Adds to the number of a webhook's dropped deliveries.
pub(crate) async fn count_dropped(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: WebhookId,
    count: i64,
) -> Result<()> {
    let sql = "UPDATE webhooks SET dropped = dropped + ?3, version = version + 1
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id, count], Affects::Nothing).await
}

/// A failing webhook: its id, its name, the reason why it is disabled, and the time since which it
/// fails.
pub type FailingWebhook = (WebhookId, String, Option<DisabledReason>, Option<Timestamp>);

/// Lists the first webhooks of all workspaces that fail, or were disabled for failing.
pub async fn list_failing(tx: &Tx<'_>, limit: i64) -> Result<Vec<FailingWebhook>> {
    let sql = "SELECT id, name, disabled_reason, failing_since_ms FROM webhooks
        WHERE failing_since_ms IS NOT NULL OR disabled_reason IN ('gone', 'failing')
        ORDER BY id LIMIT ?1";
    tx.query(sql, params![limit], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .await
}

/// Records that a webhook's deliveries succeed.
pub async fn record_success(tx: &WriteTx<'_>, workspace: WorkspaceId, id: WebhookId) -> Result<()> {
    let sql = "UPDATE webhooks SET failing_since_ms = NULL, version = version + 1
        WHERE workspace_id = ?1 AND id = ?2 AND failing_since_ms IS NOT NULL";
    tx.change(sql, params![workspace, id], Affects::Nothing).await
}

/// Records that a webhook's deliveries fail. Returns the time since which they do.
pub async fn record_failure(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: WebhookId,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let sql = "UPDATE webhooks SET failing_since_ms = ?3, version = version + 1
        WHERE workspace_id = ?1 AND id = ?2 AND failing_since_ms IS NULL";
    tx.execute(sql, params![workspace, id, now], Affects::Nothing).await?;
    let sql = "SELECT failing_since_ms FROM webhooks WHERE workspace_id = ?1 AND id = ?2";
    Ok(tx.find(sql, params![workspace, id], |row| row.get(0)).await?.flatten())
}

/// Disables a webhook whose deliveries are sent. Returns false for any other.
pub async fn disable(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: WebhookId,
    reason: DisabledReason,
) -> Result<bool> {
    let sql = format!(
        "UPDATE webhooks AS h SET enabled = ?3, disabled_reason = ?4, version = version + 1
         WHERE workspace_id = ?1 AND id = ?2 AND {SENDS}"
    );
    let changed =
        tx.execute(&sql, params![workspace, id, false, reason.as_str()], Affects::Nothing).await?;
    Ok(changed > 0)
}

/// Deletes a webhook.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: WebhookId) -> Result<()> {
    let sql = "DELETE FROM webhooks WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id], Affects::Nothing).await
}
