//! SQLite files as a whole: written where nobody looks, and shown when they are done.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::connection;
use crate::error::{Cause, Error, Result};
use crate::whole::Progress;

/// How many pages are copied between two looks at how far it is.
const PAGES: i32 = 512;

/// A file while it is written, beside its place. It goes away unless it is shown.
#[derive(Debug)]
pub(crate) struct Unseen {
    path: PathBuf,
    place: PathBuf,
    /// Held by one process at a time. A file without it was left behind by one that died.
    _lock: File,
    shown: bool,
}

impl Unseen {
    /// Opens a new file that is of no use before it is shown at its place. What somebody left there is overwritten.
    pub(crate) fn open(place: &Path) -> Result<(Self, Connection)> {
        let path = with_end(place, ".unfinished");
        let lock = open_own(&path)?;
        match lock.try_lock() {
            // Somebody may have shown it, and made another one, since it was opened.
            Ok(()) if is_at(&lock, &path) => lock.set_len(0).map_err(unavailable)?,
            Ok(()) => {
                return Err(Error::Settings(format!("{} was written just now", place.display())));
            }
            Err(TryLockError::WouldBlock) => {
                let what = format!("{} is being written by another process", place.display());
                return Err(Error::Settings(what));
            }
            Err(TryLockError::Error(error)) => return Err(unavailable(error)),
        }
        let unseen = Self { path, place: place.to_owned(), _lock: lock, shown: false };
        let connection = Connection::open(&unseen.path)?;
        connection.execute_batch(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF;
             PRAGMA cache_size=-16384;",
        )?;
        Ok((unseen, connection))
    }

    /// Puts it at its place, synced.
    pub(crate) fn show(&mut self) -> Result<()> {
        // What an empty one at this place has left beside it is none of this one's.
        for end in ["-wal", "-shm"] {
            match std::fs::remove_file(with_end(&self.place, end)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unavailable(error));
                }
                _ => {}
            }
        }
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(unavailable)?;
        std::fs::rename(&self.path, &self.place).map_err(unavailable)?;
        self.shown = true;
        let directory = self.place.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        File::open(directory).and_then(|file| file.sync_all()).map_err(unavailable)
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        if !self.shown {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A new file for its owner alone, or one of this name that is there; but nothing that only looks like one, such as a
/// link to another file.
fn open_own(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened.map_err(unavailable),
    }
    if !std::fs::symlink_metadata(path).map_err(unavailable)?.is_file() {
        let what = format!("{} is no file: remove it", path.display());
        return Err(Error::Settings(what));
    }
    let file = File::options().write(true).open(path).map_err(unavailable)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .map_err(unavailable)?;
    Ok(file)
}

/// Whether it is this file that stands there.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let there = std::fs::symlink_metadata(path);
        let same = |there: std::fs::Metadata| {
            file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
        };
        there.is_ok_and(same)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Copies a SQLite file that others may be using, as it is at this moment. What is at the other path is
/// replaced when that is done.
pub(crate) fn back_up(from: &Path, to: &Path, mut progress: impl FnMut(Progress)) -> Result<()> {
    let source = connection::open_reader(from)?;
    // One moment for all of it: within a transaction nobody's writes make it begin again.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    let (mut unseen, mut target) = Unseen::open(to)?;
    let backup = Backup::new(&source, &mut target)?;
    loop {
        match backup.step(PAGES)? {
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
    // A file by itself, without others beside it.
    let mode: String = target.query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0))?;
    if mode != "delete" {
        return Err(Error::corrupt("the copy stays in WAL mode"));
    }
    drop(target);
    check(&unseen.path)?;
    unseen.show()
}

/// Refuses a file that isn't a whole SQLite database.
pub(crate) fn check(path: &Path) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        let detail = found.lines().last().unwrap_or_default();
        return Err(Error::corrupt(format!("the file is damaged: {detail}")));
    }
    if connection.prepare("PRAGMA foreign_key_check")?.exists([])? {
        return Err(Error::corrupt("rows refer to others that are not there"));
    }
    Ok(())
}

fn unavailable(error: io::Error) -> Error {
    Error::Unavailable(Cause::new(error))
}
