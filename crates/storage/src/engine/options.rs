//! The options to open a database with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use galley_domain::Timestamp;

use crate::engine::statement_log::StatementLog;

/// Where a database is.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// The SQLite file of this path.
    Sqlite(PathBuf),
    /// A PostgreSQL connection string (`postgres://…`).
    Postgres(String),
}

/// Without the password.
impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            Self::Postgres(_) => out.write_str("postgres://…"),
        }
    }
}

/// What the program does with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It serves it: alone, on SQLite.
    Server,
    /// It is a command that may work beside a running server.
    Command,
}

/// How to open a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it is.
    pub url: DatabaseUrl,
    /// A connection string of standbys, for reads that may be of a while ago: only with PostgreSQL.
    pub replica_url: Option<String>,
    /// What for.
    pub role: Role,
    /// The version of the program, for the schema's record of who may use it.
    pub program_version: &'static str,
    /// The time, for the record of schema changes.
    pub now: Timestamp,
    /// How many connections there are to PostgreSQL, or how many threads read heavy lists on
    /// SQLite.
    pub connections: usize,
    /// How long a write may wait for its turn, or be tried again when others come in between.
    pub write_wait_max: Duration,
    /// Counts every statement, for tests.
    pub statement_log: Option<Arc<StatementLog>>,
}
