//! The rights to webhooks and their deliveries.

use galley_domain::event::{EventScope, EventType, EventTypes};
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::webhook::Webhook;
use galley_domain::{Permission, WebhookId};
use galley_storage::authentication::Authentication;
use galley_storage::delivery_queue::{self, DeliverySelection};
use galley_storage::{Tx, WriteTx, webhooks};

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::authority::Authority;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// The permission that every change of webhooks requires.
const REQUIRED_PERMISSION: Permission = Permission::write(Resource::Webhooks);

/// Returns the caller's authority to change webhooks.
pub(crate) async fn authority(tx: &WriteTx<'_>, caller: &Caller) -> Result<Authority, Error> {
    let (environment, token) = (caller.environment(), caller.token());
    Authority::with_permission(tx, environment, token, REQUIRED_PERMISSION).await
}

/// Returns a webhook as seen in the actor's scope.
pub(crate) async fn find(
    tx: &Tx<'_>,
    actor: &Authentication,
    id: WebhookId,
) -> Result<Webhook, Error> {
    let scope = Scope::of_token(actor);
    let found = webhooks::find(tx, actor.workspace, id, scope.visible_webhooks()).await?;
    found.ok_or_else(Error::not_found)
}

/// Returns true if the actor may see such events in its scope.
pub(crate) fn may_see(actor: &Authentication, event: EventType) -> bool {
    actor.permissions.allows(event.permission()) && !is_outside_limit(actor, event)
}

/// Returns true if the actor is limited to groups or to the published view, and such events may
/// show resources that it can't see. All tags are visible with the permission to write them.
fn is_outside_limit(actor: &Authentication, event: EventType) -> bool {
    let is_in_groups = actor.content_groups.is_some();
    match event.resource() {
        Resource::WorkspaceMemberships => is_in_groups,
        Resource::Tags => {
            (is_in_groups || actor.view == ContentView::Published)
                && !actor.permissions.allows(Permission::write(Resource::Tags))
        }
        _ => false,
    }
}

/// Rejects a webhook for events that the actor may not see.
pub(crate) fn check_may_see(actor: &Authentication, events: &EventTypes) -> Result<(), Error> {
    for &event in events.as_slice() {
        if !actor.permissions.allows(event.permission()) {
            return Err(Rejection::insufficient_permissions(&[event.permission()]).into());
        }
        if is_outside_limit(actor, event) {
            let detail =
                format!("the token is limited to some content and can't see {}", event.as_str());
            return Err(Rejection::new(Reason::OutsideGroupLimit, detail).into());
        }
    }
    Ok(())
}

/// Rejects the sending of deliveries that show events outside the actor's scope. The webhook's
/// current settings do not tell: they may have changed since the deliveries were created.
pub(crate) async fn check_may_send(
    tx: &WriteTx<'_>,
    actor: &Authentication,
    webhook: WebhookId,
    which: DeliverySelection,
) -> Result<(), Error> {
    if may_see_all_events(actor) {
        return Ok(());
    }
    let window = actor.content_groups.as_deref().map_or(EventScope::Workspace, EventScope::Groups);
    for (event, occurrence) in
        delivery_queue::list_visible_occurrences(tx, actor.workspace, webhook, which).await?
    {
        check_may_see(actor, &EventTypes::new([event]))?;
        if occurrence.as_seen_in(window) != Some(event) {
            let detail = "one of the deliveries has an event outside the token's groups";
            return Err(Rejection::new(Reason::OutsideGroupLimit, detail).into());
        }
    }
    Ok(())
}

/// Returns true if the actor may read every event of its view.
pub fn may_see_all_events(actor: &Authentication) -> bool {
    let may_see = |event: &EventType| actor.permissions.allows(event.permission());
    let is_limited = |event: &EventType| is_outside_limit(actor, *event);
    !EventType::ALL.iter().any(is_limited)
        && actor.content_groups.is_none()
        && EventType::ALL.iter().all(may_see)
}
