//! SQLite files as a whole: written where nobody looks, and shown when they are done.

use std::fs::File;
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

/// Where a file is while it is written.
pub(crate) fn unseen(path: &Path) -> PathBuf {
    with_end(path, ".unfinished")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Opens a new file that is of no use before it is shown. What somebody left there is removed.
pub(crate) fn open_unseen(path: &Path) -> Result<Connection> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unavailable(error)),
        _ => {}
    }
    connection::make_private(path)?;
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF;
         PRAGMA cache_size=-16384;",
    )?;
    Ok(connection)
}

/// Puts a file that is done at its place, synced.
pub(crate) fn show(unseen: &Path, path: &Path) -> Result<()> {
    // What an empty one at this place has left beside it is none of this one's.
    for end in ["-wal", "-shm"] {
        match std::fs::remove_file(with_end(path, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unavailable(error));
            }
            _ => {}
        }
    }
    File::open(unseen).and_then(|file| file.sync_all()).map_err(unavailable)?;
    std::fs::rename(unseen, path).map_err(unavailable)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    File::open(directory).and_then(|file| file.sync_all()).map_err(unavailable)
}

/// Copies a SQLite file that others may be using, as it is at this moment. What is at the other path is
/// replaced when that is done.
pub(crate) fn back_up(from: &Path, to: &Path, mut progress: impl FnMut(Progress)) -> Result<()> {
    let unseen = unseen(to);
    let done = copy_pages(from, &unseen, &mut progress).and_then(|()| check(&unseen));
    if let Err(error) = done {
        let _ = std::fs::remove_file(&unseen);
        return Err(error);
    }
    show(&unseen, to)
}

fn copy_pages(from: &Path, to: &Path, progress: &mut impl FnMut(Progress)) -> Result<()> {
    let source = connection::open_reader(from)?;
    // One moment for all of it: within a transaction nobody's writes make it begin again.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    let mut target = open_unseen(to)?;
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
    if mode == "delete" { Ok(()) } else { Err(Error::corrupt("the copy stays in WAL mode")) }
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
