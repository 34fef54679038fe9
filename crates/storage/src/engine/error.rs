//! What can go wrong in the store, by situation.

use std::sync::Arc;

use galley_domain::{OrderKey, WorkspaceId};
use galley_runtime::Overloaded;

use crate::engine::unique_key::UniqueKey;

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the store did not do what it was asked to. Nothing of a failed write is kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The engine can't be reached, or went away in the middle.
    #[error("the database is not available: {0}")]
    Unavailable(Cause),
    /// More work is waiting than can be done in time.
    #[error("the database has too much to do")]
    Overloaded,
    /// So much was inserted at this place of a workspace's list that its order keys have to be spread out
    /// first.
    #[error("too much was inserted at one place")]
    Crowded(WorkspaceId, OrderKey),
    /// There is no room for what was to be written.
    #[error("the disk that holds the database is full")]
    StorageFull,
    /// The call took longer than it may.
    #[error("the database took too long")]
    TimedOut,
    /// A value that must be unique is there already.
    #[error("{0} is taken")]
    Taken(UniqueKey),
    /// Somebody else's change came in between; the same closure may succeed when run again.
    #[error("a concurrent change came in between")]
    Conflict,
    /// The closure panicked. Only its own changes were undone.
    #[error("the operation panicked")]
    Panicked,
    /// The closure awaited something that is not the transaction.
    #[error("the transaction {0:?} awaited something else than the database")]
    AwaitedElsewhere(&'static str),
    /// The database holds something that this program didn't write.
    #[error("unexpected data in the database: {0}")]
    Corrupt(Cause),
    /// The schema can't be used by this program.
    #[error("{0}")]
    Schema(String),
    /// The database is set up in a way that would break a promise.
    #[error("{0}")]
    Settings(String),
    /// Another server holds the same SQLite file.
    #[error("another galley serves {0} already")]
    Locked(String),
    /// A file of the open SQLite database was unlinked or replaced.
    #[error(
        "{0} was deleted or replaced while the server had it open; the operator has to start the \
         server again"
    )]
    Detached(String),
    /// Anything else that the engine reports.
    #[error("the database reported an error: {0}")]
    Engine(Cause),
}

impl From<Overloaded> for Error {
    fn from(_: Overloaded) -> Self {
        Self::Overloaded
    }
}

/// A shared cause, because one failed commit fails a whole group of writes.
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
/// Either undoes what the closure did. The store's own tells whether running it again may help.
pub trait Failure: From<Error> + Send + 'static {
    /// The store's error, where it is one.
    fn storage_error(&self) -> Option<&Error>;
}

/// Whether something failed because the engine doesn't answer: whoever it was asked by is of no more use.
pub(crate) fn is_unavailable<T, E: Failure>(result: &Result<T, E>) -> bool {
    let error = result.as_ref().err().and_then(Failure::storage_error);
    error.is_some_and(|error| matches!(error, Error::Unavailable(_)))
}

impl Failure for Error {
    fn storage_error(&self) -> Option<&Error> {
        Some(self)
    }
}

impl Error {
    /// What this program didn't write.
    pub fn corrupt(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Corrupt(Cause::new(cause))
    }

    /// Whether the same closure may succeed when run again: two writers met.
    pub(crate) fn is_worth_another_try(&self) -> bool {
        matches!(self, Self::Conflict | Self::Taken(UniqueKey::ContentPieceOrder))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let rusqlite::Error::SqliteFailure(failure, message) = &error else {
            return Self::Engine(Cause::new(error));
        };
        // The index of the log can't grow: there is no other reason for that.
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
            return match reported.constraint().and_then(UniqueKey::of_postgres) {
                Some(key) => Self::Taken(key),
                None => Self::Engine(Cause::new(error)),
            };
        }
        // A foreign key fails only where what was just looked up went away in between.
        let conflicts = [
            State::FOREIGN_KEY_VIOLATION,
            State::T_R_SERIALIZATION_FAILURE,
            State::T_R_DEADLOCK_DETECTED,
            // Statements are sent together: one before this one failed, perhaps for another's sake.
            State::IN_FAILED_SQL_TRANSACTION,
        ];
        if conflicts.contains(&state) {
            return Self::Conflict;
        }
        if state == State::LOCK_NOT_AVAILABLE {
            return Self::Overloaded;
        }
        // It has become a standby of another one, or this program or the server was held up.
        let goes_by =
            [State::READ_ONLY_SQL_TRANSACTION, State::IDLE_IN_TRANSACTION_SESSION_TIMEOUT];
        if goes_by.contains(&state) {
            return Self::Unavailable(Cause::new(error));
        }
        if state == State::QUERY_CANCELED {
            return Self::TimedOut;
        }
        match &state.code()[..2] {
            "53" if state == State::DISK_FULL => Self::StorageFull,
            "53" => Self::Overloaded,
            // Also where it lets nobody in, as during a failover.
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
