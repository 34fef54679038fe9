//! Schema migrations, applied at start, each once, in order, in one transaction.
//!
//! The table `schema_migrations` records the applied ones, with a checksum of each and the oldest
//! program that may use the schema after it. If the record has a migration that this program
//! doesn't include, that version decides if the program may run.

use std::collections::BTreeSet;
use std::path::Path;

use deadpool_postgres::ClientWrapper;
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::engine::error::{Error, Result};
use crate::engine::options::Options;
use crate::engine::row::Row;
use crate::engine::sqlite::file;
use crate::engine::transaction::Tx;
use crate::engine::value::params;

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
    2 "variants" "0002_variants.sql",
    3 "people and webhooks" "0003_people_webhooks.sql",
    4 "deliveries" "0004_deliveries.sql",
    5 "match progress" "0005_match_progress.sql",
    6 "mails" "0006_mails.sql",
    7 "order_before" "0007_order_before.sql",
    8 "generations" "0008_generations.sql",
    9 "heartbeats" "0009_heartbeats.sql",
    10 "line bounds" "0010_line_bounds.sql",
    11 "order spreads" "0011_order_spreads.sql",
    12 "delivery sessions" "0012_delivery_sessions.sql",
    13 "import sources" "0013_import_sources.sql",
    14 "webhook events" "0014_webhook_events.sql",
    15 "piece filters" "0015_piece_filters.sql",
    16 "event tickets" "0016_event_tickets.sql",
    17 "piece actors" "0017_piece_actors.sql",
    18 "unique slugs" "0018_unique_slugs.sql",
    19 "custom data schemas" "0019_custom_data_schemas.sql",
    20 "revisions" "0020_revisions.sql",
    21 "trash" "0021_trash.sql",
    22 "variant revisions" "0022_variant_revisions.sql",
    23 "publication" "0023_publication.sql",
    24 "preview tokens" "0024_preview_tokens.sql",
    25 "audit" "0025_audit.sql",
    26 "preview urls" "0026_preview_urls.sql",
    27 "sessions" "0027_sessions.sql",
    28 "invite links" "0028_invite_links.sql",
    29 "assets" "0029_assets.sql",
    30 "asset uploads" "0030_asset_uploads.sql",
    31 "search" "0031_search.sql",
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

/// A row of the record.
struct AppliedMigration {
    version: i64,
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
    // The immediate write lock makes a command that starts at the same time wait.
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    tx.execute_batch(CREATE_RECORD)?;
    let applied = sqlite_record(&tx)?;
    let mut missing = missing(&applied, options.program_version)?.peekable();
    log_upgrade(&applied, missing.peek().is_some());
    if let (Some(last), Some(_), Some(path)) = (applied.last(), missing.peek(), tx.path()) {
        back_up_before_migration(Path::new(path), last.version)?;
    }
    for migration in missing {
        tx.execute_batch(&for_sqlite(migration.sql))?;
        let (checksum, oldest) = (checksum(migration.sql), oldest_program(migration.sql));
        let record = (migration.version, migration.name, checksum, oldest, options.now.ms());
        tx.execute(INSERT_RECORD, record)?;
        tracing::debug!(version = migration.version, name = migration.name, "schema changed");
    }
    Ok(tx.commit()?)
}

/// Logs the upgrade of an existing database's schema. The creation of a new one is not logged.
fn log_upgrade(applied: &[AppliedMigration], is_missing: bool) {
    if let (Some(last), true) = (applied.last(), is_missing) {
        let to = MIGRATIONS.last().map_or(last.version, |migration| migration.version);
        tracing::info!(from = last.version, to, "migrating the database's schema");
    }
}

fn sqlite_record(connection: &Connection) -> Result<Vec<AppliedMigration>> {
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
    file::back_up(path, &backup, |_| {})?;
    let backup = backup.display();
    tracing::info!(%backup, "backed up the database before migrating its schema");
    Ok(())
}

/// Returns the version of a SQLite database's last migration, and true if newer ones exist. Rejects
/// a database that this program can't use.
pub(crate) fn state(connection: &Connection, program_version: &str) -> Result<(i64, bool)> {
    let applied = sqlite_record(connection)
        .map_err(|_| Error::Schema("this is not a database of galley".to_owned()))?;
    let is_older = missing(&applied, program_version)?.next().is_some();
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
    let begin = format!(
        "BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;
         SELECT pg_advisory_xact_lock({POSTGRES_LOCK}); {CREATE_RECORD}"
    );
    client.batch_execute(&begin).await?;
    let changed = postgres_in_transaction(client, options).await;
    let end = if changed.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await?;
    changed
}

async fn postgres_in_transaction(client: &ClientWrapper, options: &Options) -> Result<()> {
    let rows = client.query(SELECT_RECORD, &[]).await?;
    let applied = rows.iter().map(|row| {
        Ok(AppliedMigration {
            version: row.try_get(0)?,
            name: row.try_get(1)?,
            checksum: row.try_get(2)?,
            oldest_program: row.try_get(3)?,
        })
    });
    let applied = applied.collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
    let mut missing = missing(&applied, options.program_version)?.peekable();
    log_upgrade(&applied, missing.peek().is_some());
    for migration in missing {
        // One at a time: a distributed engine doesn't accept several changes in one request.
        for statement in statements(&for_postgres(migration.sql)) {
            client.batch_execute(&statement).await?;
        }
        let (checksum, oldest) = (checksum(migration.sql), oldest_program(migration.sql));
        client
            .execute(
                INSERT_RECORD,
                &[&migration.version, &migration.name, &checksum, &oldest, &options.now.ms()],
            )
            .await?;
        tracing::debug!(version = migration.version, name = migration.name, "schema changed");
    }
    Ok(())
}

/// Returns the pending migrations. Rejects a database that this program must not change.
fn missing<'m>(
    applied: &[AppliedMigration],
    program_version: &str,
) -> Result<impl Iterator<Item = &'m Migration> + use<'m>> {
    for record in applied {
        let known = MIGRATIONS.iter().find(|migration| migration.version == record.version);
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
    Ok(MIGRATIONS.iter().filter(move |migration| migration.version > last))
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
        assert_eq!(missing(&newer("0.1.0"), "0.1.0").unwrap().count(), 0);
        assert!(matches!(missing(&newer("0.10.0"), "0.9.1").map(drop), Err(Error::Schema(_))));
    }

    fn migrate_file(path: &Path, options: &Options) {
        let mut connection = Connection::open(path).unwrap();
        connection.execute_batch("PRAGMA journal_mode=WAL").unwrap();
        bring_up_to_date(&mut connection, options).unwrap();
    }

    #[test]
    fn a_backup_is_created_before_a_migration() {
        let store = galley_testing::TestStore::sqlite();
        let path = store.directory().join("a.db");
        let (last, older) = MIGRATIONS.split_last().unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(CREATE_RECORD).unwrap();
        for one in older {
            connection.execute_batch(&for_sqlite(one.sql)).unwrap();
            let record = (one.version, one.name, checksum(one.sql), "0.1.0", 0);
            connection.execute(INSERT_RECORD, record).unwrap();
        }
        let sql =
            "INSERT INTO workspaces (id, name, version, created_at_ms) VALUES ('a', 'b', 1, 1)";
        connection.execute(sql, []).unwrap();
        drop(connection);
        let options = Options {
            url: DatabaseUrl::Sqlite(path.clone()),
            replica_url: None,
            role: ProcessRole::Server,
            program_version: "0.1.0",
            now: galley_domain::Timestamp::from_ms(0),
            connections: 1,
            write_timeout: std::time::Duration::from_secs(1),
            statement_log: None,
        };
        let backup = path.with_file_name(format!("a-schema-{}.backup", last.version - 1));
        for _ in 0..2 {
            migrate_file(&path, &options);
            file::check(&backup).unwrap();
            let kept = open_reader(&backup).unwrap();
            assert_eq!(state(&kept, "0.1.0").unwrap(), (last.version - 1, true));
            let name =
                kept.query_row("SELECT name FROM workspaces", [], |row| row.get::<_, String>(0));
            assert_eq!(name.unwrap(), "b");
            let now = open_reader(&path).unwrap();
            assert_eq!(state(&now, "0.1.0").unwrap(), (last.version, false));
        }
        // A new database needs no backup.
        let new = store.directory().join("new.db");
        migrate_file(&new, &options);
        let files = std::fs::read_dir(store.directory()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| name.ends_with(".backup")).count(), 1);
    }

    #[test]
    fn an_edited_migration_is_rejected() {
        let edited = [applied(1, "another", "0.1.0")];
        assert!(matches!(missing(&edited, "0.1.0").map(drop), Err(Error::Schema(_))));
        assert_eq!(missing(&[], "0.1.0").unwrap().count(), MIGRATIONS.len());
    }
}
