//! Effects of delivery attempts on webhooks, and operations on deliveries: tests, retries,
//! recoveries.

use galley_api_types::sample_events::sample_data;
use galley_domain::audit::AuditAction;
use galley_domain::delivery::{DeliveryStatus, FAILING_TIMEOUT};
use galley_domain::webhook::{DisabledReason, Webhook};
use galley_domain::{DeliveryId, EventId, MailId, Timestamp, WebhookId, WorkspaceId};
use galley_storage::delivery_queue::{
    self, Delivery, DeliveryListQuery, DeliverySelection, ReceiverState,
};
use galley_storage::mails::{self, QueuedMail};
use galley_storage::webhooks::VisibleWebhooks;
use galley_storage::{IdPage, Tx, WriteTx, members, webhooks, workspaces};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::members::mail_aad;
use crate::operations::webhook_access::{authority, check_may_see, check_may_send, find};
use crate::scope::Scope;
use crate::secrets::SecretKey;

/// The kind of the mail that reports a disabled webhook.
pub const DISABLED_MAIL: &str = "webhook_disabled";

/// The content of that mail, as stored until it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisabledMail {
    /// The webhook's name.
    pub webhook: String,
    /// The workspace's name.
    pub workspace: String,
    /// The reason why it was disabled.
    pub reason: String,
    /// The time since which no delivery has succeeded.
    pub failing_since_ms: Option<i64>,
}

/// Applies the results of a webhook's last attempts: records success or failure, and disables a
/// webhook whose receiver is gone or has failed for too long.
pub async fn apply_receiver_state(
    tx: &WriteTx<'_>,
    environment: &Environment,
    key: &SecretKey,
    verdict: ReceiverState,
) -> Result<(), Error> {
    let ReceiverState { workspace, webhook, is_well, is_gone } = verdict;
    if is_well && !is_gone {
        return Ok(webhooks::record_success(tx, workspace, webhook).await?);
    }
    let now = environment.now();
    let since = webhooks::record_failure(tx, workspace, webhook, now).await?;
    let limit = i64::try_from(FAILING_TIMEOUT.as_millis()).unwrap_or(i64::MAX);
    let reason = if is_gone {
        DisabledReason::Gone
    } else if since.is_some_and(|since| now.ms() - since.ms() >= limit) {
        DisabledReason::Failing
    } else {
        return Ok(());
    };
    if !webhooks::disable(tx, workspace, webhook, reason).await? {
        return Ok(());
    }
    tracing::info!(%workspace, %webhook, reason = reason.as_str(), "disabled a webhook");
    let changes = AuditChanges::updated(json!({"enabled": true}), json!({"enabled": false}));
    let (scope, action) = (Scope::whole(workspace), AuditAction::WebhookUpdate);
    audit::record(tx, environment, &scope, action, webhook, changes);
    let found = webhooks::find(tx, workspace, webhook, VisibleWebhooks::default()).await?;
    match found {
        Some(webhook) => mail_admins(tx, environment, key, workspace, &webhook, reason).await,
        None => Ok(()),
    }
}

async fn mail_admins(
    tx: &WriteTx<'_>,
    environment: &Environment,
    key: &SecretKey,
    workspace: WorkspaceId,
    webhook: &Webhook,
    reason: DisabledReason,
) -> Result<(), Error> {
    let name = workspaces::find(tx, workspace).await?.ok_or_else(Error::not_found)?.name;
    let values = DisabledMail {
        webhook: webhook.name.as_str().to_owned(),
        workspace: name.into(),
        reason: reason.as_str().to_owned(),
        failing_since_ms: webhook.failing_since.map(Timestamp::ms),
    };
    let text = serde_json::to_vec(&values).expect("texts are JSON");
    for (member, recipient) in members::list_admin_addresses(tx, workspace).await? {
        let id = MailId::new(environment.new_id());
        let sealed = key.encrypt(&mail_aad(id), &text);
        let kind = DISABLED_MAIL.to_owned();
        let mail = QueuedMail { id, kind, member: Some(member), recipient, sealed };
        mails::insert(tx, workspace, &mail, environment.now()).await?;
    }
    Ok(())
}

/// Sends a sample event to a webhook.
pub async fn send_test(
    caller: &Caller,
    webhook: WebhookId,
    request: IdempotentRequest,
    respond: Respond<DeliveryId>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let send = async move |tx: &WriteTx<'_>| send_test_in(tx, &own, webhook).await;
    idempotency::create(caller, "webhooks.test", request, None, send, respond).await
}

/// Sends a delivery again.
pub async fn retry(
    caller: &Caller,
    delivery: DeliveryId,
    request: IdempotentRequest,
    respond: Respond<DeliveryId>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let retry = async move |tx: &WriteTx<'_>| retry_in(tx, &own, delivery).await.map(|()| delivery);
    idempotency::create(caller, "deliveries.retry", request, None, retry, respond).await
}

/// Sends again the deliveries of a webhook since a time.
pub async fn recover(
    caller: &Caller,
    webhook: WebhookId,
    since: Timestamp,
    request: IdempotentRequest,
    respond: Respond<WebhookId>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let recover =
        async move |tx: &WriteTx<'_>| recover_in(tx, &own, webhook, since).await.map(|()| webhook);
    idempotency::create(caller, "webhooks.recover", request, None, recover, respond).await
}

/// The filters and the page of a list of deliveries.
#[derive(Debug, Clone)]
pub struct DeliveryListRequest {
    /// Lists only deliveries to this webhook.
    pub webhook: Option<WebhookId>,
    /// Lists only deliveries with this status.
    pub status: Option<DeliveryStatus>,
    /// Lists only deliveries of this event.
    pub event: Option<EventId>,
    /// The page. Deliveries are listed from the newest on.
    pub page: IdPage,
}

/// Lists the deliveries in the caller's scope.
pub async fn list(caller: &Caller, request: DeliveryListRequest) -> Result<Vec<Delivery>, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        if let Some(webhook) = request.webhook {
            let visible = scope.visible_webhooks();
            let found = webhooks::find(tx, scope.workspace, webhook, visible).await?;
            found.ok_or_else(Error::not_found)?;
        }
        let list = DeliveryListQuery {
            webhook: request.webhook,
            status: request.status,
            event: request.event,
            within: scope.content_groups.clone(),
            view: scope.view,
            page: request.page.clone(),
        };
        Ok(delivery_queue::list(tx, scope.workspace, &list).await?)
    };
    caller.read_long("deliveries.list", read).await
}

/// Enqueues a sample of a webhook's event as a test delivery.
async fn send_test_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    webhook: WebhookId,
) -> Result<DeliveryId, Error> {
    let environment = caller.environment();
    let authority = authority(tx, caller).await?;
    let webhook = find(tx, authority.token(), webhook).await?;
    let now = environment.now();
    let id = DeliveryId::new(environment.new_id());
    let event = (EventId::new(environment.new_id()), webhook.event);
    let data = sample_data(webhook.event).to_string();
    let workspace = caller.workspace();
    delivery_queue::enqueue_test(tx, workspace, webhook.id, id, event, &data, now).await?;
    caller.record(tx, AuditAction::WebhookTest, webhook.id, AuditChanges::default());
    Ok(id)
}

/// Sends a delivery again.
async fn retry_in(tx: &WriteTx<'_>, caller: &Caller, delivery: DeliveryId) -> Result<(), Error> {
    let authority = authority(tx, caller).await?;
    let workspace = caller.workspace();
    let webhook = delivery_queue::find_webhook(tx, workspace, delivery).await?;
    let webhook = find(tx, authority.token(), webhook.ok_or_else(Error::not_found)?).await?;
    check_may_see(authority.token(), &webhook.events)?;
    let which = DeliverySelection::One(delivery);
    check_may_send(tx, authority.token(), webhook.id, which).await?;
    let now = caller.environment().now();
    let changes = AuditChanges::created(json!({"delivery": delivery}));
    caller.record(tx, AuditAction::WebhookRetry, webhook.id, changes);
    Ok(delivery_queue::redeliver(tx, workspace, webhook.id, &[delivery], now).await?)
}

/// Sends all deliveries of a webhook again that failed or are pending a retry, and were created
/// since a point in time.
async fn recover_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    webhook: WebhookId,
    since: Timestamp,
) -> Result<(), Error> {
    let authority = authority(tx, caller).await?;
    let webhook = find(tx, authority.token(), webhook).await?;
    check_may_see(authority.token(), &webhook.events)?;
    let which = DeliverySelection::RecoverableSince(since);
    check_may_send(tx, authority.token(), webhook.id, which).await?;
    let last = DeliveryId::new(caller.environment().new_id());
    let changes = AuditChanges::created(json!({"since": since}));
    caller.record(tx, AuditAction::WebhookRecover, webhook.id, changes);
    Ok(delivery_queue::start_recovery(tx, caller.workspace(), webhook.id, since, last).await?)
}
