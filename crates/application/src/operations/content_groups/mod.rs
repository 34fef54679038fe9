//! Creation, update, move, deletion and reads of content groups.

mod list;
mod schemas;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use galley_api_types::content_group::{
    ContentGroupBody, ContentGroupChange, Descendants, NewContentGroup,
};
use galley_api_types::problem::Step;
use galley_domain::audit::AuditAction;
use galley_domain::content_group::{ContentGroup, DEPTH_MAX, GroupPath, RECURSIVE_DELETE_MAX};
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::event::ResourceChange;
use galley_domain::trash::{Deletion, TrashEntry, TrashedId};
use galley_domain::{ContentGroupId, Invalid, WorkspaceId};
use galley_storage::{
    Tx, WriteTx, content_groups, content_pieces, event_append, ordering, trash, webhooks,
    workspaces,
};

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::custom_data_schema;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::content_pieces::{removal_event, remove, unique_slugs, unknown_field};
use crate::operations::{event, restored_version};
use crate::precondition::VersionPrecondition;
use crate::references;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;
pub(crate) use list::get_in;
use list::list_in;
pub use list::{GroupList, GroupListRequest, GroupView};
pub use schemas::{GroupSchema, Violation, ViolationPage, schema, violations};

/// Returns a group with its ancestors and descendants.
pub async fn get(caller: &Caller, id: ContentGroupId, subtree: bool) -> Result<GroupView, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| get_in(tx, &scope, id, subtree).await;
    caller.read("content_groups.get", read).await
}

/// Lists the groups of a level.
pub async fn list(caller: &Caller, request: GroupListRequest) -> Result<GroupList, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| list_in(tx, &scope, &request).await;
    caller.read("content_groups.list", read).await
}

/// Creates a group.
pub async fn create(
    caller: &Caller,
    new: NewContentGroup,
    request: IdempotentRequest,
    respond: Respond<GroupView>,
) -> Result<CreatedResponse, Error> {
    check_schema(new.custom_data_schema.as_ref())?;
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let create = async move |tx: &WriteTx<'_>| {
        let group = create_in(tx, &environment, &scope, &new).await?;
        get_in(tx, &scope, group.id, false).await
    };
    idempotency::create(caller, "content_groups.create", request, None, create, respond).await
}

/// Updates a group.
pub async fn update(
    caller: &Caller,
    id: ContentGroupId,
    change: ContentGroupChange,
    expected: VersionPrecondition,
) -> Result<GroupView, Error> {
    check_schema(change.custom_data_schema.as_ref().and_then(Option::as_ref))?;
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        update_in(tx, &environment, &scope, id, &change, &expected).await?;
        get_in(tx, &scope, id, false).await
    };
    caller.write("content_groups.update", write).await
}

/// Deletes a group, with everything in it if `recursive`. It moves into the trash, unless that is
/// turned off.
pub async fn delete(
    caller: &Caller,
    id: ContentGroupId,
    recursive: bool,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let kind = caller.usual_deletion();
    let write = async move |tx: &WriteTx<'_>| {
        delete_in(tx, &environment, &scope, id, recursive, &expected, kind).await
    };
    caller.write("content_groups.delete", write).await
}

/// Rejects a schema that can't be used.
fn check_schema(schema: Option<&CustomDataSchema>) -> Result<(), Error> {
    let checked = schema.map_or(Ok(()), custom_data_schema::check);
    checked.or_else(Error::reject_issues)
}

/// Creates a group.
pub async fn create_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    new: &NewContentGroup,
) -> Result<ContentGroup, Error> {
    let group = ContentGroup {
        id: ContentGroupId::new(environment.new_id()),
        name: new.name.clone(),
        unique_slugs: new.unique_slugs.unwrap_or_default(),
        custom_data_schema: new.custom_data_schema.clone(),
        preview_url: new.preview_url.clone(),
        version: 1,
    };
    let (group, path) = insert(tx, environment, scope, group, new.ancestor).await?;
    let changes = AuditChanges::created(body(&group, &path, &[]));
    audit::record(tx, environment, scope, AuditAction::ContentGroupCreate, group.id, changes);
    Ok(group)
}

/// Creates a group with the id and fields that it had in another store.
pub async fn restore(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    group: ContentGroup,
    ancestor: Option<ContentGroupId>,
) -> Result<ContentGroup, Error> {
    let group = ContentGroup { version: restored_version(environment), ..group };
    insert(tx, environment, scope, group, ancestor).await.map(|(group, _)| group)
}

/// Restores a group of the trash, unless it exists.
pub(crate) async fn restore_if_missing(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    group: ContentGroup,
    ancestor: Option<ContentGroupId>,
) -> Result<(), Error> {
    if content_groups::find(tx, scope.workspace, group.id).await?.is_some() {
        return Ok(());
    }
    match restore(tx, environment, scope, group, ancestor).await {
        Err(Error::Rejected(mut rejection)) => {
            // The request names the ancestor of the first group by another field.
            for issue in &mut rejection.issues {
                issue.path = vec![Step::Field("contentGroupId".to_owned())];
                issue.message = issue.message.replacen("ancestor", "contentGroupId", 1);
            }
            Err(Error::Rejected(rejection))
        }
        restored => restored.map(drop),
    }
}

async fn insert(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    group: ContentGroup,
    ancestor: Option<ContentGroupId>,
) -> Result<(ContentGroup, GroupPath), Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let parents = parent_path(tx, scope, ancestor).await?;
    check_depth(parents.groups().len() + 1)?;
    let now = environment.now();
    content_groups::insert(tx, scope.workspace, &group, &parents, now).await?;
    let path = parents.child(group.id);
    let data = event_data(&group, &path, &[]);
    let added = event(environment, ResourceChange::GroupAdded(path.clone()), data, None);
    event_append::append(tx, scope.workspace, [added], now).await?;
    Ok((group, path))
}

/// Renames a group, or moves it with its subtree.
pub async fn update_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentGroupId,
    change: &ContentGroupChange,
    expected: &VersionPrecondition,
) -> Result<ContentGroup, Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let (before, path) = find(tx, scope, id).await?;
    expected.check_version(before.version)?;
    let mut group = before.clone();
    group.name = change.name.clone().unwrap_or(group.name);
    group.unique_slugs = change.unique_slugs.unwrap_or(group.unique_slugs);
    if let Some(schema) = &change.custom_data_schema {
        group.custom_data_schema = schema.clone();
    }
    group.preview_url = change.preview_url.clone().unwrap_or(group.preview_url);
    let target = match change.ancestor {
        Some(ancestor) => move_target(tx, scope, id, &path, ancestor).await?,
        None => None,
    };
    let is_changed = group != before;
    if !is_changed && target.is_none() {
        return Ok(before);
    }
    group.version += 1;
    let enables_unique_slugs = group.unique_slugs && !before.unique_slugs;
    let enters_unique_slugs = match &target {
        Some(parents) => unique_slugs::is_entered(tx, scope, &path, parents).await?,
        None => false,
    };
    if enables_unique_slugs || enters_unique_slugs {
        unique_slugs::lock_groups(tx, scope, id).await?;
    } else if let Some(parents) = &target
        && unique_slugs::is_left(tx, scope, id, parents).await?
    {
        ordering::lock_exclusively(tx, scope.workspace).await?;
    }
    content_groups::update(tx, scope.workspace, &group).await?;
    if let Some(parents) = &target {
        let parent = parents.groups().last().copied();
        content_groups::move_under(tx, scope.workspace, group.id, parent).await?;
    }
    if enables_unique_slugs || enters_unique_slugs {
        let field = if enables_unique_slugs { "uniqueSlugs" } else { "ancestor" };
        unique_slugs::check_group(tx, scope, id, field).await?;
    }
    let children = content_groups::children_of(tx, scope.workspace, &[group.id]).await?;
    let children = children.get(&group.id).map(Vec::as_slice).unwrap_or_default();
    let path_after = target.as_ref().map_or_else(|| path.clone(), |parents| parents.child(id));
    let data = event_data(&group, &path_after, children);
    let changes =
        AuditChanges::updated(body(&before, &path, children), body(&group, &path_after, children));
    audit::record(tx, environment, scope, AuditAction::ContentGroupUpdate, id, changes);
    let mut events = Vec::new();
    if is_changed {
        let change = ResourceChange::GroupChanged(path_after.clone());
        events.push(event(environment, change, data.clone(), None));
    }
    if target.is_some() {
        let data_before = event_data(&before, &path, children);
        let change = ResourceChange::GroupMoved { before: path, after: path_after };
        events.push(event(environment, change, data, Some(data_before)));
    }
    event_append::append(tx, scope.workspace, events, environment.now()).await?;
    Ok(group)
}

/// Deletes a group. A group that is not empty is deleted with its subtree if `recursive`, else
/// rejected.
pub async fn delete_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentGroupId,
    recursive: bool,
    expected: &VersionPrecondition,
    kind: Deletion,
) -> Result<(), Error> {
    let workspace = scope.workspace;
    workspaces::lock(tx, workspace).await?;
    let (group, path) = find(tx, scope, id).await?;
    expected.check_version(group.version)?;
    let mut entry = TrashEntry {
        id: TrashedId::Group(id),
        content_group_id: parent_of(&path),
        title: group.name.as_str().to_owned(),
        deleted_at: environment.now(),
        deleted_by: scope.author,
        pieces: 0,
    };
    let changes = AuditChanges::deleted(body(&group, &path, &[]));
    let groups = deleted_groups(tx, workspace, group, path, recursive).await?;
    let action = match kind {
        Deletion::ToTrash => AuditAction::ContentGroupDelete,
        Deletion::Permanent => AuditAction::ContentGroupPurge,
    };
    audit::record(tx, environment, scope, action, id, changes);
    let trashed = (kind == Deletion::ToTrash).then_some(entry.id);
    if let Some(trashed) = trashed {
        trash::insert(tx, workspace, &entry).await?;
        let parents_first = groups.iter().rev();
        let rows: Vec<_> =
            parents_first.map(|(group, path)| (group.clone(), parent_of(path))).collect();
        trash::insert_groups(tx, workspace, trashed, &rows).await?;
    }
    for (group, path) in groups {
        entry.pieces += delete_pieces(tx, environment, scope, group.id, &path, trashed).await?;
        let data = event_data(&group, &path, &[]);
        let removed = event(environment, ResourceChange::GroupRemoved(path), data, None);
        webhooks::disable_on_group(tx, workspace, group.id).await?;
        content_groups::delete(tx, workspace, group.id).await?;
        event_append::append(tx, workspace, [removed], entry.deleted_at).await?;
    }
    if trashed.is_some() && entry.pieces > 0 {
        trash::add_pieces(tx, workspace, entry.id, entry.pieces).await?;
    }
    Ok(())
}

/// Returns the parent of the group at the end of `path`.
fn parent_of(path: &GroupPath) -> Option<ContentGroupId> {
    path.groups().iter().rev().nth(1).copied()
}

/// Returns the groups that a deletion deletes, with their paths, descendants first. Rejects a
/// deletion of more than that.
async fn deleted_groups(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: ContentGroup,
    path: GroupPath,
    recursive: bool,
) -> Result<Vec<(ContentGroup, GroupPath)>, Error> {
    if !recursive {
        if content_groups::has_contents(tx, workspace, group.id).await? {
            let detail =
                "the group contains groups or pieces: delete these first, or send recursive=true";
            return Err(Rejection::new(Reason::NotEmpty, detail).into());
        }
        return Ok(vec![(group, path)]);
    }
    if content_pieces::has_more_than(tx, workspace, group.id, RECURSIVE_DELETE_MAX).await? {
        let detail = format!(
            "the group and its subgroups contain more than {RECURSIVE_DELETE_MAX} pieces: delete \
             some subgroups or pieces first"
        );
        return Err(Rejection::new(Reason::TooLarge, detail).into());
    }
    let groups = content_groups::subtree(tx, workspace, &[group.id]).await?;
    Ok(descendants_first(groups, group.id, &path))
}

/// The number of pieces that are deleted per batch.
const DELETE_BATCH: i64 = 500;

/// The number of pieces whose statements are sent without waiting for each other. It bounds the
/// memory of their contents.
const CONCURRENT_REMOVALS: usize = 16;

/// Deletes the pieces directly in a group, with their events. Returns their number.
async fn delete_pieces(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    group: ContentGroupId,
    path: &GroupPath,
    trashed: Option<TrashedId>,
) -> Result<i64, Error> {
    let workspace = scope.workspace;
    let mut deleted = 0;
    // Works in batches, as the events of all pieces are large.
    loop {
        let batch = content_pieces::list_in_group_for_deletion(tx, workspace, group, DELETE_BATCH);
        let batch = batch.await?;
        if batch.is_empty() {
            return Ok(deleted);
        }
        let referenced = references::of_pieces(tx, workspace, batch.iter()).await?;
        let mut removals = Vec::with_capacity(batch.len());
        for piece in &batch {
            removals.push(Box::pin(async {
                let unpublished = remove(tx, environment, scope, piece, path, trashed).await?;
                let removed = removal_event(environment, piece, &referenced, path.clone());
                Ok::<_, Error>(unpublished.into_iter().chain([removed]))
            }));
        }
        let removals = stream::iter(removals).buffered(CONCURRENT_REMOVALS);
        let events: Vec<_> = removals.try_collect().await?;
        deleted += i64::try_from(batch.len()).expect("a batch is small");
        event_append::append(tx, workspace, events.into_iter().flatten(), environment.now())
            .await?;
    }
}

/// Returns the groups of a subtree with their paths, descendants first.
fn descendants_first(
    groups: Vec<(ContentGroup, Option<ContentGroupId>)>,
    root: ContentGroupId,
    root_path: &GroupPath,
) -> Vec<(ContentGroup, GroupPath)> {
    let mut children = std::collections::HashMap::<_, Vec<_>>::new();
    let mut open = Vec::new();
    for (group, parent) in groups {
        if group.id == root {
            open.push((group, root_path.clone()));
        } else {
            children.entry(parent).or_default().push(group);
        }
    }
    let mut ordered = Vec::new();
    while let Some((group, path)) = open.pop() {
        for child in children.remove(&Some(group.id)).unwrap_or_default() {
            let below = path.child(child.id);
            open.push((child, below));
        }
        ordered.push((group, path));
    }
    ordered.reverse();
    ordered
}

/// Returns a group in the scope, and its path.
async fn find(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: ContentGroupId,
) -> Result<(ContentGroup, GroupPath), Error> {
    let found = content_groups::find(tx, scope.workspace, id).await?;
    let path = content_groups::path(tx, scope.workspace, id).await?;
    match found {
        Some(group) if scope.contains(&path) => Ok((group, path)),
        _ => Err(Error::not_found()),
    }
}

/// Returns the path to the new parent of a group.
async fn parent_path(
    tx: &WriteTx<'_>,
    scope: &Scope,
    ancestor: Option<ContentGroupId>,
) -> Result<GroupPath, Error> {
    let Some(ancestor) = ancestor else {
        if scope.content_groups.is_some() {
            let detail = "the token is limited to some groups and can't place one at the top level";
            return Err(Rejection::new(Reason::OutsideGroupLimit, detail).into());
        }
        return Ok(GroupPath::default());
    };
    let path = content_groups::path(tx, scope.workspace, ancestor).await?;
    if scope.contains(&path) {
        return Ok(path);
    }
    Err(Rejection::of_issues(vec![unknown_field("ancestor", "content group")]).into())
}

/// Returns the path to the new parent of the group at `path`, or `None` if it is the parent
/// already.
async fn move_target(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: ContentGroupId,
    path: &GroupPath,
    ancestor: Option<ContentGroupId>,
) -> Result<Option<GroupPath>, Error> {
    // As seen in the scope: for a limited token, its own groups are at the top level.
    let parent = scope.visible(path).iter().rev().nth(1).copied();
    if parent == ancestor {
        return Ok(None);
    }
    let parents = parent_path(tx, scope, ancestor).await?;
    if parents.contains(id) {
        let invalid =
            Invalid::new("circle", "must not name the group itself or a descendant of it");
        return Err(Rejection::of_field("ancestor", &invalid).into());
    }
    let height = content_groups::height(tx, scope.workspace, id).await?;
    check_depth(parents.groups().len() + 1 + height)?;
    Ok(Some(parents))
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth <= DEPTH_MAX {
        return Ok(());
    }
    let invalid = Invalid::new("too_deep", format!("would nest groups over {DEPTH_MAX} levels"));
    Err(Rejection::of_field("ancestor", &invalid).into())
}

fn event_data(group: &ContentGroup, path: &GroupPath, children: &[ContentGroupId]) -> String {
    serde_json::to_string(&body(group, path, children)).expect("resources are JSON")
}

fn body<'g>(
    group: &'g ContentGroup,
    path: &'g GroupPath,
    children: &'g [ContentGroupId],
) -> ContentGroupBody<'g> {
    let groups = path.groups();
    let ancestors = &groups[..groups.len().saturating_sub(1)];
    ContentGroupBody::new(group, ancestors, Descendants::Ids(children))
}
