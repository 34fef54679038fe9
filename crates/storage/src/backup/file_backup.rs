//! Backup files: a whole store as one SQLite database, whichever engine it comes from.

use std::path::Path;

use galley_domain::{AssetFileId, WorkspaceId};
use rusqlite::Connection;

use super::copy::{self, TableSummary};
use super::snapshot::Snapshot;
use super::staged_store::{StagedStore, reject_rows};
use super::tables;
use crate::engine::{
    Cause, DatabaseUrl, Error, Options, ProcessRole, Progress, Result,
    database::Database,
    migrate,
    sqlite::{self, ServerLock},
};

/// The contents of a backup.
#[derive(Debug, Clone)]
pub struct FileSummary {
    /// The version of its last migration.
    pub schema: i64,
    /// True if this program has newer migrations, which it applies when the file is restored.
    pub is_older: bool,
    /// True if it was compared with its checksum. Copies by other programs have none.
    pub has_checksum: bool,
    /// Its tables.
    pub tables: Vec<TableSummary>,
}

/// Backs up a store, which a server may be using. The backup has every write that was confirmed
/// before the call.
pub async fn back_up(
    database: &Database,
    options: &Options,
    file: &Path,
    progress: impl FnMut(Progress) + Send + 'static,
) -> Result<()> {
    reject_existing_file(file)?;
    let Some(path) = database.path() else {
        let to = StagedStore::backup(file, options)?;
        copy::copy(&database.snapshot().await?, &to, progress).await?;
        return to.finish().await;
    };
    let (path, file) = (path.to_owned(), file.to_owned());
    on_thread(move || sqlite::back_up(&path, &file, progress)).await?;
    database.check_files()
}

/// Checks a backup's integrity, and summarizes its contents.
pub async fn verify(
    file: &Path,
    program_version: &str,
    progress: impl FnMut(Progress) + Send,
) -> Result<FileSummary> {
    let (schema, is_older) = inspect_schema(file, program_version)?;
    let path = file.to_owned();
    let checked = on_thread(move || {
        let has_checksum = sqlite::check_seal(&path)?;
        sqlite::check(&path)?;
        check_rows(&path)?;
        Ok((has_checksum, tables::of(&sqlite::open_reader(&path)?)?))
    });
    let (has_checksum, tables) = checked.await?;
    let snapshot = Snapshot::of_file(file)?;
    let tables = copy::summarize(&snapshot, &tables, progress).await?;
    Ok(FileSummary { schema, is_older, has_checksum, tables })
}

/// Restores a backup into the store that the options name, which must be empty.
pub async fn restore(
    file: &Path,
    options: &Options,
    progress: impl FnMut(Progress) + Send + 'static,
) -> Result<()> {
    let path = file.to_owned();
    // Verifies the whole backup before anything is created.
    let is_older = verify(file, options.program_version, |_| {}).await?.is_older;
    match &options.url {
        DatabaseUrl::Sqlite(to) => {
            let lock = ServerLock::take(to)?;
            reject_rows(to)?;
            let to = to.clone();
            on_thread(move || sqlite::restore(&path, &to, progress)).await?;
            drop(lock);
            // Opening the database applies the newer migrations.
            let command = Options { role: ProcessRole::Command, ..options.clone() };
            Database::open(command).await?.close().await;
            Ok(())
        }
        DatabaseUrl::Postgres(_) if is_older => Err(Error::Settings(
            "the backup has an older schema: restore it into a SQLite store, which migrates it, \
             and copy that store"
                .to_owned(),
        )),
        DatabaseUrl::Postgres(_) => {
            let to = StagedStore::open(options).await?;
            copy::copy(&Snapshot::of_file(file)?, &to, progress).await?;
            to.finish().await
        }
    }
}

/// Returns the version of a file's last migration, and true if newer ones exist. Rejects a schema
/// that isn't galley's.
fn inspect_schema(file: &Path, program_version: &str) -> Result<(i64, bool)> {
    let connection = sqlite::open_reader(file)?;
    let (schema, is_older) = migrate::state(&connection, program_version)?;
    migrate::reject_foreign_schema(&connection, schema)?;
    Ok((schema, is_older))
}

/// Removes the assets of a file from a backup, as the file was deleted before it could be copied.
pub fn remove_asset_file(backup: &Path, workspace: WorkspaceId, file: AssetFileId) -> Result<()> {
    let (workspace, file) = (workspace.to_string(), file.to_string());
    let mut connection = Connection::open(backup)?;
    let transaction = connection.transaction()?;
    let key = rusqlite::params![workspace, file];
    transaction.execute("DELETE FROM assets WHERE workspace_id = ?1 AND file_id = ?2", key)?;
    transaction.execute(
        "UPDATE workspace_sequences SET asset_bytes = asset_bytes - COALESCE(
            (SELECT size FROM asset_files WHERE workspace_id = ?1 AND id = ?2), 0)
         WHERE workspace_id = ?1",
        key,
    )?;
    transaction.execute("DELETE FROM asset_files WHERE workspace_id = ?1 AND id = ?2", key)?;
    transaction.commit()?;
    drop(connection);
    sqlite::seal(backup).map_err(|error| Error::Unavailable(Cause::new(error)))
}

/// Rejects a path at which a file exists.
pub fn reject_existing_file(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.is_dir()
    {
        return Err(Error::Settings(format!("the folder {} does not exist", folder.display())));
    }
    // This also detects a dangling link.
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(Error::Settings("the file exists already: name another one".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::Unavailable(Cause::new(error))),
    }
}

/// Rejects rows that lack the rows required with them. Foreign keys don't cover these, as nothing
/// refers to them.
fn check_rows(path: &Path) -> Result<()> {
    let connection = sqlite::open_reader(path)?;
    for (what, sql) in [
        (
            "content pieces have no content",
            "SELECT 1 FROM content_pieces p WHERE NOT EXISTS (SELECT 1 FROM content_piece_contents c
             WHERE c.workspace_id = p.workspace_id AND c.content_piece_id = p.id)",
        ),
        (
            "content groups have no path",
            "SELECT 1 FROM content_groups g WHERE NOT EXISTS (SELECT 1 FROM content_group_paths p
             WHERE p.workspace_id = g.workspace_id AND p.group_id = g.id AND p.ancestor_id = g.id)",
        ),
    ] {
        if connection.prepare(sql)?.exists([])? {
            return Err(Error::corrupt(what));
        }
    }
    Ok(())
}

async fn on_thread<T: Send + 'static>(
    run: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(run).await.unwrap_or(Err(Error::Panicked))
}
