//! Webhooks: reads, creation, update, rotation of the secret, and deletion.

use galley_api_types::problem::{Issue, Step};
use galley_api_types::webhook::{NewWebhook, WebhookBody, WebhookChange};
use galley_domain::audit::AuditAction;
use galley_domain::event::{EventType, EventTypes};
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::webhook::{DisabledReason, Webhook, WebhookSecret};
use galley_domain::{Invalid, Timestamp, WebhookId};
use galley_storage::authentication::Authentication;
use galley_storage::delivery_queue::DeliverySelection;
use galley_storage::webhooks::WebhookListQuery;
use galley_storage::{IdPage, Tx, WriteTx, content_groups, delivery_queue, webhooks};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::webhook_access::{authority, check_may_see, check_may_send, find};
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};
use crate::scope::{EMAIL_PERMISSION, Scope};

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
            visible: scope.visible_webhooks(),
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
    let create = async move |tx: &WriteTx<'_>| create_in(tx, &own, &new).await;
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
    let write = async move |tx: &WriteTx<'_>| update_in(tx, &own, id, &change, &expected).await;
    caller.write("webhooks.update", write).await
}

/// Replaces the secret of a webhook. The previous one also signs deliveries for 24 hours.
pub async fn rotate_secret(
    caller: &Caller,
    id: WebhookId,
    secret: WebhookSecret,
    request: IdempotentRequest,
    respond: Respond<()>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let rotate = async move |tx: &WriteTx<'_>| rotate_secret_in(tx, &own, id, &secret).await;
    idempotency::create(caller, "webhooks.rotate_secret", request, None, rotate, respond).await
}

/// Deletes a webhook.
pub async fn delete(
    caller: &Caller,
    id: WebhookId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| delete_in(tx, &own, id, &expected).await;
    caller.write("webhooks.delete", write).await
}

/// Creates a webhook.
async fn create_in(tx: &WriteTx<'_>, caller: &Caller, new: &NewWebhook) -> Result<Webhook, Error> {
    let (environment, key) = (caller.environment(), caller.service().key());
    let authority = authority(tx, caller).await?;
    let actor = authority.token();
    let enabled = new.enabled.unwrap_or(true);
    let webhook = Webhook {
        id: WebhookId::new(environment.new_id()),
        url: new.url.clone(),
        hides_emails: hides_emails(new.hides_emails, false, true, actor)?,
        name: new.name.clone(),
        description: new.description.clone(),
        event: new.event,
        events: with_event(new.events.as_ref(), new.event),
        content_group_id: new.metadata.and_then(|metadata| metadata.content_group_id).flatten(),
        view: new.view.unwrap_or(actor.view),
        extension: actor.extension.clone(),
        enabled,
        disabled_reason: (!enabled).then_some(DisabledReason::Requested),
        failing_since: None,
        dropped: 0,
        version: 1,
    };
    check_whole_workspace(&webhook, new.whole_workspace)?;
    authority.require_view(webhook.view)?;
    check_view(&webhook)?;
    check_may_see(actor, &webhook.events)?;
    check_group(tx, actor, &webhook, None, new.whole_workspace).await?;
    let sealed = new
        .secret
        .as_ref()
        .map(|secret| key.encrypt(&secret_aad(webhook.id), secret.reveal().as_bytes()));
    let now = environment.now();
    webhooks::insert(tx, actor.workspace, &webhook, sealed.as_deref(), now).await?;
    let changes = AuditChanges::created(WebhookBody::from(&webhook));
    caller.record(tx, AuditAction::WebhookCreate, webhook.id, changes);
    Ok(webhook)
}

/// Updates a webhook.
async fn update_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: WebhookId,
    change: &WebhookChange,
    expected: &VersionPrecondition,
) -> Result<WebhookUpdateResult, Error> {
    let authority = authority(tx, caller).await?;
    let actor = authority.token();
    delivery_queue::lock_queue_of_webhook(tx, actor.workspace, id).await?;
    let before = find(tx, actor, id).await?;
    expected.check_version(before.version)?;
    let mut webhook = before.clone();
    webhook.url = change.url.clone().unwrap_or(webhook.url);
    let has_new_url = webhook.url != before.url;
    if change.view.is_some_and(|view| view != before.view) {
        let message = "can't be changed, as pending deliveries have events of the former view";
        let invalid = Invalid::new("immutable_field", message);
        return Err(Rejection::of_field("view", &invalid).into());
    }
    webhook.hides_emails =
        hides_emails(change.hides_emails, before.hides_emails, has_new_url, actor)?;
    webhook.name = change.name.clone().unwrap_or(webhook.name);
    webhook.description = change.description.clone().unwrap_or(webhook.description);
    webhook.event = changed_event(&before, change);
    if change.event.is_some() || change.events.is_some() {
        webhook.events = with_event(change.events.as_ref(), webhook.event);
    }
    webhook.content_group_id = match (change.content_group_id(), change.whole_workspace) {
        (None, Some(true)) => None,
        (group, _) => group.unwrap_or(webhook.content_group_id),
    };
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
    check_whole_workspace(&webhook, change.whole_workspace)?;
    check_view(&webhook)?;
    if webhook == before {
        return Ok(WebhookUpdateResult { webhook, has_new_url: false });
    }
    // The new address would receive the event that the webhook sends already.
    check_may_see(actor, &before.events)?;
    check_may_see(actor, &webhook.events)?;
    check_group(tx, actor, &webhook, Some(&before), change.whole_workspace).await?;
    webhook.version += 1;
    let starts_afresh = has_new_url || (webhook.enabled && !before.enabled);
    if starts_afresh {
        webhook.failing_since = None;
        // Pending deliveries are sent to the new address.
        check_may_send(tx, actor, webhook.id, DeliverySelection::Pending).await?;
    }
    let now = caller.environment().now();
    delivery_queue::webhook_changed(tx, actor.workspace, webhook.id, starts_afresh, now).await?;
    webhooks::update(tx, actor.workspace, &webhook).await?;
    let [old, new] = [&before, &webhook].map(WebhookBody::from);
    let changes = AuditChanges::updated(old, new);
    caller.record(tx, AuditAction::WebhookUpdate, webhook.id, changes);
    Ok(WebhookUpdateResult { webhook, has_new_url })
}

/// Returns true if events are sent without e-mail addresses: as stated, or as before. A URL of a
/// client that does not see the addresses gets none.
fn hides_emails(
    stated: Option<bool>,
    before: bool,
    has_new_url: bool,
    actor: &Authentication,
) -> Result<bool, Error> {
    let must_hide = before || (has_new_url && Scope::of_token(actor).hides_emails);
    if stated == Some(false) && must_hide && Scope::of_token(actor).hides_emails {
        return Err(Rejection::insufficient_permissions(&[EMAIL_PERMISSION]).into());
    }
    Ok(stated.unwrap_or(must_hide))
}

/// Returns all events of a webhook: the named ones, and `event`.
fn with_event(events: Option<&EventTypes>, event: EventType) -> EventTypes {
    let named = events.map(EventTypes::as_slice).unwrap_or_default();
    EventTypes::new(named.iter().copied().chain([event]))
}

/// Returns the first event of a webhook after a change. New events without the present one are
/// headed by the first of them.
fn changed_event(before: &Webhook, change: &WebhookChange) -> EventType {
    let named = change.events.as_ref();
    let first = named.filter(|events| !events.contains(before.event));
    let first = first.and_then(|events| events.as_slice().first().copied());
    change.event.or(first).unwrap_or(before.event)
}

/// Rejects a `wholeWorkspace` that contradicts the group.
fn check_whole_workspace(webhook: &Webhook, stated: Option<bool>) -> Result<(), Error> {
    match (stated, webhook.content_group_id) {
        (Some(true), Some(_)) => {
            let invalid = Invalid::new("conflict", "must not be true with metadata.contentGroupId");
            Err(Rejection::of_field("wholeWorkspace", &invalid).into())
        }
        (Some(false), None) => {
            let invalid = Invalid::new("conflict", "must be true without metadata.contentGroupId");
            Err(Rejection::of_field("wholeWorkspace", &invalid).into())
        }
        _ => Ok(()),
    }
}

/// Rejects events that the view of a webhook does not have.
fn check_view(webhook: &Webhook) -> Result<(), Error> {
    let mut events = webhook.events.as_slice().iter();
    let Some(event) = events.find(|event| event.is_of_current_view()) else { return Ok(()) };
    if webhook.view == ContentView::Current {
        return Ok(());
    }
    let message = format!("must not contain {} with the view published", event.as_str());
    let field = if webhook.event == *event { "event" } else { "events" };
    Err(Rejection::of_field(field, &Invalid::new("conflict", message)).into())
}

/// The milliseconds for which the previous secret also signs deliveries after a rotation.
const PREVIOUS_SECRET_VALIDITY_MS: i64 = 24 * 60 * 60 * 1_000;

async fn rotate_secret_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: WebhookId,
    secret: &WebhookSecret,
) -> Result<(), Error> {
    let (environment, key) = (caller.environment(), caller.service().key());
    let authority = authority(tx, caller).await?;
    let workspace = caller.workspace();
    delivery_queue::lock_queue_of_webhook(tx, workspace, id).await?;
    find(tx, authority.token(), id).await?;
    let aad = secret_aad(id);
    // A secret that can't be decrypted could not sign.
    let current = webhooks::find_sealed_secret(tx, workspace, id).await?;
    let current = current.filter(|sealed| key.decrypt(&aad, sealed).is_ok());
    let is_current = |sealed: &Vec<u8>| {
        key.decrypt(&aad, sealed).is_ok_and(|text| text == secret.reveal().as_bytes())
    };
    // A repeated request keeps the previous secret.
    if current.as_ref().is_some_and(is_current) {
        return Ok(());
    }
    let sealed = key.encrypt(&aad, secret.reveal().as_bytes());
    let until = Timestamp::from_ms(environment.now().ms() + PREVIOUS_SECRET_VALIDITY_MS);
    webhooks::rotate_secret(tx, workspace, id, &sealed, current.as_deref(), until).await?;
    caller.record(tx, AuditAction::WebhookRotateSecret, id, AuditChanges::default());
    Ok(())
}

/// Deletes a webhook.
async fn delete_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: WebhookId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let authority = authority(tx, caller).await?;
    let webhook = find(tx, authority.token(), id).await?;
    expected.check_version(webhook.version)?;
    webhooks::delete(tx, caller.workspace(), id).await?;
    let changes = AuditChanges::deleted(WebhookBody::from(&webhook));
    caller.record(tx, AuditAction::WebhookDelete, id, changes);
    Ok(())
}

/// Checks the group of a webhook: the events may require one or `wholeWorkspace`, and a limited
/// token must see it.
async fn check_group(
    tx: &WriteTx<'_>,
    actor: &Authentication,
    webhook: &Webhook,
    before: Option<&Webhook>,
    whole_workspace: Option<bool>,
) -> Result<(), Error> {
    let scope = Scope::of_token(actor);
    let limited = scope.content_groups.is_some();
    let outside = |detail: &str| Rejection::new(Reason::OutsideGroupLimit, detail).into();
    let path = vec![Step::Field("metadata".to_owned()), Step::Field("contentGroupId".to_owned())];
    let has_group_effect = webhook.events.as_slice().iter().any(|event| event.is_of_groups());
    // A group has no effect on the other events, so its deletion does not matter.
    let kept = before.is_some_and(|before| before.content_group_id == webhook.content_group_id);
    if kept && !has_group_effect && !limited {
        return Ok(());
    }
    let Some(group) = webhook.content_group_id else {
        let of_pieces = |webhook: &Webhook| webhook.events.has(Resource::ContentPieces);
        let is_whole = whole_workspace == Some(true) || (kept && before.is_some_and(of_pieces));
        if of_pieces(webhook) && !is_whole {
            let message = "is required for this event, unless wholeWorkspace is true";
            let invalid = Invalid::new("required", message);
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
