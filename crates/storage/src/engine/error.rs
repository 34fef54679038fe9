//! Errors of the store, by situation.

use std::sync::Arc;

use galley_domain::{OrderKey, WorkspaceId};
use galley_runtime::Overloaded;

use crate::engine::unique_key::UniqueKey;

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the store. All changes of a failed write are rolled back.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The engine can't be reached, or the connection broke.
    #[error("the database is not available: {0}")]
    Unavailable(Cause),
    /// More work is queued than can be done in time.
    #[error("the database is overloaded")]
    Overloaded,
    /// Too many pieces were inserted at this place of a workspace's list. Its order keys have to be
    /// spread out first.
    #[error("too many pieces were inserted at one position of the list")]
    KeySpaceExhausted(WorkspaceId, OrderKey),
    /// The disk is full.
    #[error("the disk that holds the database is full")]
    StorageFull,
    /// The operation exceeded its time limit.
    #[error("the database operation timed out")]
    TimedOut,
    /// A value that must be unique exists already.
    #[error("{0} is taken")]
    Taken(UniqueKey),
    /// A conflict with a concurrent transaction; a retry of the closure may succeed.
    #[error("a conflict with a concurrent change")]
    Conflict,
    /// The closure panicked. Only its own changes were rolled back.
    #[error("the operation panicked")]
    Panicked,
    /// The closure awaited something that is not the transaction.
    #[error("the transaction {0:?} awaited something other than the database")]
    AwaitedElsewhere(&'static str),
    /// The database has data that this program didn't write.
    #[error("unexpected data in the database: {0}")]
    Corrupt(Cause),
    /// This program can't use the schema.
    #[error("{0}")]
    Schema(String),
    /// The database's settings would break a guarantee.
    #[error("{0}")]
    Settings(String),
    /// Another server has the same SQLite file open.
    #[error("another galley serves {0} already")]
    Locked(String),
    /// A file of the open SQLite database was unlinked or replaced.
    #[error(
        "{0} was deleted or replaced while the server had it open; the operator must restart the \
         server"
    )]
    Detached(String),
    /// Any other error that the engine reports.
    #[error("the database reported an error: {0}")]
    Engine(Cause),
}

impl From<Overloaded> for Error {
    fn from(_: Overloaded) -> Self {
        Self::Overloaded
    }
}

/// A shared cause: one failed commit fails a whole group of writes.
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl Cause {
    /// Wraps `cause`.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Arc::from(cause.into()))
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(out, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

/// The error of a transaction's closure: the store's, or one of the caller's own.
///
/// Either rolls back the closure's changes. The store's own error decides on a retry.
pub trait Failure: From<Error> + Send + 'static {
    /// Returns the store's error, if it is one.
    fn storage_error(&self) -> Option<&Error>;
}

impl Failure for Error {
    fn storage_error(&self) -> Option<&Error> {
        Some(self)
    }
}

impl Error {
    /// Creates the error for data that this program didn't write.
    pub fn corrupt(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Corrupt(Cause::new(cause))
    }

    /// Returns true if the engine did not respond. The connection can't be used any more then.
    pub(crate) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Returns true if a retry of the closure may succeed, as after a conflict of two writers.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict | Self::Taken(UniqueKey::ContentPieceOrder))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let rusqlite::Error::SqliteFailure(failure, message) = &error else {
            return Self::Engine(Cause::new(error));
        };
        // The index of the log can't grow. Only a full disk causes that.
        if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE {
            return Self::StorageFull;
        }
        match failure.code {
            Code::ConstraintViolation => match message.as_deref().and_then(UniqueKey::of_sqlite) {
                Some(key) => Self::Taken(key),
                None => Self::Engine(Cause::new(error)),
            },
            Code::DiskFull => Self::StorageFull,
            Code::OperationInterrupted => Self::TimedOut,
            Code::DatabaseBusy | Code::DatabaseLocked => Self::Overloaded,
            Code::SystemIoFailure | Code::CannotOpen | Code::ReadOnly | Code::OutOfMemory => {
                Self::Unavailable(Cause::new(error))
            }
            Code::DatabaseCorrupt | Code::NotADatabase => Self::Corrupt(Cause::new(error)),
            _ => Self::Engine(Cause::new(error)),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        use tokio_postgres::error::SqlState as State;
        let Some(reported) = error.as_db_error() else {
            return Self::Unavailable(Cause::new(error));
        };
        let state = reported.code().clone();
        if state == State::UNIQUE_VIOLATION {
            let key = UniqueKey::of_report(reported.constraint(), reported.message());
            return match key {
                Some(key) => Self::Taken(key),
                None => Self::Engine(Cause::new(error)),
            };
        }
        // A foreign key fails only if the row was deleted after the transaction looked it up.
        let conflicts = [
            State::FOREIGN_KEY_VIOLATION,
            State::T_R_SERIALIZATION_FAILURE,
            State::T_R_DEADLOCK_DETECTED,
            // Statements are pipelined: an earlier one failed, possibly with a conflict.
            State::IN_FAILED_SQL_TRANSACTION,
        ];
        if conflicts.contains(&state) {
            return Self::Conflict;
        }
        if state == State::LOCK_NOT_AVAILABLE {
            return Self::Overloaded;
        }
        // The server has become a standby, or the transaction was idle too long because this
        // program or the server stalled.
        let transient =
            [State::READ_ONLY_SQL_TRANSACTION, State::IDLE_IN_TRANSACTION_SESSION_TIMEOUT];
        if transient.contains(&state) {
            return Self::Unavailable(Cause::new(error));
        }
        if state == State::QUERY_CANCELED {
            return Self::TimedOut;
        }
        match &state.code()[..2] {
            "53" if state == State::DISK_FULL => Self::StorageFull,
            "53" => Self::Overloaded,
            // Includes rejected logins, as during a failover.
            "08" | "28" | "3D" | "57" | "58" => Self::Unavailable(Cause::new(error)),
            _ => Self::Engine(Cause::new(error)),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        use deadpool_postgres::{PoolError, TimeoutType};
        match error {
            PoolError::Timeout(TimeoutType::Wait) => Self::Overloaded,
            PoolError::Backend(error) => error.into(),
            other => Self::Unavailable(Cause::new(other)),
        }
    }
}
