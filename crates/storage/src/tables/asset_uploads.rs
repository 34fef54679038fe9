//! Resumable uploads of assets. The bytes of their parts are in the store of assets. Each part is a
//! leftover, so its file is removed at the latest when the upload expires.

use galley_domain::asset::{AssetUpload, UploadPart};
use galley_domain::{AssetId, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, WriteTx, params, read_row};

/// Inserts an upload.
pub async fn insert(tx: &WriteTx<'_>, workspace: WorkspaceId, upload: &AssetUpload) -> Result<()> {
    let sql = "INSERT INTO asset_uploads (workspace_id, id, filename, alt, content_group_id,
            metadata, size, received, part_count, expires_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let params = params! {
        workspace, upload.id, &upload.filename, &upload.alt, upload.content_group_id,
        &upload.metadata, upload.size, upload.received, upload.part_count, upload.expires_at
    };
    tx.change(sql, params, Affects::Nothing).await
}

/// Finds an upload that has not expired at `now`.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: AssetId,
    now: Timestamp,
) -> Result<Option<AssetUpload>> {
    let sql = "SELECT id, filename, alt, content_group_id, metadata, size, received, part_count,
            expires_at_ms
        FROM asset_uploads WHERE workspace_id = ?1 AND id = ?2 AND expires_at_ms > ?3";
    let read = |row: &Row<'_>| {
        Ok(read_row!(row, 0 => AssetUpload {
            id, filename, alt, content_group_id, metadata, size, received, part_count, expires_at
        }))
    };
    tx.find(sql, params![workspace, id, now], read).await
}

/// Returns the number of uploads of a workspace, at most `limit`, and the size of their files
/// together.
pub async fn count(tx: &Tx<'_>, workspace: WorkspaceId, limit: i64) -> Result<(i64, i64)> {
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT)
        FROM (SELECT size FROM asset_uploads WHERE workspace_id = ?1 LIMIT ?2) AS uploads";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found = tx.find(sql, params![workspace, limit], read).await?;
    Ok(found.unwrap_or_default())
}

/// Lists the parts of an upload by their position.
pub async fn list_parts(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: AssetId,
) -> Result<Vec<UploadPart>> {
    let sql = "SELECT file_id, first_byte, size FROM asset_upload_parts
        WHERE workspace_id = ?1 AND upload_id = ?2 ORDER BY first_byte";
    let read = |row: &Row<'_>| Ok(read_row!(row, 0 => UploadPart { file, first_byte, size }));
    tx.query(sql, params![workspace, id], read).await
}

/// Appends a stored part. Returns false if the upload has ended, or continues elsewhere.
pub async fn append_part(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: AssetId,
    part: UploadPart,
) -> Result<bool> {
    let sql = "UPDATE asset_uploads SET received = received + ?4, part_count = part_count + 1
        WHERE workspace_id = ?1 AND id = ?2 AND received = ?3";
    let params = params![workspace, id, part.first_byte, part.size];
    if tx.execute(sql, params, Affects::Nothing).await? == 0 {
        return Ok(false);
    }
    let sql = "INSERT INTO asset_upload_parts (workspace_id, upload_id, first_byte, file_id, size)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let params = params![workspace, id, part.first_byte, part.file, part.size];
    tx.change(sql, params, Affects::Nothing).await?;
    Ok(true)
}

/// Deletes an upload of which so many bytes are stored. Returns false if there is none. From `now`
/// on, the files of its parts are to be removed.
pub async fn delete(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: AssetId,
    received: i64,
    now: Timestamp,
) -> Result<bool> {
    let sql = "SELECT 1 FROM asset_uploads WHERE workspace_id = ?1 AND id = ?2 AND received = ?3";
    let locked = format!("{sql}{}", tx.for_update());
    if !tx.exists(&locked, params![workspace, id, received]).await? {
        return Ok(false);
    }
    let sql = "UPDATE asset_leftovers SET remove_at_ms = ?3
        WHERE workspace_id = ?1 AND file_id IN (SELECT p.file_id FROM asset_upload_parts p
            WHERE p.workspace_id = ?1 AND p.upload_id = ?2)";
    tx.change(sql, params![workspace, id, now], Affects::Nothing).await?;
    let sql = "DELETE FROM asset_upload_parts WHERE workspace_id = ?1 AND upload_id = ?2";
    tx.change(sql, params![workspace, id], Affects::Nothing).await?;
    let sql = "DELETE FROM asset_uploads WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id], Affects::Nothing).await?;
    Ok(true)
}

/// Lists uploads that expired at `now` or earlier, by time.
pub async fn expired(
    tx: &Tx<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(WorkspaceId, AssetId, i64)>> {
    let sql = "SELECT workspace_id, id, received FROM asset_uploads WHERE expires_at_ms <= ?1
        ORDER BY expires_at_ms, workspace_id, id LIMIT ?2";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    tx.query(sql, params![now, limit], read).await
}
