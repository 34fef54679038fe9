//! Tags.

use galley_domain::tag::{Tag, TagLabel};
use galley_domain::{TagId, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list_or_all, params, read_row};
use crate::tables::content_piece_references;
use crate::tables::paging::IdPage;

fn read(row: &Row<'_>) -> Result<Tag> {
    Ok(read_row!(row, 0 => Tag { id, label, color, version }))
}

/// Finds a tag.
pub async fn find(tx: &Tx<'_>, workspace: WorkspaceId, id: TagId) -> Result<Option<Tag>> {
    let sql = "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND id = ?2";
    tx.find(sql, params![workspace, id], read).await
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

/// Lists tags by creation.
pub async fn list(tx: &Tx<'_>, workspace: WorkspaceId, page: &IdPage) -> Result<Vec<Tag>> {
    let sql = "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND id > ?2
        ORDER BY id LIMIT ?3 OFFSET ?4";
    tx.query(sql, &page.params(workspace), read).await
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
