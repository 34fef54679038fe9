//! Tags. Each of their changes emits the event `tagChanged`.

use galley_api_types::event_envelope::ChangeKind;
use galley_api_types::tag::{NewTag, TagBody, TagChange};
use galley_domain::audit::AuditAction;
use galley_domain::event::ResourceChange;
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::tag::{Color, Tag, TagLabel};
use galley_domain::{Permission, TagId};
use galley_storage::tags::UsedTags;
use galley_storage::{IdPage, Tx, WriteTx, tags};

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::append_change;
use crate::precondition::VersionPrecondition;
use crate::scope::Scope;

/// Returns a tag that the caller sees.
pub async fn get(caller: &Caller, id: TagId) -> Result<Tag, Error> {
    let (scope, is_limited) = (caller.scope(), is_limited(caller));
    let read = async move |tx: &Tx<'_>| {
        let workspace = scope.workspace;
        let found = match used_tags(&scope).filter(|_| is_limited) {
            Some(used) => tags::find_used(tx, workspace, id, used).await?,
            None => tags::find(tx, workspace, id).await?,
        };
        found.ok_or_else(Error::not_found)
    };
    if is_limited {
        caller.read_long("tags.get", read).await
    } else {
        caller.read("tags.get", read).await
    }
}

/// Lists the tags that the caller sees.
pub async fn list(caller: &Caller, page: IdPage) -> Result<Vec<Tag>, Error> {
    let (scope, is_limited) = (caller.scope(), is_limited(caller));
    let read = async move |tx: &Tx<'_>| {
        let used = used_tags(&scope).filter(|_| is_limited);
        Ok(tags::list(tx, scope.workspace, used, &page).await?)
    };
    if is_limited {
        caller.read_long("tags.list", read).await
    } else {
        caller.read("tags.list", read).await
    }
}

/// Returns true if the caller sees the tags of visible pieces only. The permission to write tags
/// includes that to see all of them.
fn is_limited(caller: &Caller) -> bool {
    let token = caller.token();
    let writes = token.permissions.allows(Permission::write(Resource::Tags));
    !writes && used_tags(&caller.scope()).is_some()
}

/// Returns the tags of the pieces in a scope, unless it has all pieces.
fn used_tags(scope: &Scope) -> Option<UsedTags<'_>> {
    let within = scope.content_groups.as_deref();
    let is_whole = within.is_none() && scope.view == ContentView::Current;
    (!is_whole).then_some(UsedTags { view: scope.view, within })
}

/// Creates a tag.
pub async fn create(
    caller: &Caller,
    new: NewTag,
    request: IdempotentRequest,
    respond: Respond<Tag>,
) -> Result<CreatedResponse, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let color = new.color.unwrap_or_default();
    let create =
        async move |tx: &WriteTx<'_>| create_in(tx, &environment, &scope, &new.label, color).await;
    idempotency::create(caller, "tags.create", request, None, create, respond).await
}

/// Updates a tag.
pub async fn update(
    caller: &Caller,
    id: TagId,
    change: TagChange,
    expected: VersionPrecondition,
) -> Result<Tag, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let workspace = own.workspace();
        let found = tags::find_for_update(tx, workspace, id).await?;
        let before = found.ok_or_else(Error::not_found)?;
        expected.check_version(before.version)?;
        let mut tag = before.clone();
        tag.label = change.label.as_ref().unwrap_or(&tag.label).clone();
        tag.color = change.color.unwrap_or(tag.color);
        if tag != before {
            tag.version += 1;
            tags::update(tx, workspace, &tag).await?;
            let (event, body) = (ResourceChange::TagChanged, TagBody::from(&tag));
            let changes = AuditChanges::updated(TagBody::from(&before), &body);
            own.record(tx, AuditAction::TagUpdate, id, changes);
            append_change(tx, own.environment(), workspace, event, body, ChangeKind::Updated)
                .await?;
        }
        Ok(tag)
    };
    caller.write("tags.update", write).await
}

/// Deletes a tag, and removes it from every piece.
pub async fn delete(
    caller: &Caller,
    id: TagId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let workspace = own.workspace();
        let found = tags::find_for_update(tx, workspace, id).await?;
        let tag = found.ok_or_else(Error::not_found)?;
        expected.check_version(tag.version)?;
        tags::delete(tx, workspace, id).await?;
        let (event, body) = (ResourceChange::TagChanged, TagBody::from(&tag));
        own.record(tx, AuditAction::TagDelete, id, AuditChanges::deleted(&body));
        append_change(tx, own.environment(), workspace, event, body, ChangeKind::Removed).await
    };
    caller.write("tags.delete", write).await
}

/// Creates a tag in a transaction.
pub async fn create_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    label: &TagLabel,
    color: Color,
) -> Result<Tag, Error> {
    let id = TagId::new(environment.new_id());
    let tag = Tag { id, label: label.clone(), color, version: 1 };
    tags::insert(tx, scope.workspace, &tag, environment.now()).await?;
    let (event, body) = (ResourceChange::TagChanged, TagBody::from(&tag));
    let changes = AuditChanges::created(&body);
    audit::record(tx, environment, scope, AuditAction::TagCreate, id, changes);
    append_change(tx, environment, scope.workspace, event, body, ChangeKind::Added).await?;
    Ok(tag)
}
