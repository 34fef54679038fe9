//! Creation, update, move, deletion and reads of content groups.

use std::collections::HashMap;

use futures_util::future::try_join;
use galley_api_types::content_group::{ContentGroupBody, Descendants, nested};
use galley_api_types::problem::{Issue, Step};
use galley_domain::content_group::{
    ContentGroup, ContentGroupName, DEPTH_MAX, GroupPath, RECURSIVE_DELETE_MAX,
};
use galley_domain::event::ResourceChange;
use galley_domain::{ContentGroupId, Invalid, WorkspaceId};
use galley_storage::{Tx, WriteTx, content_groups, content_pieces, events, webhooks, workspaces};

use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::content_pieces::{removal_event, unknown_field};
use crate::operations::{event, restored_version};
use crate::precondition::VersionPrecondition;
use crate::references;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// An update of a group.
#[derive(Debug, Clone)]
pub struct ContentGroupUpdate {
    /// The group.
    pub id: ContentGroupId,
    /// The name.
    pub name: Option<ContentGroupName>,
    /// The new parent group; `Some(None)` for the top level.
    pub ancestor: Option<Option<ContentGroupId>>,
}

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
    name: ContentGroupName,
    ancestor: Option<ContentGroupId>,
    request: IdempotentRequest,
    respond: Respond<GroupView>,
) -> Result<CreatedResponse, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let create = async move |tx: &WriteTx<'_>| {
        let group = create_in(tx, &environment, &scope, &name, ancestor).await?;
        get_in(tx, &scope, group.id, false).await
    };
    idempotency::create(caller, "content_groups.create", request, create, respond).await
}

/// Updates a group.
pub async fn update(
    caller: &Caller,
    update: ContentGroupUpdate,
    expected: VersionPrecondition,
) -> Result<GroupView, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        update_in(tx, &environment, &scope, &update, &expected).await?;
        get_in(tx, &scope, update.id, false).await
    };
    caller.write("content_groups.update", write).await
}

/// Deletes a group, with everything in it if `recursive`.
pub async fn delete(
    caller: &Caller,
    id: ContentGroupId,
    recursive: bool,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        delete_in(tx, &environment, &scope, id, recursive, &expected).await
    };
    caller.write("content_groups.delete", write).await
}

/// Creates a group under `ancestor`, or at the top level.
pub async fn create_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    name: &ContentGroupName,
    ancestor: Option<ContentGroupId>,
) -> Result<ContentGroup, Error> {
    let id = ContentGroupId::new(environment.new_id());
    let group = ContentGroup { id, name: name.clone(), version: 1 };
    insert(tx, environment, scope, group, ancestor).await
}

/// Creates a group with the id that it had in another store.
pub async fn create_with_id(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentGroupId,
    name: &ContentGroupName,
    ancestor: Option<ContentGroupId>,
) -> Result<ContentGroup, Error> {
    let group = ContentGroup { id, name: name.clone(), version: restored_version(environment) };
    insert(tx, environment, scope, group, ancestor).await
}

async fn insert(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    group: ContentGroup,
    ancestor: Option<ContentGroupId>,
) -> Result<ContentGroup, Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let parents = parent_path(tx, scope, ancestor).await?;
    check_depth(parents.groups().len() + 1)?;
    let now = environment.now();
    content_groups::insert(tx, scope.workspace, &group, &parents, now).await?;
    let path = parents.child(group.id);
    let data = event_data(&group, &path, &[]);
    let added = event(environment, ResourceChange::GroupAdded(path), data, None);
    events::append(tx, scope.workspace, &[added], now).await?;
    Ok(group)
}

/// Renames a group, or moves it with its subtree.
pub async fn update_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    update: &ContentGroupUpdate,
    expected: &VersionPrecondition,
) -> Result<ContentGroup, Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let (before, path) = find(tx, scope, update.id).await?;
    expected.check_version(before.version)?;
    let mut group = before.clone();
    group.name = update.name.clone().unwrap_or(group.name);
    let target = match update.ancestor {
        Some(ancestor) => move_target(tx, scope, update.id, &path, ancestor).await?,
        None => None,
    };
    if group == before && target.is_none() {
        return Ok(before);
    }
    group.version += 1;
    content_groups::update(tx, scope.workspace, &group).await?;
    let Some(parents) = target else { return Ok(group) };
    let parent = parents.groups().last().copied();
    content_groups::move_under(tx, scope.workspace, group.id, parent).await?;
    let children = content_groups::children_of(tx, scope.workspace, &[group.id]).await?;
    let children = children.get(&group.id).map(Vec::as_slice).unwrap_or_default();
    let path_after = parents.child(group.id);
    let data_before = event_data(&before, &path, children);
    let data = event_data(&group, &path_after, children);
    let occurrence = ResourceChange::GroupMoved { before: path, after: path_after };
    let moved = event(environment, occurrence, data, Some(data_before));
    events::append(tx, scope.workspace, &[moved], environment.now()).await?;
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
) -> Result<(), Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let (group, path) = find(tx, scope, id).await?;
    expected.check_version(group.version)?;
    if recursive {
        delete_contents(tx, environment, scope, id, &path).await?;
    } else if content_groups::has_contents(tx, scope.workspace, id).await? {
        let detail =
            "the group contains groups or pieces: delete these first, or send recursive=true";
        return Err(Rejection::new(Reason::NotEmpty, detail).into());
    }
    let data = event_data(&group, &path, &[]);
    let removed = event(environment, ResourceChange::GroupRemoved(path), data, None);
    webhooks::disable_on_group(tx, scope.workspace, id).await?;
    content_groups::delete(tx, scope.workspace, id).await?;
    events::append(tx, scope.workspace, &[removed], environment.now()).await?;
    Ok(())
}

/// The number of pieces that are deleted per batch.
const DELETE_BATCH: i64 = 500;

/// Deletes the pieces and groups under a group, leaves first, with their events.
async fn delete_contents(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentGroupId,
    path: &GroupPath,
) -> Result<(), Error> {
    let (workspace, now) = (scope.workspace, environment.now());
    if content_pieces::has_more_than(tx, workspace, id, RECURSIVE_DELETE_MAX).await? {
        let detail = format!(
            "the group and its subgroups contain more than {RECURSIVE_DELETE_MAX} pieces: delete \
             some subgroups or pieces first"
        );
        return Err(Rejection::new(Reason::TooLarge, detail).into());
    }
    let groups = content_groups::subtree(tx, workspace, &[id]).await?;
    for (group, path) in descendants_first(groups, id, path) {
        // Works in batches, as the events of all pieces are large.
        loop {
            let batch =
                content_pieces::list_in_group_for_deletion(tx, workspace, group.id, DELETE_BATCH)
                    .await?;
            if batch.is_empty() {
                break;
            }
            let referenced = references::of_pieces(tx, workspace, batch.iter()).await?;
            let mut removed = Vec::with_capacity(batch.len());
            for piece in &batch {
                removed.push(removal_event(environment, piece, &referenced, path.clone()));
                content_pieces::delete(tx, workspace, piece).await?;
            }
            events::append(tx, workspace, &removed, now).await?;
        }
        if group.id != id {
            let data = event_data(&group, &path, &[]);
            let removed = event(environment, ResourceChange::GroupRemoved(path), data, None);
            webhooks::disable_on_group(tx, workspace, group.id).await?;
            content_groups::delete(tx, workspace, group.id).await?;
            events::append(tx, workspace, &[removed], now).await?;
        }
    }
    Ok(())
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
        let issue = Issue::new(vec![Step::Field("ancestor".to_owned())], &invalid);
        return Err(Rejection::of_issues(vec![issue]).into());
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
    let issue = Issue::new(vec![Step::Field("ancestor".to_owned())], &invalid);
    Err(Rejection::of_issues(vec![issue]).into())
}

fn event_data(group: &ContentGroup, path: &GroupPath, children: &[ContentGroupId]) -> String {
    let groups = path.groups();
    let body = ContentGroupBody {
        id: group.id,
        name: group.name.as_str(),
        ancestors: &groups[..groups.len().saturating_sub(1)],
        descendants: Descendants::Ids(children),
    };
    serde_json::to_string(&body).expect("resources are JSON")
}

/// A group with its ancestors and descendants, as a scope sees them.
#[derive(Debug)]
pub struct GroupView {
    /// The group.
    pub group: ContentGroup,
    ancestors: Vec<ContentGroupId>,
    descendants: GroupDescendants,
}

/// The groups below others: the ids of the children, or all descendants.
#[derive(Debug)]
enum GroupDescendants {
    Children(HashMap<ContentGroupId, Vec<ContentGroupId>>),
    Subtree(Vec<(ContentGroup, Option<ContentGroupId>)>),
}

impl GroupDescendants {
    async fn find(
        tx: &Tx<'_>,
        workspace: WorkspaceId,
        ids: &[ContentGroupId],
        subtree: bool,
    ) -> Result<Self, Error> {
        Ok(if subtree {
            Self::Subtree(content_groups::subtree(tx, workspace, ids).await?)
        } else {
            Self::Children(content_groups::children_of(tx, workspace, ids).await?)
        })
    }

    /// Returns the descendants of one group with these ancestors.
    fn of(&self, id: ContentGroupId, ancestors: &[ContentGroupId]) -> Descendants<'_> {
        match self {
            Self::Children(children) => {
                Descendants::Ids(children.get(&id).map(Vec::as_slice).unwrap_or_default())
            }
            Self::Subtree(subtree_groups) => {
                let path: Vec<_> = ancestors.iter().copied().chain([id]).collect();
                Descendants::Nested(nested(subtree_groups, id, &path))
            }
        }
    }
}

impl GroupView {
    /// Returns the representation that GET responds with.
    pub fn body(&self) -> ContentGroupBody<'_> {
        let Self { group, ancestors, descendants } = self;
        let descendants = descendants.of(group.id, ancestors);
        ContentGroupBody { id: group.id, name: group.name.as_str(), ancestors, descendants }
    }
}

/// Returns a group with the ids of its children, or with all descendants.
pub async fn get_in(
    tx: &Tx<'_>,
    scope: &Scope,
    id: ContentGroupId,
    subtree: bool,
) -> Result<GroupView, Error> {
    let workspace = scope.workspace;
    let (group, path) =
        try_join(content_groups::find(tx, workspace, id), content_groups::path(tx, workspace, id))
            .await?;
    let group = group.filter(|_| scope.contains(&path)).ok_or_else(Error::not_found)?;
    let path = scope.visible(&path);
    let ancestors = path[..path.len() - 1].to_vec();
    let descendants = GroupDescendants::find(tx, workspace, &[id], subtree).await?;
    Ok(GroupView { group, ancestors, descendants })
}

/// A page of groups.
#[derive(Debug)]
pub struct GroupList {
    groups: Vec<ContentGroup>,
    ancestors: Vec<ContentGroupId>,
    descendants: GroupDescendants,
    /// True if more groups follow.
    pub has_more: bool,
}

impl GroupList {
    /// Returns the representations of the groups in a list.
    pub fn bodies(&self) -> Vec<ContentGroupBody<'_>> {
        let body =
            |group: &'_ ContentGroup| (group.id, self.descendants.of(group.id, &self.ancestors));
        let groups = self.groups.iter().map(|group| (group, body(group)));
        groups
            .map(|(group, (id, descendants))| ContentGroupBody {
                id,
                name: group.name.as_str(),
                ancestors: &self.ancestors,
                descendants,
            })
            .collect()
    }

    /// Returns the id of the last group.
    pub fn last(&self) -> Option<ContentGroupId> {
        self.groups.last().map(|group| group.id)
    }
}

/// A request for a page of groups.
#[derive(Debug, Clone)]
pub struct GroupListRequest {
    /// The group whose children are listed; `None` for the top level of the scope.
    pub ancestor: Option<ContentGroupId>,
    /// True to include all descendants instead of the ids of the children.
    pub subtree: bool,
    /// The id after which the page begins.
    pub after: Option<String>,
    /// The number of groups to skip.
    pub offset: i64,
    /// The limit of the page.
    pub per_page: i64,
}

/// Lists the children of a group, or the top level of the scope.
pub async fn list_in(
    tx: &Tx<'_>,
    scope: &Scope,
    request: &GroupListRequest,
) -> Result<GroupList, Error> {
    let workspace = scope.workspace;
    let path = match request.ancestor {
        Some(ancestor) => content_groups::path(tx, workspace, ancestor).await?,
        None => GroupPath::default(),
    };
    let mut groups = list_level(tx, scope, request, &path).await?;
    let per_page = usize::try_from(request.per_page).unwrap_or(usize::MAX);
    let has_more = groups.len() > per_page;
    groups.truncate(per_page);
    let ids: Vec<_> = groups.iter().map(|group| group.id).collect();
    let descendants = GroupDescendants::find(tx, workspace, &ids, request.subtree).await?;
    let ancestors = scope.visible(&path).to_vec();
    Ok(GroupList { groups, ancestors, descendants, has_more })
}

async fn list_level(
    tx: &Tx<'_>,
    scope: &Scope,
    request: &GroupListRequest,
    path: &GroupPath,
) -> Result<Vec<ContentGroup>, Error> {
    let (limit, offset) = (request.per_page + 1, request.offset);
    let (workspace, after) = (scope.workspace, request.after.as_deref());
    Ok(match (request.ancestor, &scope.content_groups) {
        (Some(_), _) if !scope.contains(path) => Vec::new(),
        (None, Some(limits)) => {
            let roots = find_roots(tx, scope, limits).await?;
            content_groups::list_some(tx, workspace, &roots, after, limit, offset).await?
        }
        (ancestor, _) => {
            content_groups::list_children(tx, workspace, ancestor, after, limit, offset).await?
        }
    })
}

/// Returns the groups of a token that are not below another one of them.
async fn find_roots(
    tx: &Tx<'_>,
    scope: &Scope,
    limits: &[ContentGroupId],
) -> Result<Vec<ContentGroupId>, Error> {
    let mut roots = Vec::new();
    for &group in limits {
        let path = content_groups::path(tx, scope.workspace, group).await?;
        if scope.visible(&path).first() == Some(&group) {
            roots.push(group);
        }
    }
    Ok(roots)
}
