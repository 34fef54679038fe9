//! The migrations of this program, and their comparison with the record of those that a database
//! has.
//!
//! The table `schema_migrations` records the applied ones, with a checksum of each and the oldest
//! program that may use the schema after it. If the record has a migration that this program
//! doesn't include, that version decides if the program may run.

use deadpool_postgres::ClientWrapper;
use rusqlite::Connection;

use crate::engine::error::{Error, Result};
use crate::engine::migration_sql::{checksum, oldest_program, rewritten_tables};
use crate::engine::row::Row;
use crate::engine::transaction::Tx;
use crate::engine::value::params;

#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    pub(super) version: i64,
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
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

pub(super) const MIGRATIONS: &[Migration] = migrations! {
    1 "initial" "0001_initial.sql",
};

const SELECT_RECORD: &str =
    "SELECT version, name, checksum, oldest_program FROM schema_migrations ORDER BY version";

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
pub(super) fn missing<'m>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::migration_sql::{for_postgres, statements};

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

    #[test]
    fn an_edited_migration_is_rejected() {
        let edited = [applied(1, "another", "0.1.0")];
        let rejected = missing(MIGRATIONS, &edited, "0.2.0").map(drop);
        assert!(matches!(rejected, Err(Error::Schema(_))));
    }
}
