//! Variants. The overrides of pieces are in [`crate::tables::content_piece_variants`].

use galley_domain::variant::{Variant, VariantRef};
use galley_domain::{Timestamp, VariantId, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list, params, read_row, row};
use crate::tables::paging::IdPage;
use crate::tables::{asset_references, content_piece_references, content_piece_revisions};

const COLUMNS: &str = "id, key, label, description, version";

fn read(row: &Row<'_>) -> Result<Variant> {
    Ok(read_row!(row, 0 => Variant { id, key, label, description, version }))
}

/// Finds a variant.
pub async fn find(tx: &Tx<'_>, workspace: WorkspaceId, id: VariantId) -> Result<Option<Variant>> {
    find_named(tx, workspace, &VariantRef::Id(id)).await
}

/// Finds a variant by its id or key.
pub async fn find_named(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    name: &VariantRef,
) -> Result<Option<Variant>> {
    find_locked(tx, workspace, name, "").await
}

/// Finds a variant by its id or key, and locks it against deletion until the transaction ends, for
/// changes of overrides. Lock order: the variant before the piece, to avoid a deadlock with the
/// deletion of the variant. If another transaction has locked it, a write of a group leaves the
/// group.
pub async fn find_named_for_override(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    name: &VariantRef,
) -> Result<Option<Variant>> {
    if !tx.is_shared() {
        return find_locked(tx, workspace, name, tx.for_key_share()).await;
    }
    let found = find_locked(tx, workspace, name, tx.for_key_share_skip_locked()).await?;
    if found.is_none() {
        tx.leave_group()?;
    }
    Ok(found)
}

async fn find_locked(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    name: &VariantRef,
    lock: &str,
) -> Result<Option<Variant>> {
    let (column, value) = match name {
        VariantRef::Id(id) => ("id", Value::from(*id)),
        VariantRef::Key(key) => ("lower(key)", Value::from(key.in_lower_case())),
    };
    let sql =
        format!("SELECT {COLUMNS} FROM variants WHERE workspace_id = ?1 AND {column} = ?2{lock}");
    tx.find(&sql, &[Value::from(workspace), value], read).await
}

/// Finds a variant for update. The lock blocks other updates and changes of overrides until the
/// transaction ends.
pub async fn find_for_update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: VariantId,
) -> Result<Option<Variant>> {
    find_locked(tx, workspace, &VariantRef::Id(id), tx.for_update()).await
}

/// Returns those of `ids` that exist.
pub async fn find_all(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[VariantId],
) -> Result<Vec<Variant>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let listed = in_list("id", ids.iter().copied(), &mut params);
    let sql = format!("SELECT {COLUMNS} FROM variants WHERE workspace_id = ?1{listed}");
    tx.query(&sql, &params, read).await
}

/// Lists variants by creation.
pub async fn list(tx: &Tx<'_>, workspace: WorkspaceId, page: &IdPage) -> Result<Vec<Variant>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM variants WHERE workspace_id = ?1 AND id > ?2
         ORDER BY id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &page.params(workspace), read).await
}

/// Inserts a new variant.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    variant: &Variant,
    now: Timestamp,
) -> Result<()> {
    let mut params = columns(workspace, variant);
    params.push(now.into());
    let sql =
        "INSERT INTO variants (workspace_id, id, key, label, description, version, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    tx.change(sql, &params, Affects::Content(workspace)).await
}

/// Updates a variant.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, variant: &Variant) -> Result<()> {
    let sql = "UPDATE variants SET key = ?3, label = ?4, description = ?5, version = ?6
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, &columns(workspace, variant), Affects::Content(workspace)).await
}

fn columns(workspace: WorkspaceId, variant: &Variant) -> Vec<Value<'_>> {
    let Variant { id, key, label, description, version } = variant;
    row![workspace, id, key, label, description, *version].to_vec()
}

/// Deletes a variant with all its overrides, and increments the version of each piece that had one.
/// Returns true if it existed. The caller has locked it by [`find_for_update`].
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: VariantId) -> Result<bool> {
    content_piece_references::remove_variant(tx, workspace, id).await?;
    asset_references::delete_of_variant(tx, workspace, id).await?;
    content_piece_revisions::clear_variant(tx, workspace, id).await?;
    let sql = "DELETE FROM variants WHERE workspace_id = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![workspace, id], Affects::Content(workspace)).await? > 0)
}
