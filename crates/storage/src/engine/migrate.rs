//! Schema migrations, applied at start, each once, in order, in one transaction.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use deadpool_postgres::ClientWrapper;
use rusqlite::Connection;
use tokio::time::timeout;

use crate::engine::error::{Error, Result};
use crate::engine::migration_sql::{
    checksum, for_postgres, for_sqlite, oldest_program, statements,
};
use crate::engine::migrations::{
    AppliedMigration, MIGRATIONS, Migration, missing, postgres_record, sqlite_record,
};
use crate::engine::options::Options;
use crate::engine::sqlite::file;

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    oldest_program TEXT NOT NULL,
    applied_at_ms BIGINT NOT NULL
)";
const INSERT_RECORD: &str = "INSERT INTO schema_migrations
    (version, name, checksum, oldest_program, applied_at_ms) VALUES ($1, $2, $3, $4, $5)";

/// An arbitrary number, the same in all versions of this program. The holder of this lock changes
/// the schema.
const POSTGRES_LOCK: i64 = 0x0067_616c_6c65_7901;

/// Creates the schema in an empty SQLite database, without the record.
pub(crate) fn create_sqlite_schema(connection: &mut Connection) -> Result<()> {
    for migration in MIGRATIONS {
        connection.execute_batch(&for_sqlite(migration.sql))?;
    }
    Ok(())
}

/// Brings the SQLite file's schema up to date.
pub(crate) fn bring_up_to_date(connection: &mut Connection, options: &Options) -> Result<()> {
    apply_to_sqlite(MIGRATIONS, connection, options)
}

fn apply_to_sqlite(
    migrations: &'static [Migration],
    connection: &mut Connection,
    options: &Options,
) -> Result<()> {
    let mut log_progress = progress_logger();
    let handler = move || {
        log_progress();
        false
    };
    connection.progress_handler(STEPS_PER_CALL, Some(handler))?;
    // The immediate write lock makes a command that starts at the same time wait.
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    tx.execute_batch(CREATE_RECORD)?;
    let applied = sqlite_record(&tx)?;
    let mut missing = missing(migrations, &applied, options.program_version)?.peekable();
    let log = UpgradeLog::start(&applied, migrations, missing.peek().is_some());
    if let (Some(last), Some(_), Some(path)) = (applied.last(), missing.peek(), tx.path()) {
        back_up_before_migration(Path::new(path), last.version)?;
    }
    for migration in missing {
        let started = Instant::now();
        tx.execute_batch(&for_sqlite(migration.sql))?;
        let (checksum, oldest) = (checksum(migration.sql), oldest_program(migration.sql));
        let record = (migration.version, migration.name, checksum, oldest, options.now.ms());
        tx.execute(INSERT_RECORD, record)?;
        log.applied(migration, started);
    }
    tx.commit()?;
    Ok(connection.progress_handler(0, None::<fn() -> bool>)?)
}

/// The interval between two lines about a step of an upgrade that takes long.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The steps of SQLite's virtual machine between two calls of a progress handler: some
/// milliseconds.
const STEPS_PER_CALL: i32 = 1_000_000;

/// The log lines of the upgrade of an existing database. The creation of a new one is not logged.
#[derive(Debug, Clone, Copy)]
struct UpgradeLog {
    is_upgrade: bool,
}

impl UpgradeLog {
    fn start(applied: &[AppliedMigration], all: &[Migration], is_missing: bool) -> Self {
        let Some(last) = applied.last().filter(|_| is_missing) else {
            return Self { is_upgrade: false };
        };
        let to = all.last().map_or(last.version, |migration| migration.version);
        tracing::info!(from = last.version, to, "migrating the database's schema");
        Self { is_upgrade: true }
    }

    fn applied(self, migration: &Migration, started: Instant) {
        if self.is_upgrade {
            let (version, name) = (migration.version, migration.name);
            tracing::info!(
                version,
                name,
                ms = started.elapsed().as_millis(),
                "applied a migration"
            );
        }
    }
}

/// Returns a function that logs at an interval that the migrations are still running.
fn progress_logger() -> impl FnMut() {
    let started = Instant::now();
    let mut last = started;
    move || {
        if last.elapsed() >= LOG_INTERVAL {
            last = Instant::now();
            let seconds = started.elapsed().as_secs();
            tracing::info!(seconds, "still migrating the database's schema");
        }
    }
}

/// Creates a backup beside a file whose schema is about to be changed. If that fails, the schema is
/// left unchanged.
fn back_up_before_migration(path: &Path, version: i64) -> Result<()> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let backup = path.with_file_name(format!("{stem}-schema-{version}.backup"));
    let mut last = Instant::now();
    file::back_up(path, &backup, |progress| {
        if last.elapsed() >= LOG_INTERVAL {
            last = Instant::now();
            let percent = progress.done * 100 / progress.all.max(1);
            tracing::info!(percent, "backing up the database before migrating its schema");
        }
    })?;
    let backup = backup.display();
    tracing::info!(%backup, "backed up the database before migrating its schema");
    Ok(())
}

/// Returns the version of a SQLite database's last migration, and true if newer ones exist. Rejects
/// a database that this program can't use.
pub(crate) fn state(connection: &Connection, program_version: &str) -> Result<(i64, bool)> {
    let applied = sqlite_record(connection)
        .map_err(|_| Error::Schema("this is not a database of galley".to_owned()))?;
    let is_older = missing(MIGRATIONS, &applied, program_version)?.next().is_some();
    Ok((applied.last().map_or(0, |record| record.version), is_older))
}

/// Rejects a SQLite database whose schema differs from the result of its recorded migrations. The
/// file may be untrusted, and a trigger in it would run in the server.
pub(crate) fn reject_foreign_schema(connection: &Connection, version: i64) -> Result<()> {
    let known = Connection::open_in_memory()?;
    let changes = MIGRATIONS.iter().filter(|migration| migration.version <= version);
    for migration in changes {
        known.execute_batch(&for_sqlite(migration.sql))?;
    }
    known.execute_batch(CREATE_RECORD)?;
    let (expected, found) = (schema_of(&known)?, schema_of(connection)?);
    let odd = found.symmetric_difference(&expected).next();
    odd.map_or(Ok(()), |(_, name, _)| {
        Err(Error::Schema(format!("its schema is not that of galley: {name} differs")))
    })
}

/// Returns the type, name and statement of each schema object.
fn schema_of(connection: &Connection) -> Result<BTreeSet<(String, String, String)>> {
    let mut statement = connection.prepare(
        "SELECT type, name, CASE name WHEN 'schema_migrations' THEN '' ELSE COALESCE(sql, '') END
         FROM sqlite_schema WHERE name <> 'sqlite_stat1'",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Brings the PostgreSQL database's schema up to date. An advisory lock admits one node at a time.
pub(crate) async fn postgres(client: &ClientWrapper, options: &Options) -> Result<()> {
    apply_to_postgres(MIGRATIONS, client, options).await
}

async fn apply_to_postgres(
    migrations: &'static [Migration],
    client: &ClientWrapper,
    options: &Options,
) -> Result<()> {
    let begin = format!(
        "BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;
         SELECT pg_advisory_xact_lock({POSTGRES_LOCK}); {CREATE_RECORD}"
    );
    client.batch_execute(&begin).await?;
    let changed = postgres_in_transaction(migrations, client, options).await;
    let end = if changed.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await?;
    changed
}

async fn postgres_in_transaction(
    migrations: &'static [Migration],
    client: &ClientWrapper,
    options: &Options,
) -> Result<()> {
    let applied = postgres_record(client).await?;
    let mut missing = missing(migrations, &applied, options.program_version)?.peekable();
    let log = UpgradeLog::start(&applied, migrations, missing.peek().is_some());
    for migration in missing {
        let started = Instant::now();
        let mut log_progress = progress_logger();
        // One at a time: a distributed engine doesn't accept several changes in one request.
        for statement in statements(&for_postgres(migration.sql)) {
            let mut change = std::pin::pin!(client.batch_execute(&statement));
            loop {
                match timeout(LOG_INTERVAL, &mut change).await {
                    Ok(done) => break done?,
                    Err(_) => log_progress(),
                }
            }
        }
        let (checksum, oldest) = (checksum(migration.sql), oldest_program(migration.sql));
        client
            .execute(
                INSERT_RECORD,
                &[&migration.version, &migration.name, &checksum, &oldest, &options.now.ms()],
            )
            .await?;
        log.applied(migration, started);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio_postgres::NoTls;

    use super::*;
    use crate::engine::migration_sql::rewritten_tables;
    use crate::engine::migrations::pending;
    use crate::engine::options::{DatabaseUrl, ProcessRole};
    use crate::engine::sqlite::connection::open_reader;

    fn last_version() -> i64 {
        MIGRATIONS.last().unwrap().version
    }

    /// Returns the migrations with a further one, as a later program has.
    fn with_next(sql: &'static str) -> &'static [Migration] {
        let version = last_version() + 1;
        let next = Migration { version, name: "next", sql };
        [MIGRATIONS, &[next]].concat().leak()
    }

    const NEXT: &str = "-- oldest-program: 0.1.0\n-- rewrites: workspaces\n
        ALTER TABLE workspaces ADD COLUMN next TEXT;\nUPDATE workspaces SET next = name;\n";

    const FAILING: &str = "-- oldest-program: 0.1.0\n
        ALTER TABLE workspaces ADD COLUMN next TEXT;\nUPDATE nothing SET next = name;\n";

    const INSERT: &str =
        "INSERT INTO workspaces (id, name, version, created_at_ms) VALUES ('a', 'b', 1, 1)";

    fn options(url: &DatabaseUrl) -> Options {
        Options {
            url: url.clone(),
            replica_url: None,
            role: ProcessRole::Server,
            program_version: "0.2.0",
            now: galley_domain::Timestamp::from_ms(0),
            connections: 1,
            write_timeout: Duration::from_secs(1),
            statement_log: None,
        }
    }

    /// Applies migrations to a SQLite file.
    fn apply(migrations: &'static [Migration], path: &Path) -> Result<()> {
        let mut connection = Connection::open(path).unwrap();
        connection.execute_batch("PRAGMA journal_mode=WAL").unwrap();
        apply_to_sqlite(migrations, &mut connection, &options(&DatabaseUrl::Sqlite(path.into())))
    }

    #[test]
    fn a_backup_is_created_before_a_migration_on_sqlite() {
        let store = galley_testing::TestStore::sqlite();
        let path = store.directory().join("a.db");
        let last = last_version();
        apply(MIGRATIONS, &path).unwrap();
        Connection::open(&path).unwrap().execute(INSERT, []).unwrap();
        let backup = path.with_file_name(format!("a-schema-{last}.backup"));
        assert!(!backup.exists(), "a new database needs no backup");
        for _ in 0..2 {
            apply(with_next(NEXT), &path).unwrap();
            file::check(&backup).unwrap();
            let kept = open_reader(&backup).unwrap();
            assert_eq!(state(&kept, "0.2.0").unwrap(), (last, false));
            let name = |connection: &Connection, column: &str| {
                let sql = format!("SELECT {column} FROM workspaces");
                connection.query_row(&sql, [], |row| row.get::<_, String>(0)).unwrap()
            };
            assert_eq!(name(&kept, "name"), "b");
            let now = open_reader(&path).unwrap();
            assert_eq!(state(&now, "0.2.0").unwrap(), (last + 1, false));
            assert_eq!(name(&now, "next"), "b");
        }
    }

    #[test]
    fn a_migration_that_fails_changes_nothing_on_sqlite() {
        let store = galley_testing::TestStore::sqlite();
        let path = store.directory().join("a.db");
        apply(MIGRATIONS, &path).unwrap();
        for _ in 0..2 {
            assert!(apply(with_next(FAILING), &path).is_err());
            let found = open_reader(&path).unwrap();
            assert_eq!(state(&found, "0.2.0").unwrap(), (last_version(), false));
            assert!(found.prepare("SELECT next FROM workspaces").is_err());
        }
        apply(with_next(NEXT), &path).unwrap();
    }

    #[tokio::test]
    async fn migrations_apply_together_or_not_at_all_on_postgresql() {
        let Some(store) = galley_testing::TestStore::empty_postgres().await else { return };
        let url = store.postgres_url().unwrap();
        let options = options(&DatabaseUrl::Postgres(url.to_owned()));
        let manager = deadpool_postgres::Manager::new(url.parse().unwrap(), NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).build().unwrap();
        let client = pool.get().await.unwrap();
        assert!(apply_to_postgres(with_next(FAILING), &client, &options).await.is_err());
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        assert_eq!(client.query_one(tables, &[]).await.unwrap().get::<_, i64>(0), 0);
        apply_to_postgres(MIGRATIONS, &client, &options).await.unwrap();
        client.execute(INSERT, &[]).await.unwrap();
        for _ in 0..2 {
            apply_to_postgres(with_next(NEXT), &client, &options).await.unwrap();
            let applied = postgres_record(&client).await.unwrap();
            assert_eq!(applied.last().unwrap().version, last_version() + 1);
            let name = client.query_one("SELECT next FROM workspaces", &[]).await.unwrap();
            assert_eq!(name.get::<_, String>(0), "b");
        }
    }

    #[test]
    fn a_comment_names_the_tables_that_a_migration_rewrites() {
        assert_eq!(rewritten_tables(NEXT), ["workspaces"]);
        assert!(rewritten_tables(FAILING).is_empty());
        assert_eq!(pending(&[], "0.2.0").unwrap().len(), MIGRATIONS.len());
    }
}
