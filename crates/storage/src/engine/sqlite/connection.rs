//! Connections to the SQLite file and their settings.

use std::path::Path;
use std::time::{Duration, Instant};

use super::limits::LOG_LIMIT;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::engine::error::{Error, Result};

/// The timeout of waiting for another process that writes the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval between attempts to switch to a write-ahead log.
const BUSY_INTERVAL: Duration = Duration::from_millis(5);

/// The limit of prepared statements that a connection caches.
const STATEMENT_CACHE_SIZE: usize = 256;

/// Opens a connection that writes to a file that [`create_private`](super::files::create_private)
/// created.
pub(super) fn open_writer(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let mode = enable_write_ahead_log(&connection)?;
    if mode != "wal" {
        return Err(Error::Settings(format!(
            "SQLite can't create a write-ahead log beside {}: use a local disk",
            path.display()
        )));
    }
    // Savepoints keep their undo data in memory. The cache holds the pages that a group of writes
    // touches; its size is in KiB.
    connection.execute_batch(&format!(
        "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=0;
         PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16384; PRAGMA journal_size_limit={LOG_LIMIT};"
    ))?;
    keep_statements(&connection)?;
    Ok(connection)
}

/// Switches the file to a write-ahead log, and returns its journal mode.
///
/// If several connections switch a new file at the same time, SQLite fails without waiting, as they
/// would wait for one another. So the switch is retried.
fn enable_write_ahead_log(connection: &Connection) -> Result<String> {
    let started = Instant::now();
    loop {
        match connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(BUSY_INTERVAL);
            }
            mode => return Ok(mode?),
        }
    }
}

/// Opens a read-only connection.
pub(crate) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The file may be untrusted.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(READER_CACHE)?;
    keep_statements(&connection)?;
    Ok(connection)
}

/// The size of a reader's page cache in KiB. With SQLite's default of 2 MiB, a fifth of a search
/// was system calls that read pages.
const READER_CACHE: &str = "PRAGMA cache_size=-16384";

/// Disables the checkpoint on closing the connection: the files may be another process's by now.
pub(super) fn disable_checkpoint_on_close(connection: &Connection) {
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    if let Err(error) = set {
        tracing::error!(%error, "a checkpoint may be made when the connection is closed");
    }
}

/// Makes SQLite plan each statement once. Otherwise it plans many of them again for each set of
/// parameters, which takes longer than to run them. The parameters would not improve the plan, as
/// the planner's statistics are fixed.
fn keep_statements(connection: &Connection) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Warns if SQLite was built with memory statistics, which make readers wait for one another.
pub(super) fn warn_of_memory_statistics(connection: &Connection) {
    let counts = connection.query_row(
        "SELECT NOT sqlite_compileoption_used('DEFAULT_MEMSTATUS=0')",
        [],
        |row| row.get::<_, bool>(0),
    );
    if counts.unwrap_or(true) {
        tracing::warn!(
            "SQLite was built with memory statistics, which slow concurrent reads: build in the \
             repository, or with LIBSQLITE3_FLAGS=-DSQLITE_DEFAULT_MEMSTATUS=0"
        );
    }
}
