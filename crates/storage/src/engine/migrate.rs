//! Schema migrations, applied at start, each once, in order, in one transaction.
//!
//! The table `schema_migrations` records the applied ones, with a checksum of each and the oldest
//! program that may use the schema after it. If the record has a migration that this program
//! doesn't include, that version decides if the program may run.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use deadpool_postgres::ClientWrapper;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::engine::error::{Error, Result};
use crate::engine::options::Options;
use crate::engine::row::Row;
use crate::engine::sqlite::file;
use crate::engine::transaction::Tx;
use crate::engine::value::params;

#[derive(Debug, Clone, Copy)]
struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

macro_rules! migrations {
    ($($version:literal $name:literal $file:literal,)*) => {
        &[$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../migrations/", $file)),
        },)*]
    };
}

const MIGRATIONS: &[Migration] = migrations! {
    1 "initial" "0001_initial.sql",
};

const CREATE_RECORD: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    oldest_program TEXT NOT NULL,
    applied_at_ms BIGINT NOT NULL
)";
const SELECT_RECORD: &str =
    "SELECT version, name, checksum, oldest_program FROM schema_migrations ORDER BY version";
const INSERT_RECORD: &str = "INSERT INTO schema_migrations
    (version, name, checksum, oldest_program, applied_at_ms) VALUES ($1, $2, $3, $4, $5)";

/// An arbitrary number, the same in all versions of this program. The holder of this lock changes
/// the schema.
const POSTGRES_LOCK: i64 = 0x0067_616c_6c65_7901;

/// A migration that the next start applies.
#[derive(Debug, Clone)]
pub struct PendingMigration {
    /// The number of the schema after it.
    pub version: i64,
    /// Its name, such as `search`.
    pub name: &'static str,
    /// The oldest program that may use the database after it.
    pub oldest_program: &'static str,
    /// The tables all of whose rows it changes, which decide how long it takes.
    pub rewritten_tables: Vec<&'static str>,
}

/// A row of the record.
pub(crate) struct AppliedMigration {
    pub(crate) version: i64,
    name: String,
    checksum: String,
    oldest_program: String,
}

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

/// Returns the applied migrations of a SQLite database.
pub(crate) fn sqlite_record(connection: &Connection) -> Result<Vec<AppliedMigration>> {
    let mut statement = connection.prepare(SELECT_RECORD)?;
    let rows = statement.query_map([], |row| {
        Ok(AppliedMigration {
            version: row.get(0)?,
            name: row.get(1)?,
            checksum: row.get(2)?,
            oldest_program: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
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

/// Returns the applied migrations of a PostgreSQL database.
pub(crate) async fn postgres_record(client: &ClientWrapper) -> Result<Vec<AppliedMigration>> {
    let rows = client.query(SELECT_RECORD, &[]).await?;
    let applied = rows.iter().map(|row| {
        Ok(AppliedMigration {
            version: row.try_get(0)?,
            name: row.try_get(1)?,
            checksum: row.try_get(2)?,
            oldest_program: row.try_get(3)?,
        })
    });
    Ok(applied.collect::<Result<_, tokio_postgres::Error>>()?)
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

/// Describes the pending migrations. Rejects a database that this program must not change.
pub(crate) fn pending(
    applied: &[AppliedMigration],
    program_version: &str,
) -> Result<Vec<PendingMigration>> {
    let describe = |migration: &'static Migration| PendingMigration {
        version: migration.version,
        name: migration.name,
        oldest_program: oldest_program(migration.sql),
        rewritten_tables: rewritten_tables(migration.sql),
    };
    Ok(missing(MIGRATIONS, applied, program_version)?.map(describe).collect())
}

/// Returns the pending migrations. Rejects a database that this program must not change.
fn missing<'m>(
    all: &'m [Migration],
    applied: &[AppliedMigration],
    program_version: &str,
) -> Result<impl Iterator<Item = &'m Migration> + use<'m>> {
    for record in applied {
        let known = all.iter().find(|migration| migration.version == record.version);
        match known {
            Some(migration) if checksum(migration.sql) != record.checksum => {
                return Err(Error::Schema(format!(
                    "schema change {} ({}) of the database differs from this program's: it was \
                     applied by another build",
                    record.version, record.name
                )));
            }
            Some(_) => {}
            None => reject_too_old(program_version, &record.oldest_program, &record.name)?,
        }
    }
    let last = applied.last().map_or(0, |record| record.version);
    Ok(all.iter().filter(move |migration| migration.version > last))
}

/// Returns the recorded migrations that this program doesn't include: the oldest program that each
/// allows, and its name.
pub(crate) async fn unknown(tx: &Tx<'_>) -> Result<Vec<(String, String)>> {
    let last = MIGRATIONS.last().map_or(0, |migration| migration.version);
    let sql = "SELECT oldest_program, name FROM schema_migrations WHERE version > ?1";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    tx.query(sql, params![last], read).await
}

pub(crate) fn reject_too_old(
    program_version: &str,
    oldest_program: &str,
    name: &str,
) -> Result<()> {
    if version_parts(program_version) >= version_parts(oldest_program) {
        return Ok(());
    }
    Err(Error::Schema(format!(
        "the database is too new: its schema ({name}) requires galley {oldest_program} or later, \
         and this is galley {program_version}; start the newer program"
    )))
}

fn version_parts(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

fn checksum(sql: &str) -> String {
    use std::fmt::Write;
    Sha256::digest(sql.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

/// Returns the oldest program that may use the schema after this migration, from the comment at its
/// start.
fn oldest_program(sql: &str) -> &str {
    let line = sql.lines().find_map(|line| line.strip_prefix("-- oldest-program: "));
    line.expect("every schema change names the oldest program that may use it")
}

/// Returns the tables that a migration rewrites, from the comment at its start.
fn rewritten_tables(sql: &str) -> Vec<&str> {
    let line = sql.lines().find_map(|line| line.strip_prefix("-- rewrites: "));
    line.into_iter().flat_map(|tables| tables.split(", ")).collect()
}

/// Enables the parts that are meant for SQLite only. Those for PostgreSQL are comments.
fn for_sqlite(sql: &str) -> String {
    replace_parts(sql, "/*sqlite:", |only| only)
}

/// Enables the parts for PostgreSQL, omits those for SQLite, and makes PostgreSQL compare text byte
/// by byte, as SQLite does.
fn for_postgres(sql: &str) -> String {
    let sql = replace_parts(sql, "/*sqlite:", |_| "");
    replace_parts(&sql, "/*postgres:", |only| only).replace(" TEXT", " TEXT COLLATE \"C\"")
}

/// Replaces the comments that contain SQL for one engine only.
fn replace_parts(sql: &str, begin: &str, by: impl Fn(&str) -> &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once(begin) {
        let (only, after) = after.split_once("*/").expect("the comment ends");
        out.push_str(before);
        out.push_str(by(only));
        rest = after;
    }
    out + rest
}

/// Returns the statements of a migration, without the comments.
fn statements(sql: &str) -> Vec<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("--");
    let code = sql.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    code.split(";\n").map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use tokio_postgres::NoTls;

    use super::*;
    use crate::engine::options::{DatabaseUrl, ProcessRole};
    use crate::engine::sqlite::connection::open_reader;

    fn applied(version: i64, checksum: &str, oldest: &str) -> AppliedMigration {
        AppliedMigration {
            version,
            name: "some change".to_owned(),
            checksum: checksum.to_owned(),
            oldest_program: oldest.to_owned(),
        }
    }

    #[test]
    fn migrations_are_numbered_without_gaps_and_name_the_oldest_program() {
        for (index, migration) in (1..).zip(MIGRATIONS) {
            assert_eq!(migration.version, index);
            assert!(!oldest_program(migration.sql).is_empty());
        }
    }

    #[test]
    fn statements_end_with_a_semicolon_at_the_end_of_a_line() {
        for migration in MIGRATIONS {
            for statement in statements(&for_postgres(migration.sql)) {
                let last = statement.trim_end_matches(';');
                assert!(!last.contains(';'), "{}: {statement}", migration.name);
            }
        }
    }

    #[test]
    fn an_unknown_migration_is_rejected_unless_it_allows_this_program() {
        let all = || MIGRATIONS.iter().map(|m| applied(m.version, &checksum(m.sql), "0.1.0"));
        let newer = |oldest| all().chain([applied(99, "x", oldest)]).collect::<Vec<_>>();
        assert_eq!(missing(MIGRATIONS, &newer("0.1.0"), "0.1.0").unwrap().count(), 0);
        assert!(matches!(
            missing(MIGRATIONS, &newer("0.10.0"), "0.9.1").map(drop),
            Err(Error::Schema(_))
        ));
    }

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

    #[test]
    fn an_edited_migration_is_rejected() {
        let edited = [applied(1, "another", "0.1.0")];
        let rejected = missing(MIGRATIONS, &edited, "0.2.0").map(drop);
        assert!(matches!(rejected, Err(Error::Schema(_))));
    }
}
