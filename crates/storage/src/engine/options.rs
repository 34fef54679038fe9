//! The options for opening a database.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use galley_domain::Timestamp;

use crate::engine::statement_log::StatementLog;

/// The location of a database.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// The SQLite file of this path.
    Sqlite(PathBuf),
    /// A PostgreSQL connection string (`postgres://…`).
    Postgres(String),
}

/// Omits the password.
impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            Self::Postgres(_) => out.write_str("postgres://…"),
        }
    }
}

/// The program's role towards the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// A server: on SQLite, the only one.
    Server,
    /// A command that may run beside a server.
    Command,
}

/// The options for opening a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// The location.
    pub url: DatabaseUrl,
    /// A connection string of standbys for stale reads, with PostgreSQL only.
    pub replica_url: Option<String>,
    /// The program's role.
    pub role: ProcessRole,
    /// The program's version, which the schema's record is compared with.
    pub program_version: &'static str,
    /// The time, for the record of schema changes.
    pub now: Timestamp,
    /// The number of connections to PostgreSQL, or of threads for expensive reads on SQLite.
    pub connections: usize,
    /// The timeout of a queued write, and of its retries after conflicts.
    pub write_timeout: Duration,
    /// Counts each statement, for tests.
    pub statement_log: Option<Arc<StatementLog>>,
}
