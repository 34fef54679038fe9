//! Making, changing, moving and deleting content groups.

use galley_domain::content_group::{
    ContentGroup, ContentGroupName, DEPTH_MAX, GroupPath, RECURSIVE_DELETE_MAX,
};
use galley_domain::event::Occurrence;
use galley_domain::{ContentGroupId, Invalid};
use galley_storage::events;
use galley_storage::{WriteTx, content_groups, content_pieces, webhooks, workspaces};

use crate::environment::Environment;
use crate::http::error::Error;
use crate::http::problem::{Issue, Problem, Reason, Step};
use crate::operations::content_pieces::{removal, unknown};
use crate::operations::{Expected, Scope, event, restored_version};
use crate::representation::content_group::{ContentGroupBody, Descendants};
use crate::representation::content_piece::Referenced;

/// A group's change.
#[derive(Debug, Clone)]
pub struct ContentGroupUpdate {
    /// Which group.
    pub id: ContentGroupId,
    /// What people call it.
    pub name: Option<ContentGroupName>,
    /// The group that it is to stand under; `Some(None)`: at the top.
    pub ancestor: Option<Option<ContentGroupId>>,
}

/// Makes a group under `ancestor`, or at the top.
pub async fn create(
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

/// The same with an id that it had in another store.
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
    let added = event(environment, Occurrence::GroupAdded(path), data, None);
    events::append(tx, scope.workspace, &[added], now).await?;
    Ok(group)
}

/// Renames a group, or moves it with all that is under it.
pub async fn update(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    update: &ContentGroupUpdate,
    expected: &Expected,
) -> Result<ContentGroup, Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let (before, path) = find(tx, scope, update.id).await?;
    expected.check(before.version)?;
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
    let occurrence = Occurrence::GroupMoved { before: path, after: path_after };
    let moved = event(environment, occurrence, data, Some(data_before));
    events::append(tx, scope.workspace, &[moved], environment.now()).await?;
    Ok(group)
}

/// Deletes a group that holds nothing, or with all that it holds.
pub async fn delete(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentGroupId,
    recursive: bool,
    expected: &Expected,
) -> Result<(), Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let (group, path) = find(tx, scope, id).await?;
    expected.check(group.version)?;
    if recursive {
        delete_what_it_holds(tx, environment, scope, id, &path).await?;
    } else if content_groups::holds_anything(tx, scope.workspace, id).await? {
        let detail = "the group holds groups or pieces: delete these first, or send recursive=true";
        return Err(Problem::new(Reason::NotEmpty, detail).into());
    }
    let data = event_data(&group, &path, &[]);
    let removed = event(environment, Occurrence::GroupRemoved(path), data, None);
    webhooks::disable_on_group(tx, scope.workspace, id).await?;
    content_groups::delete(tx, scope.workspace, id).await?;
    events::append(tx, scope.workspace, &[removed], environment.now()).await?;
    Ok(())
}

/// How many pieces are deleted between two looks at what is left.
const PART: i64 = 500;

/// Deletes the pieces and groups under a group, leaves first, with their events.
async fn delete_what_it_holds(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentGroupId,
    path: &GroupPath,
) -> Result<(), Error> {
    let (workspace, now) = (scope.workspace, environment.now());
    if content_pieces::are_more_than(tx, workspace, id, RECURSIVE_DELETE_MAX).await? {
        let detail = format!(
            "the group holds more than {RECURSIVE_DELETE_MAX} pieces, with the groups under it: \
             delete parts of it first"
        );
        return Err(Problem::new(Reason::TooLarge, detail).into());
    }
    let groups = content_groups::subtree(tx, workspace, &[id]).await?;
    for (group, path) in leaves_first(groups, id, path) {
        // A part at a time: what all of them say is large.
        loop {
            let part = content_pieces::in_group_to_delete(tx, workspace, group.id, PART).await?;
            if part.is_empty() {
                break;
            }
            let referenced = Referenced::of(tx, workspace, part.iter()).await?;
            let mut removed = Vec::with_capacity(part.len());
            for piece in &part {
                removed.push(removal(environment, piece, &referenced, path.clone()));
                content_pieces::delete(tx, workspace, piece).await?;
            }
            events::append(tx, workspace, &removed, now).await?;
        }
        if group.id != id {
            let data = event_data(&group, &path, &[]);
            let removed = event(environment, Occurrence::GroupRemoved(path), data, None);
            webhooks::disable_on_group(tx, workspace, group.id).await?;
            content_groups::delete(tx, workspace, group.id).await?;
            events::append(tx, workspace, &[removed], now).await?;
        }
    }
    Ok(())
}

/// The groups of a subtree with their paths, each after those under it.
fn leaves_first(
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

/// A group within the scope, and the path to it.
async fn find(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: ContentGroupId,
) -> Result<(ContentGroup, GroupPath), Error> {
    let found = content_groups::find(tx, scope.workspace, id).await?;
    let path = content_groups::path(tx, scope.workspace, id).await?;
    match found {
        Some(group) if scope.holds(&path) => Ok((group, path)),
        _ => Err(Error::not_found()),
    }
}

/// The path to the group that another is to stand under.
async fn parent_path(
    tx: &WriteTx<'_>,
    scope: &Scope,
    ancestor: Option<ContentGroupId>,
) -> Result<GroupPath, Error> {
    let Some(ancestor) = ancestor else {
        if scope.content_groups.is_some() {
            let detail = "the token is limited to some groups and can't put one at the top";
            return Err(Problem::new(Reason::OutsideGroupLimit, detail).into());
        }
        return Ok(GroupPath::default());
    };
    let path = content_groups::path(tx, scope.workspace, ancestor).await?;
    if scope.holds(&path) {
        return Ok(path);
    }
    Err(Problem::of_issues(vec![unknown("ancestor", "content group")]).into())
}

/// The path that a group at `path` is to be moved under; nothing if it stands there already.
async fn move_target(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: ContentGroupId,
    path: &GroupPath,
    ancestor: Option<ContentGroupId>,
) -> Result<Option<GroupPath>, Error> {
    // As the scope shows it: for a limited token its own groups stand at the top.
    let parent = scope.visible(path).iter().rev().nth(1).copied();
    if parent == ancestor {
        return Ok(None);
    }
    let parents = parent_path(tx, scope, ancestor).await?;
    if parents.contains(id) {
        let invalid = Invalid::new("circle", "must not name the group itself or one under it");
        let issue = Issue::new(vec![Step::Field("ancestor".to_owned())], &invalid);
        return Err(Problem::of_issues(vec![issue]).into());
    }
    let height = content_groups::height(tx, scope.workspace, id).await?;
    check_depth(parents.groups().len() + 1 + height)?;
    Ok(Some(parents))
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth <= DEPTH_MAX {
        return Ok(());
    }
    let invalid = Invalid::new("too_deep", format!("would make more than {DEPTH_MAX} levels"));
    let issue = Issue::new(vec![Step::Field("ancestor".to_owned())], &invalid);
    Err(Problem::of_issues(vec![issue]).into())
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
