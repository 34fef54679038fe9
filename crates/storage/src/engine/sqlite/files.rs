//! Descriptors that this program itself opens on SQLite's files, and the identity of these files.
//!
//! POSIX releases all locks of a process on a file when the process closes any descriptor of it,
//! SQLite's locks included. A SQLite older than 3.51 that opens the database afterwards detects no
//! other user. On closing it checkpoints and unlinks the log, and the server commits into a deleted
//! file. So only this module opens such files, and it never closes a descriptor of a file that a
//! connection may have open:
//!
//! - [`create_private`] creates the database before its first connection, and opens no file that
//!   exists.
//! - [`open_index`] opens the log's index once for each inode, and keeps it open.
//! - [`StagedLock`] locks a file that only one connection has open, and is closed after that
//!   connection.
//!
//! [`FileWatch`] detects if the files were unlinked or replaced nevertheless.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use galley_domain::Timestamp;
use parking_lot::Mutex;

use crate::engine::error::{Cause, Error, Result};

/// The mode of files that only their owner can read and write.
const PRIVATE: u32 = 0o600;

/// The suffixes of the write-ahead log and of its index.
pub(super) const LOG: &str = "-wal";
pub(super) const INDEX: &str = "-shm";

/// Appends `end` to a path's last part.
pub(super) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn unavailable(error: io::Error) -> Error {
    Error::Unavailable(Cause::new(error))
}

/// Creates the database file for its owner alone, if it doesn't exist. SQLite creates the files
/// beside it with the same mode. Must be called before the process's first connection to the file.
pub(super) fn create_private(path: &Path) -> Result<()> {
    // A second thread must not connect to the file before this descriptor of it is closed.
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock();
    if path.try_exists().map_err(unavailable)? {
        return Ok(());
    }
    let mut options = File::options();
    options.create(true).append(true).mode(PRIVATE);
    options.open(path).map(drop).map_err(unavailable)
}

/// Resolves the links in a path.
pub(super) fn resolved(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(unavailable)
}

/// Resolves the links in the path of a file that may not exist yet. Servers and commands that use
/// different links lock and write the same file.
pub(super) fn resolved_place(path: &Path) -> Result<PathBuf> {
    let mut place = path.to_owned();
    loop {
        match place.canonicalize() {
            Ok(place) => return Ok(place),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unavailable(error)),
        }
        // An endless chain of links is an error other than `NotFound`.
        let Ok(target) = std::fs::read_link(&place) else { break };
        place = directory_of(&place).join(target);
    }
    let directory = directory_of(&place).canonicalize().map_err(unavailable)?;
    Ok(place.file_name().map_or_else(|| directory.clone(), |name| directory.join(name)))
}

/// Opens the index of the log of `database` for reading, once for each inode, and keeps it open
/// until the process ends.
pub(super) fn open_index(database: &Path) -> Result<Arc<File>> {
    static OPEN: Mutex<Option<HashMap<FileId, Vec<Arc<File>>>>> = Mutex::new(None);
    let path = with_end(database, INDEX);
    // The lock prevents two threads from opening the same file, of which one would close it again.
    let mut open = OPEN.lock();
    let open = open.get_or_insert_default();
    let known = FileId::at(&path).map_err(unavailable)?.and_then(|id| open.get(&id)?.first());
    if let Some(file) = known {
        return Ok(Arc::clone(file));
    }
    let file = Arc::new(File::open(&path).map_err(unavailable)?);
    let id = FileId::of(&file.metadata().map_err(unavailable)?);
    // The path may have changed in between: a second descriptor of a known file stays open, too.
    open.entry(id).or_default().push(Arc::clone(&file));
    Ok(file)
}

/// A file by its device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Identifies the file at `path`, without opening it; `None` if there is none.
    fn at(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// The database file, its log and the log's index, as they were when SQLite opened them.
#[derive(Debug)]
pub(crate) struct FileWatch {
    files: Vec<(PathBuf, FileId)>,
    /// The first file that was found unlinked or replaced. The state is final: a file that
    /// reappears may have been changed by other processes.
    detached: OnceLock<PathBuf>,
}

impl FileWatch {
    /// Records the files of a database that is open in WAL mode. `given` may be a link to it, whose
    /// target must not change.
    pub(super) fn of(database: &Path, given: &Path) -> Result<Self> {
        let mut paths =
            vec![database.to_owned(), with_end(database, LOG), with_end(database, INDEX)];
        if given != database {
            paths.push(given.to_owned());
        }
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let id = FileId::at(&path).map_err(unavailable)?;
            let id = id.ok_or_else(|| Error::Detached(path.display().to_string()))?;
            files.push((path, id));
        }
        Ok(Self { files, detached: OnceLock::new() })
    }

    /// Fails with [`Error::Detached`] once a file was unlinked or replaced.
    ///
    /// Takes three `stat` calls, or four with a link, some 2 µs. Other failures of `stat`, as
    /// without permission, prove nothing about the file and are ignored.
    pub(crate) fn check(&self) -> Result<()> {
        if self.detached.get().is_none() {
            let is_changed = |(path, id): &&(PathBuf, FileId)| {
                FileId::at(path).is_ok_and(|found| found != Some(*id))
            };
            let Some((path, _)) = self.files.iter().find(is_changed) else { return Ok(()) };
            if self.detached.set(path.clone()).is_ok() {
                tracing::error!(
                    file = %path.display(),
                    "a database file was deleted or replaced while the server has it open: writes \
                     are rejected until the server is restarted"
                );
            }
        }
        let path = self.detached.get().map(|path| path.display().to_string());
        Err(Error::Detached(path.unwrap_or_default()))
    }
}

/// The lock on a staged file, held by one process at a time. An unlocked staged file was abandoned
/// by a process that died.
#[derive(Debug)]
pub(super) struct StagedLock {
    file: File,
}

impl StagedLock {
    /// Creates the file, or reuses an abandoned one, and empties it. `place` is named in errors.
    pub(super) fn take(path: &Path, place: &Path) -> Result<Self> {
        let file = open_own(path)?;
        match file.try_lock() {
            // Another process may have published it, and staged a new one, since it was opened.
            Ok(()) if FileId::at(path).is_ok_and(|id| id == file_id(&file)) => {
                file.set_len(0).map_err(unavailable)?;
                Ok(Self { file })
            }
            Ok(()) => Err(Error::Settings(format!(
                "{} was just written by another process",
                place.display()
            ))),
            Err(TryLockError::WouldBlock) => {
                let what = format!("{} is being written by another process", place.display());
                Err(Error::Settings(what))
            }
            Err(TryLockError::Error(error)) => Err(unavailable(error)),
        }
    }

    /// Flushes the file to disk. Its connection has been closed.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(unavailable)
    }
}

fn file_id(file: &File) -> Option<FileId> {
    file.metadata().ok().map(|metadata| FileId::of(&metadata))
}

/// Returns the directory of a file.
fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// Flushes a directory's entries to disk.
pub(super) fn sync_directory_of(path: &Path) -> Result<()> {
    let directory = File::open(directory_of(path));
    directory.and_then(|directory| directory.sync_all()).map_err(unavailable)
}

/// Creates the directory of a file for its owner alone, if there is none.
pub(super) fn create_directory_of(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(directory_of(path)).map_err(unavailable)
}

/// The infix of a rescued copy's name, between the database's name and the time.
const RESCUED: &str = ".rescued-";

/// Returns the path for a copy of a database that is rescued at this time.
pub(super) fn rescued_path(database: &Path, now: Timestamp) -> PathBuf {
    let time: String = now.to_string().chars().filter(|one| !"-:.".contains(*one)).collect();
    with_end(database, &format!("{RESCUED}{time}"))
}

/// Warns of rescued copies beside a database, which may hold data that it lacks.
pub(super) fn warn_of_rescued(database: &Path) {
    let Some(name) = database.file_name() else { return };
    let start = format!("{}{RESCUED}", name.to_string_lossy());
    let Ok(entries) = std::fs::read_dir(directory_of(database)) else { return };
    for entry in entries.filter_map(io::Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(&start) {
            tracing::warn!(
                file = %entry.path().display(),
                "found a rescued copy of a database whose files were deleted or replaced: restore \
                 it, or move it away"
            );
        }
    }
}

/// Opens a new file for its owner alone, or the existing one. Rejects anything else, such as a link
/// to another file.
fn open_own(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(PRIVATE);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        opened => return opened.map_err(unavailable),
    }
    // A hard link may be another name of a database.
    let found = std::fs::symlink_metadata(path).map_err(unavailable)?;
    if !found.is_file() || found.nlink() > 1 {
        let what = format!("{} is a link or not a regular file: remove it", path.display());
        return Err(Error::Settings(what));
    }
    let file = File::options().write(true).open(path).map_err(unavailable)?;
    file.set_permissions(PermissionsExt::from_mode(PRIVATE)).map_err(unavailable)?;
    Ok(file)
}
