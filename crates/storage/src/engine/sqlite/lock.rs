//! The lock that admits one server per SQLite file.
//!
//! It is the operating system's lock on a file beside the database, so it ends with the process,
//! even on a crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::files::resolved_place;
use crate::engine::error::{Cause, Error, Result};

/// The server's lock, held while this process serves the file.
#[derive(Debug)]
pub(crate) struct ServerLock {
    _file: File,
}

impl ServerLock {
    /// Acquires the lock; fails with [`Error::Locked`] if another process holds it.
    pub(crate) fn take(database: &Path) -> Result<Self> {
        let path = resolved_place(database)?.with_extension("lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(&path).map_err(|error| Error::Unavailable(Cause::new(error)))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked(database.display().to_string())),
            Err(TryLockError::Error(error)) => Err(Error::Unavailable(Cause::new(error))),
        }
    }
}
