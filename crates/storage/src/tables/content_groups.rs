//! Content groups and their ancestors.
//!
//! `content_group_paths` has a row for each group and each of its ancestors, itself included, so
//! that a subtree is one index range. A transaction that moves or deletes a group locks the
//! workspace first ([`crate::tables::workspaces::lock`]).

use std::collections::{BTreeSet, HashMap, HashSet};

use galley_domain::content_group::{ContentGroup, GroupPath, PreviewUrl};
use galley_domain::{ContentGroupId, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list, params, read_row, row};
use crate::tables::paging::IdPage;

fn read(row: &Row<'_>) -> Result<ContentGroup> {
    Ok(read_row!(row, 0 => ContentGroup {
        id, name, unique_slugs, custom_data_schema, preview_url, version,
    }))
}

/// Finds a group.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentGroupId,
) -> Result<Option<ContentGroup>> {
    let sql = "SELECT id, name, unique_slugs, custom_data_schema, preview_url, version
        FROM content_groups WHERE workspace_id = ?1 AND id = ?2";
    tx.find(sql, params![workspace, id], read).await
}

/// Returns the path to a group, itself included. The path is empty if the group doesn't exist.
pub async fn path(tx: &Tx<'_>, workspace: WorkspaceId, id: ContentGroupId) -> Result<GroupPath> {
    let sql = "SELECT ancestor_id FROM content_group_paths
        WHERE workspace_id = ?1 AND group_id = ?2 ORDER BY depth DESC";
    let groups = tx.query(sql, params![workspace, id], |row| row.get(0)).await?;
    Ok(GroupPath::new(groups))
}

/// Returns the paths to those of `groups` that exist in these workspaces.
pub(crate) async fn paths(
    tx: &Tx<'_>,
    workspaces: &[WorkspaceId],
    groups: &BTreeSet<ContentGroupId>,
) -> Result<HashMap<ContentGroupId, GroupPath>> {
    if groups.is_empty() {
        return Ok(HashMap::new());
    }
    let mut params = Vec::new();
    let of_workspaces = in_list("workspace_id", workspaces.iter().copied(), &mut params);
    let listed = in_list("group_id", groups.iter().copied(), &mut params);
    let sql = format!(
        "SELECT group_id, ancestor_id FROM content_group_paths WHERE TRUE{of_workspaces}{listed}
         ORDER BY depth DESC"
    );
    let mut paths: HashMap<_, Vec<_>> = HashMap::new();
    for (group, ancestor) in tx.query(&sql, &params, |row| Ok((row.get(0)?, row.get(1)?))).await? {
        paths.entry(group).or_default().push(ancestor);
    }
    Ok(paths.into_iter().map(|(group, path)| (group, GroupPath::new(path))).collect())
}

/// Returns those of `ids` that are groups of the workspace. If `within` is set, they must also be
/// in the subtree of one of its groups.
pub async fn existing(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[ContentGroupId],
    within: Option<&[ContentGroupId]>,
) -> Result<HashSet<ContentGroupId>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let mut params = vec![Value::from(workspace)];
    let filter = in_list("g.group_id", ids.iter().copied(), &mut params);
    let within = match within {
        Some(roots) => in_list("g.ancestor_id", roots.iter().copied(), &mut params),
        None => String::new(),
    };
    let sql = format!(
        "SELECT DISTINCT g.group_id FROM content_group_paths g
         WHERE g.workspace_id = ?1{filter}{within}"
    );
    Ok(tx.query(&sql, &params, |row| row.get(0)).await?.into_iter().collect())
}

/// Lists the children of `parent` (`None`: the top level) by creation.
pub async fn list_children(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    parent: Option<ContentGroupId>,
    page: &IdPage,
) -> Result<Vec<ContentGroup>> {
    let mut params = page.params(workspace).to_vec();
    let parent = parent.map_or("IS NULL", |id| {
        params.push(id.into());
        "= ?5"
    });
    let sql = format!(
        "SELECT id, name, unique_slugs, custom_data_schema, preview_url, version FROM content_groups
         WHERE workspace_id = ?1 AND parent_id {parent} AND id > ?2
         ORDER BY id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Lists those of `ids` that exist, by creation.
pub async fn list_some(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[ContentGroupId],
    page: &IdPage,
) -> Result<Vec<ContentGroup>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = page.params(workspace).to_vec();
    let filter = in_list("id", ids.iter().copied(), &mut params);
    let sql = format!(
        "SELECT id, name, unique_slugs, custom_data_schema, preview_url, version FROM content_groups
         WHERE workspace_id = ?1 AND id > ?2{filter} ORDER BY id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Returns the ids of the children of each of `parents`, by creation.
pub async fn children_of(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    parents: &[ContentGroupId],
) -> Result<HashMap<ContentGroupId, Vec<ContentGroupId>>> {
    let mut children: HashMap<_, Vec<_>> = HashMap::new();
    if parents.is_empty() {
        return Ok(children);
    }
    let mut params = vec![Value::from(workspace)];
    let filter = in_list("parent_id", parents.iter().copied(), &mut params);
    let sql = format!(
        "SELECT parent_id, id FROM content_groups WHERE workspace_id = ?1{filter} ORDER BY id"
    );
    let rows = tx.query(&sql, &params, |row| Ok((row.get(0)?, row.get(1)?))).await?;
    for (parent, child) in rows {
        children.entry(parent).or_default().push(child);
    }
    Ok(children)
}

/// Returns all groups in the subtrees of `roots`, these included, each with its parent, by
/// creation.
pub async fn subtree(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    roots: &[ContentGroupId],
) -> Result<Vec<(ContentGroup, Option<ContentGroupId>)>> {
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let filter = in_list("p.ancestor_id", roots.iter().copied(), &mut params);
    let sql = format!(
        "SELECT DISTINCT g.id, g.name, g.unique_slugs, g.custom_data_schema, g.preview_url, g.version,
            g.parent_id
         FROM content_group_paths p
         JOIN content_groups g ON g.workspace_id = p.workspace_id AND g.id = p.group_id
         WHERE p.workspace_id = ?1{filter} ORDER BY g.id"
    );
    tx.query(&sql, &params, |row| Ok((read(row)?, row.get(6)?))).await
}

/// Returns the number of levels below a group.
pub async fn height(tx: &Tx<'_>, workspace: WorkspaceId, id: ContentGroupId) -> Result<usize> {
    let sql =
        "SELECT MAX(depth) FROM content_group_paths WHERE workspace_id = ?1 AND ancestor_id = ?2";
    let height: Option<usize> = tx.get(sql, params![workspace, id], |row| row.get(0)).await?;
    Ok(height.unwrap_or(0))
}

/// Inserts a new group under the last group of `parents`, or at the top level.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: &ContentGroup,
    parents: &GroupPath,
    now: Timestamp,
) -> Result<()> {
    let parent = parents.groups().last().copied();
    let sql =
        "INSERT INTO content_groups (workspace_id, id, parent_id, name, unique_slugs, version,
            created_at_ms, custom_data_schema, preview_url)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    tx.execute(
        sql,
        params! {
            workspace, group.id, parent, group.name.as_str(), group.unique_slugs, group.version,
            now, &group.custom_data_schema, &group.preview_url
        },
        Affects::Content(workspace),
    )
    .await?;
    let own = [group.id];
    let path = own.iter().chain(parents.groups().iter().rev());
    let rows =
        path.zip(0_i64..).map(|(ancestor, depth)| row![workspace, group.id, ancestor, depth]);
    let sql = "INSERT INTO content_group_paths (workspace_id, group_id, ancestor_id, depth)
        VALUES (?1, ?2, ?3, ?4)";
    tx.insert_each(sql, rows, Affects::Content(workspace)).await
}

/// Updates a group's fields and version.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, group: &ContentGroup) -> Result<()> {
    let sql = "UPDATE content_groups SET name = ?3, unique_slugs = ?4, version = ?5,
            custom_data_schema = ?6, preview_url = ?7
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(
        sql,
        params! {
            workspace, group.id, group.name.as_str(), group.unique_slugs, group.version,
            &group.custom_data_schema, &group.preview_url
        },
        Affects::Content(workspace),
    )
    .await
}

/// Moves a group, with its subtree, under another parent (`None`: the top level).
///
/// The new parent must not be in the subtree itself.
pub async fn move_under(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentGroupId,
    parent: Option<ContentGroupId>,
) -> Result<()> {
    let sql = "UPDATE content_groups SET parent_id = ?3 WHERE workspace_id = ?1 AND id = ?2";
    tx.execute(sql, params![workspace, id, parent], Affects::Content(workspace)).await?;
    let sql = "DELETE FROM content_group_paths WHERE workspace_id = ?1
        AND group_id IN (SELECT s.group_id FROM content_group_paths s
            WHERE s.workspace_id = ?1 AND s.ancestor_id = ?2)
        AND ancestor_id IN (SELECT a.ancestor_id FROM content_group_paths a
            WHERE a.workspace_id = ?1 AND a.group_id = ?2 AND a.depth > 0)";
    tx.execute(sql, params![workspace, id], Affects::Content(workspace)).await?;
    let Some(parent) = parent else { return Ok(()) };
    let sql = "INSERT INTO content_group_paths (workspace_id, group_id, ancestor_id, depth)
        SELECT s.workspace_id, s.group_id, a.ancestor_id, s.depth + a.depth + 1
        FROM content_group_paths s
        JOIN content_group_paths a ON a.workspace_id = s.workspace_id AND a.group_id = ?3
        WHERE s.workspace_id = ?1 AND s.ancestor_id = ?2";
    tx.change(sql, params![workspace, id, parent], Affects::Content(workspace)).await
}

/// Deletes an empty group.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: ContentGroupId) -> Result<()> {
    let sql = "DELETE FROM content_group_paths WHERE workspace_id = ?1 AND group_id = ?2";
    tx.execute(sql, params![workspace, id], Affects::Content(workspace)).await?;
    let sql = "DELETE FROM content_groups WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id], Affects::Content(workspace)).await
}

/// Finds the preview page of a group's pieces: that of the group, or of its nearest ancestor with
/// one.
pub async fn find_preview_url(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<Option<PreviewUrl>> {
    let sql = "SELECT g.preview_url FROM content_groups g
        JOIN content_group_paths p ON p.workspace_id = g.workspace_id AND p.ancestor_id = g.id
        WHERE g.workspace_id = ?1 AND g.preview_url IS NOT NULL AND p.group_id = ?2
        ORDER BY p.depth LIMIT 1";
    tx.find(sql, params![workspace, group], |row| row.get(0)).await
}

/// Returns true if a group contains other groups or pieces.
pub async fn has_contents(tx: &Tx<'_>, workspace: WorkspaceId, id: ContentGroupId) -> Result<bool> {
    let groups = "SELECT 1 FROM content_groups WHERE workspace_id = ?1 AND parent_id = ?2 LIMIT 1";
    let pieces = "SELECT 1 FROM content_pieces
        WHERE workspace_id = ?1 AND content_group_id = ?2 LIMIT 1";
    Ok(tx.exists(groups, params![workspace, id]).await?
        || tx.exists(pieces, params![workspace, id]).await?)
}
