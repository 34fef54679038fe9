//! Webhooks: reads, creation, update and deletion.

use galley_api_types::problem::{Issue, Step};
use galley_api_types::webhook::{NewWebhook, WebhookChange};
use galley_domain::permission::Resource;
use galley_domain::webhook::{DisabledReason, Webhook};
use galley_domain::{Invalid, WebhookId};
use galley_storage::delivery_queue::DeliverySelection;
use galley_storage::tokens::Authentication;
use galley_storage::webhooks::WebhookListQuery;
use galley_storage::{IdPage, Tx, WriteTx, content_groups, delivery_queue, webhooks};

use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::authority::Authority;
use crate::operations::webhook_access::{REQUIRED_PERMISSION, check_may_see, check_may_send, find};
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;
use crate::secrets::SecretKey;

/// The result of an update.
#[derive(Debug)]
pub struct WebhookUpdateResult {
    /// The webhook after the update.
    pub webhook: Webhook,
    /// True if its URL has changed.
    pub has_new_url: bool,
}

/// Returns the associated data for the encryption of a webhook's secret.
pub fn secret_aad(webhook: WebhookId) -> String {
    format!("webhooks {webhook}")
}

/// Returns a webhook in the caller's scope.
pub async fn get(caller: &Caller, id: WebhookId) -> Result<Webhook, Error> {
    let own = caller.clone();
    let read = async move |tx: &Tx<'_>| find(tx, own.token(), id).await;
    caller.read("webhooks.get", read).await
}

/// Lists the webhooks in the caller's scope, or those of the caller's extension only.
pub async fn list(
    caller: &Caller,
    extension_only: bool,
    page: IdPage,
) -> Result<Vec<Webhook>, Error> {
    let (scope, own) = (caller.scope(), caller.clone());
    let read = async move |tx: &Tx<'_>| {
        let list = WebhookListQuery {
            extension: extension_only.then_some(own.token().extension.as_deref()),
            within: scope.content_groups.as_deref(),
            page: page.clone(),
        };
        Ok(webhooks::list(tx, scope.workspace, &list).await?)
    };
    caller.read("webhooks.list", read).await
}

/// Creates a webhook.
pub async fn create(
    caller: &Caller,
    new: NewWebhook,
    request: IdempotentRequest,
    respond: Respond<Webhook>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let create = async move |tx: &WriteTx<'_>| {
        create_in(tx, own.environment(), own.service().key(), own.token(), &new).await
    };
    idempotency::create(caller, "webhooks.create", request, None, create, respond).await
}

/// Updates a webhook.
pub async fn update(
    caller: &Caller,
    id: WebhookId,
    change: WebhookChange,
    expected: VersionPrecondition,
) -> Result<WebhookUpdateResult, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        update_in(tx, own.environment(), own.token(), id, &change, &expected).await
    };
    caller.write("webhooks.update", write).await
}

/// Deletes a webhook.
pub async fn delete(
    caller: &Caller,
    id: WebhookId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        delete_in(tx, own.environment(), own.token(), id, &expected).await
    };
    caller.write("webhooks.delete", write).await
}

/// Creates a webhook.
async fn create_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    key: &SecretKey,
    actor: &Authentication,
    new: &NewWebhook,
) -> Result<Webhook, Error> {
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    let actor = authority.token();
    let enabled = new.enabled.unwrap_or(true);
    let webhook = Webhook {
        id: WebhookId::new(environment.new_id()),
        url: new.url.clone(),
        name: new.name.clone(),
        description: new.description.clone(),
        event: new.event,
        content_group_id: new.metadata.and_then(|metadata| metadata.content_group_id).flatten(),
        extension: actor.extension.clone(),
        enabled,
        disabled_reason: (!enabled).then_some(DisabledReason::Requested),
        failing_since: None,
        dropped: 0,
        version: 1,
    };
    check_may_see(actor, webhook.event)?;
    check_group(tx, actor, &webhook, None).await?;
    let sealed = new
        .secret
        .as_ref()
        .map(|secret| key.encrypt(&secret_aad(webhook.id), secret.reveal().as_bytes()));
    let now = environment.now();
    webhooks::insert(tx, actor.workspace, &webhook, sealed.as_deref(), now).await?;
    Ok(webhook)
}

/// Updates a webhook.
async fn update_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    actor: &Authentication,
    id: WebhookId,
    change: &WebhookChange,
    expected: &VersionPrecondition,
) -> Result<WebhookUpdateResult, Error> {
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    let actor = authority.token();
    delivery_queue::lock_queue_of_webhook(tx, actor.workspace, id).await?;
    let before = find(tx, actor, id).await?;
    expected.check_version(before.version)?;
    let mut webhook = before.clone();
    webhook.url = change.url.clone().unwrap_or(webhook.url);
    webhook.name = change.name.clone().unwrap_or(webhook.name);
    webhook.description = change.description.clone().unwrap_or(webhook.description);
    webhook.event = change.event.unwrap_or(webhook.event);
    webhook.content_group_id = change.content_group_id().unwrap_or(webhook.content_group_id);
    match change.enabled {
        Some(true) if !before.enabled => {
            webhook.enabled = true;
            webhook.disabled_reason = None;
        }
        Some(false) if before.enabled => {
            webhook.enabled = false;
            webhook.disabled_reason = Some(DisabledReason::Requested);
        }
        _ => {}
    }
    if webhook == before {
        return Ok(WebhookUpdateResult { webhook, has_new_url: false });
    }
    // The new address would receive the event that the webhook sends already.
    check_may_see(actor, before.event)?;
    check_may_see(actor, webhook.event)?;
    check_group(tx, actor, &webhook, Some(&before)).await?;
    webhook.version += 1;
    let has_new_url = webhook.url != before.url;
    let starts_afresh = has_new_url || (webhook.enabled && !before.enabled);
    if starts_afresh {
        webhook.failing_since = None;
        // Pending deliveries are sent to the new address.
        check_may_send(tx, actor, webhook.id, DeliverySelection::Pending).await?;
    }
    let now = environment.now();
    delivery_queue::webhook_changed(tx, actor.workspace, webhook.id, starts_afresh, now).await?;
    webhooks::update(tx, actor.workspace, &webhook).await?;
    Ok(WebhookUpdateResult { webhook, has_new_url })
}

/// Deletes a webhook.
async fn delete_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    actor: &Authentication,
    id: WebhookId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    let webhook = find(tx, authority.token(), id).await?;
    expected.check_version(webhook.version)?;
    webhooks::delete(tx, actor.workspace, id).await?;
    Ok(())
}

/// Checks the group of a webhook: the event may require one, and a limited token must see it.
async fn check_group(
    tx: &WriteTx<'_>,
    actor: &Authentication,
    webhook: &Webhook,
    before: Option<&Webhook>,
) -> Result<(), Error> {
    let scope = Scope::of_token(actor);
    let limited = scope.content_groups.is_some();
    let outside = |detail: &str| Rejection::new(Reason::OutsideGroupLimit, detail).into();
    if limited && webhook.event.resource() == Resource::WorkspaceMemberships {
        return Err(outside("the token is limited to some groups and can't see members' events"));
    }
    let path = vec![Step::Field("metadata".to_owned()), Step::Field("contentGroupId".to_owned())];
    // A group has no effect on members' events, so its deletion does not matter.
    let kept = before.is_some_and(|before| before.content_group_id == webhook.content_group_id);
    if kept && webhook.event.resource() == Resource::WorkspaceMemberships {
        return Ok(());
    }
    let Some(group) = webhook.content_group_id else {
        if webhook.event.resource() == Resource::ContentPieces {
            let invalid = Invalid::new("required", "is required for this event");
            return Error::reject_issues(vec![Issue::new(path, &invalid)]);
        }
        return if limited {
            Err(outside("the token is limited to some groups: name one in metadata.contentGroupId"))
        } else {
            Ok(())
        };
    };
    if scope.contains(&content_groups::path(tx, actor.workspace, group).await?) {
        return Ok(());
    }
    if limited {
        return Err(outside("the group is outside the token's groups"));
    }
    Error::reject_issues(vec![Issue::unknown_reference(path, "content group")])
}
