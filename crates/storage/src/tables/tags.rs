//! Tags.

use galley_domain::publication::ContentView;
use galley_domain::tag::{Tag, TagLabel};
use galley_domain::{ContentGroupId, TagId, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list_or_all, params, read_row};
use crate::tables::content_piece_references;
use crate::tables::content_pieces::under_filter;
use crate::tables::paging::IdPage;
use crate::tables::piece_tables::tables;

fn read(row: &Row<'_>) -> Result<Tag> {
    Ok(read_row!(row, 0 => Tag { id, label, color, version }))
}

/// Finds a tag.
pub async fn find(tx: &Tx<'_>, workspace: WorkspaceId, id: TagId) -> Result<Option<Tag>> {
    let sql = "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND id = ?2";
    tx.find(sql, params![workspace, id], read).await
}

/// The tags of pieces in a view, if `within` is set in the subtree of one of its groups.
#[derive(Debug, Clone, Copy)]
pub struct UsedTags<'g> {
    /// The view.
    pub view: ContentView,
    /// The groups.
    pub within: Option<&'g [ContentGroupId]>,
}

/// Finds a tag that a piece has, itself or in a variant.
pub async fn find_used(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: TagId,
    used: UsedTags<'_>,
) -> Result<Option<Tag>> {
    let mut params = vec![Value::from(workspace), Value::from(id)];
    let filter = used_filter(used, &mut params);
    let sql = format!(
        "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND id = ?2{filter}"
    );
    tx.find(&sql, &params, read).await
}

/// Returns the condition that a piece has the tag. Up to all pieces with the tag are read.
fn used_filter(UsedTags { view, within }: UsedTags<'_>, params: &mut Vec<Value<'_>>) -> String {
    let tables = tables(view);
    let is_within = within.map_or_else(String::new, |roots| under_filter(roots, params));
    let has_row = |table: &str| {
        format!(
            "EXISTS (SELECT 1 FROM {table} t
                JOIN {} p ON p.workspace_id = ?1 AND p.id = t.content_piece_id
                WHERE t.workspace_id = ?1 AND t.tag_id = tags.id{is_within})",
            tables.pieces
        )
    };
    let (of_pieces, of_variants) = (has_row(tables.tags), has_row(tables.variant_tags));
    format!(" AND ({of_pieces} OR {of_variants})")
}

/// Finds a tag for update, and locks it until the transaction ends.
pub async fn find_for_update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: TagId,
) -> Result<Option<Tag>> {
    let sql = format!(
        "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND id = ?2{}",
        tx.for_update()
    );
    tx.find(&sql, params![workspace, id], read).await
}

/// Returns those of `ids` that are tags of the workspace, in any order, and possibly others.
pub async fn find_all(tx: &Tx<'_>, workspace: WorkspaceId, ids: &[TagId]) -> Result<Vec<Tag>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let filter = in_list_or_all("id", ids.iter().copied(), &mut params);
    let sql = format!("SELECT id, label, color, version FROM tags WHERE workspace_id = ?1{filter}");
    tx.query(&sql, &params, read).await
}

/// Lists tags by creation: all, or the used ones.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    used: Option<UsedTags<'_>>,
    page: &IdPage,
) -> Result<Vec<Tag>> {
    let mut params = page.params(workspace).to_vec();
    let filter = used.map_or_else(String::new, |used| used_filter(used, &mut params));
    let sql = format!(
        "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND id > ?2{filter}
         ORDER BY id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Finds the oldest tag with this label.
pub async fn find_by_label(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    label: &TagLabel,
) -> Result<Option<Tag>> {
    let sql = "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND label = ?2
        ORDER BY id LIMIT 1";
    tx.find(sql, params![workspace, label.as_str()], read).await
}

/// Inserts a new tag.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    tag: &Tag,
    now: Timestamp,
) -> Result<()> {
    let sql = "INSERT INTO tags (workspace_id, id, label, color, version, created_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    tx.change(
        sql,
        params![workspace, tag.id, &tag.label, tag.color, tag.version, now],
        Affects::Content(workspace),
    )
    .await
}

/// Updates a tag.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, tag: &Tag) -> Result<()> {
    let sql =
        "UPDATE tags SET label = ?3, color = ?4, version = ?5 WHERE workspace_id = ?1 AND id = ?2";
    tx.change(
        sql,
        params![workspace, tag.id, &tag.label, tag.color, tag.version],
        Affects::Content(workspace),
    )
    .await
}

/// Deletes a tag, and removes it from all pieces and their variants. Returns true if it existed.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: TagId) -> Result<bool> {
    content_piece_references::remove_tag(tx, workspace, id).await?;
    let sql = "DELETE FROM tags WHERE workspace_id = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![workspace, id], Affects::Content(workspace)).await? > 0)
}
