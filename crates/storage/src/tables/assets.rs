//! Assets and their stored files. The bytes of a file are in the store of assets, under the id of
//! the file. They are stored before its row, and deleted after it. So each file is a
//! leftover from the begin of its upload until it has its row, and again from its deletion on.

use std::fmt::Write;

use galley_domain::asset::{Asset, AssetFile};
use galley_domain::{AssetFileId, AssetId, AssetKey, Timestamp, WorkspaceId};

use crate::engine::{Affects, Error, Result, Row, Tx, Value, WriteTx, in_list, params, read_row};
use crate::tables::asset_usage::VisibleAssets;
use crate::tables::paging::IdPage;

/// The columns of a file `f`.
macro_rules! file_columns {
    () => {
        "f.id, f.sha256, f.size, f.media_type, f.width, f.height, f.placeholder"
    };
}

macro_rules! columns {
    ($group:literal) => {
        concat!(
            "a.id, a.key, a.filename, a.alt, ",
            $group,
            ", a.version, a.created_at_ms, ",
            file_columns!()
        )
    };
}

const FILE_COLUMNS: &str = file_columns!();

/// The columns of an asset `a` and its file `f`. The group is null if it was deleted.
const COLUMNS: &str = columns!(
    "(SELECT g.id FROM content_groups g WHERE g.workspace_id = ?1 AND g.id = a.content_group_id)"
);

/// The same columns without the group.
const COLUMNS_WITHOUT_GROUP: &str = columns!("NULL");

/// The tables of [`COLUMNS`].
const TABLES: &str = "assets a JOIN asset_files f
    ON f.workspace_id = a.workspace_id AND f.id = a.file_id";

/// The first column of the file.
const FILE: usize = 7;

fn read(row: &Row<'_>) -> Result<Asset> {
    let file = read_file(row, FILE)?;
    Ok(read_row!(row, 0 => Asset {
        id, key, filename, alt, content_group_id, version, created_at; file
    }))
}

fn read_file(row: &Row<'_>, first: usize) -> Result<AssetFile> {
    let sha256: Vec<u8> = row.get(first + 1)?;
    let sha256 = sha256.try_into().map_err(|_| Error::corrupt("a hash has not 32 bytes"))?;
    let width: Option<i64> = row.get(first + 4)?;
    let dimensions = match (width, row.get(first + 5)?) {
        (Some(width), Some(height)) => Some((width, height)),
        _ => None,
    };
    Ok(AssetFile {
        id: row.get(first)?,
        sha256,
        size: row.get(first + 2)?,
        media_type: row.get(first + 3)?,
        dimensions,
        placeholder: row.get(first + 6)?,
    })
}

/// Finds an asset, if it is visible.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: AssetId,
    visible: VisibleAssets<'_>,
) -> Result<Option<Asset>> {
    let mut params = params![workspace, id].to_vec();
    let condition = visible.condition(&mut params);
    let sql = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE a.workspace_id = ?1 AND a.id = ?2{condition}"
    );
    tx.find(&sql, &params, read).await
}

/// Finds an asset for update, and locks it until the transaction ends.
pub async fn find_for_update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: AssetId,
    visible: VisibleAssets<'_>,
) -> Result<Option<Asset>> {
    if tx.has_other_writers() {
        let lock =
            format!("SELECT 1 FROM assets WHERE workspace_id = ?1 AND id = ?2{}", tx.for_update());
        tx.exists(&lock, params![workspace, id]).await?;
    }
    find(tx, workspace, id, visible).await
}

/// Lists the assets with these keys, without their groups.
pub async fn list_by_keys(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    keys: &[AssetKey],
) -> Result<Vec<Asset>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let listed = in_list("a.key", keys.iter().copied(), &mut params);
    let sql =
        format!("SELECT {COLUMNS_WITHOUT_GROUP} FROM {TABLES} WHERE a.workspace_id = ?1{listed}");
    tx.query(&sql, &params, read).await
}

/// Finds the asset with this key, without its group, and its workspace.
pub async fn find_by_key(tx: &Tx<'_>, key: AssetKey) -> Result<Option<(WorkspaceId, Asset)>> {
    let sql =
        format!("SELECT {COLUMNS_WITHOUT_GROUP}, a.workspace_id FROM {TABLES} WHERE a.key = ?1");
    tx.find(&sql, params![key], |row| Ok((row.get(FILE + 7)?, read(row)?))).await
}

/// The order and the filters of a list of assets. The default lists all of them.
#[derive(Debug, Clone, Default)]
pub struct AssetFilter {
    /// Lists the newest first.
    pub is_descending: bool,
    /// A media type, or its beginning that ends with a slash.
    pub media_type: Option<String>,
    /// A part of the file's name. ASCII letters match in both cases.
    pub filename: Option<String>,
    /// The SHA-256 of the file.
    pub sha256: Option<[u8; 32]>,
    /// Lists the assets to which pieces refer, or the others.
    pub is_used: Option<bool>,
}

impl AssetFilter {
    fn condition<'v>(&'v self, params: &mut Vec<Value<'v>>) -> String {
        let mut sql = String::new();
        let mut add = |condition: &str, value: Value<'v>| {
            params.push(value);
            write!(sql, " AND {}", condition.replace("{}", &format!("?{}", params.len())))
                .expect("a String takes every text");
        };
        if let Some(media_type) = &self.media_type {
            if media_type.ends_with('/') {
                add("f.media_type LIKE {} ESCAPE '!'", format!("{}%", escaped(media_type)).into());
            } else {
                add("f.media_type = {}", media_type.as_str().into());
            }
        }
        if let Some(part) = &self.filename {
            let pattern = format!("%{}%", escaped(&part.to_ascii_lowercase()));
            add("lower(a.filename) LIKE {} ESCAPE '!'", pattern.into());
        }
        if let Some(sha256) = &self.sha256 {
            add("f.workspace_id = ?1 AND f.sha256 = {}", sha256.into());
        }
        match self.is_used {
            Some(true) => write!(sql, " AND ({IS_USED})"),
            Some(false) => write!(sql, " AND NOT ({IS_USED})"),
            None => Ok(()),
        }
        .expect("a String takes every text");
        sql
    }
}

/// Escapes the wildcards of `LIKE` by `!`.
fn escaped(text: &str) -> String {
    text.replace('!', "!!").replace('%', "!%").replace('_', "!_")
}

/// The condition that a piece refers to the asset `a`.
const IS_USED: &str = "
    EXISTS (SELECT 1 FROM content_piece_assets r
        WHERE r.workspace_id = ?1 AND r.asset_key = a.key)
    OR EXISTS (SELECT 1 FROM published_piece_assets r
        WHERE r.workspace_id = ?1 AND r.asset_key = a.key)
    OR EXISTS (SELECT 1 FROM trashed_piece_assets r
        WHERE r.workspace_id = ?1 AND r.asset_key = a.key)";

/// Lists the visible assets by creation.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    visible: VisibleAssets<'_>,
    filter: &AssetFilter,
    page: &IdPage,
) -> Result<Vec<Asset>> {
    let mut params = page.params(workspace).to_vec();
    let visible = visible.condition(&mut params);
    let filtered = filter.condition(&mut params);
    let (after, order) = if filter.is_descending {
        ("(?2 = '' OR a.id < ?2)", "a.id DESC")
    } else {
        ("a.id > ?2", "a.id")
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE a.workspace_id = ?1 AND {after}{visible}{filtered}
         ORDER BY {order} LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Finds the file with this SHA-256, and locks it until the transaction ends.
pub async fn find_file_for_update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    sha256: &[u8; 32],
) -> Result<Option<AssetFile>> {
    let sql = format!(
        "SELECT {FILE_COLUMNS} FROM asset_files f WHERE f.workspace_id = ?1 AND f.sha256 = ?2{}",
        tx.for_update()
    );
    tx.find(&sql, params![workspace, sha256], |row| read_file(row, 0)).await
}

/// Inserts the leftover of an upload, before its file is stored.
pub async fn insert_leftover(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    file: AssetFileId,
    remove_at: Timestamp,
) -> Result<()> {
    let sql = "INSERT INTO asset_leftovers (workspace_id, file_id, remove_at_ms, is_claimed)
        VALUES (?1, ?2, ?3, FALSE)";
    tx.change(sql, params![workspace, file, remove_at], Affects::Nothing).await
}

/// A file that may have no row.
pub type Leftover = (WorkspaceId, AssetFileId);

/// Returns leftovers that are to be removed at `now` or earlier, by time.
pub async fn due_leftovers(tx: &Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<Leftover>> {
    let sql = "SELECT workspace_id, file_id FROM asset_leftovers WHERE remove_at_ms <= ?1
        ORDER BY remove_at_ms, workspace_id, file_id LIMIT ?2";
    tx.query(sql, params![now, limit], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Claims a leftover, so that its file gets no row any more. Returns false if it has one now.
pub async fn claim_leftover(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    file: AssetFileId,
) -> Result<bool> {
    let sql = "UPDATE asset_leftovers SET is_claimed = TRUE
        WHERE workspace_id = ?1 AND file_id = ?2";
    Ok(tx.execute(sql, params![workspace, file], Affects::Nothing).await? > 0)
}

/// Deletes a leftover after its file was removed from the store.
pub async fn delete_leftover(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    file: AssetFileId,
) -> Result<()> {
    let sql = "DELETE FROM asset_leftovers WHERE workspace_id = ?1 AND file_id = ?2";
    tx.change(sql, params![workspace, file], Affects::Nothing).await
}

/// The result of the insertion of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileInsertion {
    /// The file has its row.
    Inserted,
    /// The workspace has an equal file.
    HasEqual,
    /// The file is being removed from the store, as its upload took too long.
    IsRemoved,
}

/// Inserts an uploaded file, which is no leftover from then on.
pub async fn insert_file(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    file: &AssetFile,
) -> Result<FileInsertion> {
    let sql = "INSERT INTO asset_files
            (workspace_id, id, sha256, size, media_type, width, height, placeholder)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (workspace_id, sha256) DO NOTHING";
    let params = params! {
        workspace, file.id, &file.sha256, file.size, &file.media_type,
        file.dimensions.map(|(width, _)| width), file.dimensions.map(|(_, height)| height),
        file.placeholder.as_ref()
    };
    if tx.execute(sql, params, Affects::Content(workspace)).await? == 0 {
        return Ok(FileInsertion::HasEqual);
    }
    add_stored_size(tx, workspace, file.size).await?;
    let sql = "DELETE FROM asset_leftovers
        WHERE workspace_id = ?1 AND file_id = ?2 AND NOT is_claimed";
    let ended = tx.execute(sql, params![workspace, file.id], Affects::Nothing).await? > 0;
    Ok(if ended { FileInsertion::Inserted } else { FileInsertion::IsRemoved })
}

async fn add_stored_size(tx: &WriteTx<'_>, workspace: WorkspaceId, bytes: i64) -> Result<()> {
    let sql = "UPDATE workspace_sequences SET asset_bytes = asset_bytes + ?2
        WHERE workspace_id = ?1";
    tx.change(sql, params![workspace, bytes], Affects::Nothing).await
}

/// Inserts an asset, whose file exists.
pub async fn insert(tx: &WriteTx<'_>, workspace: WorkspaceId, asset: &Asset) -> Result<()> {
    let sql = "INSERT INTO assets (workspace_id, id, key, filename, alt, content_group_id, version,
            created_at_ms, file_id)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let params = params! {
        workspace, asset.id, asset.key, &asset.filename, &asset.alt, asset.content_group_id,
        asset.version, asset.created_at, asset.file.id
    };
    tx.change(sql, params, Affects::Content(workspace)).await
}

/// Updates the name, the alternative text and the group of an asset.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, asset: &Asset) -> Result<()> {
    let sql = "UPDATE assets SET filename = ?3, alt = ?4, content_group_id = ?5, version = ?6
        WHERE workspace_id = ?1 AND id = ?2";
    let params = params! {
        workspace, asset.id, &asset.filename, &asset.alt, asset.content_group_id, asset.version
    };
    tx.change(sql, params, Affects::Content(workspace)).await
}

/// Deletes an asset. Returns true if no other asset has its file, which is a leftover then. The
/// caller removes the file from the store after the commit.
pub async fn delete(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    asset: &Asset,
    now: Timestamp,
) -> Result<bool> {
    // The lock keeps uploads of an equal file from using this one.
    find_file_for_update(tx, workspace, &asset.file.sha256).await?;
    let affects = Affects::Content(workspace);
    let sql = "DELETE FROM assets WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, asset.id], affects).await?;
    let sql = "DELETE FROM asset_files WHERE workspace_id = ?1 AND id = ?2
        AND NOT EXISTS (SELECT 1 FROM assets a WHERE a.workspace_id = ?1 AND a.file_id = ?2)";
    let was_last = tx.execute(sql, params![workspace, asset.file.id], affects).await? > 0;
    if was_last {
        add_stored_size(tx, workspace, -asset.file.size).await?;
        let sql = "INSERT INTO asset_leftovers (workspace_id, file_id, remove_at_ms, is_claimed)
            VALUES (?1, ?2, ?3, TRUE)";
        tx.change(sql, params![workspace, asset.file.id, now], Affects::Nothing).await?;
    }
    Ok(was_last)
}

/// Returns the size of all files of a workspace in bytes.
pub async fn stored_size(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<i64> {
    let sql = "SELECT asset_bytes FROM workspace_sequences WHERE workspace_id = ?1";
    Ok(tx.find(sql, params![workspace], |row| row.get(0)).await?.unwrap_or_default())
}

/// Lists the files of all workspaces by workspace and id, after a position.
pub async fn list_files(
    tx: &Tx<'_>,
    after: Option<(WorkspaceId, AssetFileId)>,
    limit: i64,
) -> Result<Vec<(WorkspaceId, AssetFile)>> {
    let (workspace, id) = after
        .map_or_else(Default::default, |(workspace, id)| (workspace.to_string(), id.to_string()));
    let sql = format!(
        "SELECT {FILE_COLUMNS}, f.workspace_id FROM asset_files f
         WHERE (f.workspace_id, f.id) > (?1, ?2) ORDER BY f.workspace_id, f.id LIMIT ?3"
    );
    let read = |row: &Row<'_>| Ok((row.get(7)?, read_file(row, 0)?));
    tx.query(&sql, params![workspace, id, limit], read).await
}

/// Returns those of `ids` that have a row.
pub async fn existing_files(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[AssetFileId],
) -> Result<Vec<AssetFileId>> {
    existing(tx, "SELECT id FROM asset_files", "id", workspace, ids).await
}

/// Returns those of `ids` that are leftovers.
pub async fn existing_leftovers(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[AssetFileId],
) -> Result<Vec<AssetFileId>> {
    existing(tx, "SELECT file_id FROM asset_leftovers", "file_id", workspace, ids).await
}

async fn existing(
    tx: &Tx<'_>,
    select: &str,
    column: &str,
    workspace: WorkspaceId,
    ids: &[AssetFileId],
) -> Result<Vec<AssetFileId>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let listed = in_list(column, ids.iter().copied(), &mut params);
    let sql = format!("{select} WHERE workspace_id = ?1{listed}");
    tx.query(&sql, &params, |row| row.get(0)).await
}
