//! Reads of content groups.

use std::collections::HashMap;

use futures_util::future::try_join;
use galley_api_types::content_group::{ContentGroupBody, Descendants, nested};
use galley_domain::content_group::{ContentGroup, GroupPath};
use galley_domain::{ContentGroupId, WorkspaceId};
use galley_storage::{IdPage, Tx, content_groups};

use crate::error::Error;
use crate::scope::Scope;

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
        ContentGroupBody::new(group, ancestors, descendants)
    }
}

/// Returns a group with the ids of its children, or with all descendants.
pub(crate) async fn get_in(
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
        let below = |group: &ContentGroup| self.descendants.of(group.id, &self.ancestors);
        let groups = self.groups.iter();
        groups.map(|group| ContentGroupBody::new(group, &self.ancestors, below(group))).collect()
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
pub(super) async fn list_in(
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
    let (after, offset) = (request.after.clone(), request.offset);
    let page = IdPage { after, limit: request.per_page + 1, offset };
    let workspace = scope.workspace;
    Ok(match (request.ancestor, &scope.content_groups) {
        (Some(_), _) if !scope.contains(path) => Vec::new(),
        (None, Some(limits)) => {
            let roots = find_roots(tx, scope, limits).await?;
            content_groups::list_some(tx, workspace, &roots, &page).await?
        }
        (ancestor, _) => content_groups::list_children(tx, workspace, ancestor, &page).await?,
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
