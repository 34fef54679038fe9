//! Whole SQLite files, which are staged under another name and published when they are complete.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::connection;
use super::files::{
    INDEX, LOG, StagedLock, create_directory_of, resolved_place, sync_directory_of, with_end,
};
use crate::engine::error::{Cause, Error, Result};
use crate::engine::progress::Progress;
use crate::engine::sqlite::seal;

/// The number of pages that are copied between two progress reports.
const PAGES_PER_STEP: i32 = 512;

/// A staged file, beside the path that it will have. Unless it is published, it is deleted when
/// dropped.
#[derive(Debug)]
pub struct StagedFile {
    path: PathBuf,
    place: PathBuf,
    lock: StagedLock,
    is_published: bool,
}

impl StagedFile {
    /// Creates a staged file for `place`, overwriting an abandoned one. No other process can do so
    /// until this is dropped.
    pub fn create(place: &Path) -> Result<Self> {
        // A link is followed: the staged file is beside the database itself.
        let place = resolved_place(place)?;
        let path = with_end(&place, ".unfinished");
        let lock = StagedLock::take(&path, &place)?;
        Ok(Self { path, place, lock, is_published: false })
    }

    /// Returns the path of the file until it is published.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a staged file for `place`, and opens it as a database.
    pub(crate) fn open(place: &Path) -> Result<(Self, Connection)> {
        let staged = Self::create(place)?;
        let connection = Connection::open(&staged.path)?;
        connection.execute_batch(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF;
             PRAGMA cache_size=-16384;",
        )?;
        Ok((staged, connection))
    }

    /// Appends the checksum of the database, which is closed.
    pub(crate) fn seal(&self) -> Result<()> {
        seal::seal(&self.path).map_err(unavailable)
    }

    /// Publishes the file at its path, synced.
    pub fn publish(&mut self) -> Result<()> {
        // A log and an index of an empty database at this path don't belong to the new file.
        for end in [LOG, INDEX] {
            match std::fs::remove_file(with_end(&self.place, end)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unavailable(error));
                }
                _ => {}
            }
        }
        self.lock.sync()?;
        std::fs::rename(&self.path, &self.place).map_err(unavailable)?;
        self.is_published = true;
        sync_directory_of(&self.place)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Copies a SQLite file in its current state, also while it is in use, and appends a checksum. A
/// file at `to` is replaced once the copy is complete.
pub(crate) fn back_up(from: &Path, to: &Path, progress: impl FnMut(Progress)) -> Result<()> {
    let mut staged = checked_copy(from, to, progress)?;
    staged.seal()?;
    staged.publish()
}

/// Copies a backup to the place of a database. A file at `to` is replaced once the copy is
/// complete.
pub(crate) fn restore(from: &Path, to: &Path, progress: impl FnMut(Progress)) -> Result<()> {
    checked_copy(from, to, progress)?.publish()
}

fn checked_copy(from: &Path, to: &Path, progress: impl FnMut(Progress)) -> Result<StagedFile> {
    let staged = copy(&connection::open_reader(from)?, to, progress)?;
    check(&staged.path)?;
    Ok(staged)
}

/// Copies a database whose files were unlinked or replaced, through an open connection, the only
/// access left. Returns true if the copy is intact. A damaged one is kept too, as there is no
/// other.
pub(super) fn rescue(source: &Connection, to: &Path) -> Result<bool> {
    create_directory_of(to)?;
    let copied = copy(source, to, |_| {});
    // Ends the connection's snapshot, so that a later attempt has a new one.
    if !source.is_autocommit() {
        source.execute_batch("ROLLBACK")?;
    }
    copied?.publish()?;
    Ok(check(to).is_ok())
}

/// Copies the database of `source` into a staged file for `to`.
fn copy(source: &Connection, to: &Path, mut progress: impl FnMut(Progress)) -> Result<StagedFile> {
    // The transaction fixes the snapshot; otherwise each concurrent write would restart the copy.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    let (unseen, mut target) = StagedFile::open(to)?;
    let backup = Backup::new(source, &mut target)?;
    loop {
        match backup.step(PAGES_PER_STEP)? {
            StepResult::Done => break,
            StepResult::More => {}
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
        let seen = backup.progress();
        let count = |pages| u64::try_from(pages).unwrap_or(0);
        let (all, left) = (count(seen.pagecount), count(seen.remaining));
        progress(Progress { done: all.saturating_sub(left), all });
    }
    drop(backup);
    // Without WAL mode, the copy needs no files beside it.
    let mode: String = target.query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0))?;
    if mode != "delete" {
        return Err(Error::corrupt("the copy could not leave WAL mode"));
    }
    drop(target);
    Ok(unseen)
}

/// Rejects a file that isn't an intact SQLite database.
pub(crate) fn check(path: &Path) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        let detail = found.lines().last().unwrap_or_default();
        return Err(Error::corrupt(format!("the file is damaged: {detail}")));
    }
    if connection.prepare("PRAGMA foreign_key_check")?.exists([])? {
        return Err(Error::corrupt("rows refer to others that do not exist"));
    }
    Ok(())
}

fn unavailable(error: io::Error) -> Error {
    Error::Unavailable(Cause::new(error))
}
