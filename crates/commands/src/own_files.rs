//! The files of the SQLite database that a command uses, and must not open for another purpose.
//!
//! Closing a file drops all locks of the process on it, including SQLite's. A file of another name
//! may be a hard link to one of them. So files are compared by device and inode.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use galley_storage::DatabaseUrl;

/// The files of a database, as they exist before it is opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnFiles(Vec<(u64, u64)>);

impl OwnFiles {
    /// Returns the files of the destination database; none for a database on a server.
    pub(crate) fn of(database: Option<&DatabaseUrl>) -> Self {
        let Some(DatabaseUrl::Sqlite(path)) = database else { return Self::default() };
        let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
        let files = ["", "-wal", "-shm"].iter().filter_map(|end| {
            let mut name = resolved.as_os_str().to_owned();
            name.push(end);
            id(Path::new(&name))
        });
        Self(files.collect())
    }

    /// Returns true if a path leads to one of the files, without opening it.
    pub(crate) fn includes(&self, path: &Path) -> bool {
        id(path).is_some_and(|id| self.0.contains(&id))
    }
}

fn id(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
