//! The state of a database, read without changing it, for diagnosis and before upgrades.

use deadpool_postgres::ClientWrapper;
use galley_domain::Timestamp;
use rusqlite::Connection;
use tokio_postgres::Row;

use crate::engine::error::{Error, Result};
use crate::engine::migrations::{self, PendingMigration};
use crate::engine::options::{DatabaseUrl, Options};
use crate::engine::postgres;
use crate::engine::sqlite::open_reader;

/// The oldest major version of PostgreSQL that its project still maintains.
const OLDEST_POSTGRES: i32 = 14;

/// The age of the oldest transaction at which PostgreSQL is close to rejecting writes. By default
/// it vacuums at a seventh of this age.
const TRANSACTION_AGE_LIMIT: i64 = 1_500_000_000;

/// The connections besides the pool: the shared one, that of heartbeats, and those of commands and
/// of the administrator.
const SPARE_CONNECTIONS: usize = 8;

/// The time of the last event of any workspace.
const LAST_EVENT: &str = "SELECT max((SELECT e.created_at_ms FROM events e
    WHERE e.workspace_id = w.id ORDER BY e.sequence DESC LIMIT 1)) FROM workspaces w";

/// The state of a database.
#[derive(Debug)]
pub struct Inspection {
    /// The engine and its version, such as `PostgreSQL 15.6`.
    pub engine: String,
    /// The number of the last migration; 0 in an empty database.
    pub schema: i64,
    /// The migrations that the next start applies.
    pub pending: Vec<PendingMigration>,
    /// The size of the database in bytes, with pages that are free within it.
    pub bytes: u64,
    /// The size of the tables that the pending migrations rewrite, in bytes.
    pub rewritten_bytes: u64,
    /// The database's own time, on PostgreSQL.
    pub clock: Option<Timestamp>,
    /// The time of the last event.
    pub last_event: Option<Timestamp>,
    /// Settings and states of the engine that cause problems, each with its remedy.
    pub warnings: Vec<String>,
}

impl Inspection {
    /// Reads the state of a database, which must exist.
    pub async fn of(options: &Options) -> Result<Self> {
        match &options.url {
            DatabaseUrl::Sqlite(path) => of_sqlite(&open_reader(path)?, options),
            DatabaseUrl::Postgres(url) => {
                let pool = postgres::inspection_pool(url, options)?;
                let client = pool.get().await?;
                let inspection = of_postgres(&client, options).await;
                pool.close();
                inspection
            }
        }
    }
}

fn of_sqlite(connection: &Connection, options: &Options) -> Result<Inspection> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    let is_empty = number("SELECT count(*) FROM sqlite_schema")? == Some(0);
    let applied = if is_empty { Vec::new() } else { migrations::sqlite_record(connection)? };
    let last_event = if applied.is_empty() { None } else { number(LAST_EVENT)? };
    let version: String = connection.query_row("SELECT sqlite_version()", [], |row| row.get(0))?;
    let bytes = number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?;
    let bytes = to_unsigned(bytes.unwrap_or(0));
    let pending = migrations::pending(&applied, options.program_version)?;
    // The size of one table is not known here.
    let is_rewritten = pending.iter().any(|migration| !migration.rewritten_tables.is_empty());
    Ok(Inspection {
        engine: format!("SQLite {version}"),
        schema: applied.last().map_or(0, |record| record.version),
        pending,
        bytes,
        rewritten_bytes: if is_rewritten { bytes } else { 0 },
        clock: None,
        last_event: last_event.map(Timestamp::from_ms),
        warnings: Vec::new(),
    })
}

async fn of_postgres(client: &ClientWrapper, options: &Options) -> Result<Inspection> {
    let row = client
        .query_one(
            "SELECT to_regclass('schema_migrations') IS NOT NULL,
                current_setting('server_version'), current_setting('server_version_num')::int,
                pg_database_size(current_database()),
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                current_setting('full_page_writes'),
                current_setting('autovacuum'), current_setting('server_encoding'),
                current_setting('max_connections')::bigint
                    - current_setting('superuser_reserved_connections')::bigint,
                (SELECT age(datfrozenxid)::bigint FROM pg_database
                    WHERE datname = current_database())",
            &[],
        )
        .await?;
    let applied =
        if row.try_get(0)? { migrations::postgres_record(client).await? } else { Vec::new() };
    let last_event: Option<i64> = if applied.is_empty() {
        None
    } else {
        client.query_one(LAST_EVENT, &[]).await?.try_get(0)?
    };
    let version: String = row.try_get(1)?;
    let pending = migrations::pending(&applied, options.program_version)?;
    let rewritten: Vec<&str> =
        pending.iter().flat_map(|migration| migration.rewritten_tables.clone()).collect();
    let size = "SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint
        FROM unnest($1::text[]) name";
    let rewritten_bytes: i64 = client.query_one(size, &[&rewritten]).await?.try_get(0)?;
    Ok(Inspection {
        engine: format!("PostgreSQL {version}"),
        schema: applied.last().map_or(0, |record| record.version),
        pending,
        rewritten_bytes: to_unsigned(rewritten_bytes),
        bytes: to_unsigned(row.try_get(3)?),
        clock: Some(Timestamp::from_ms(row.try_get(4)?)),
        last_event: last_event.map(Timestamp::from_ms),
        warnings: postgres_warnings(&row, options)?,
    })
}

/// Returns the warnings about the settings and the age of transactions in a row of `of_postgres`.
fn postgres_warnings(row: &Row, options: &Options) -> Result<Vec<String>> {
    let major = row.try_get::<_, i32>(2)? / 10_000;
    let mut warnings = Vec::new();
    if major < OLDEST_POSTGRES {
        warnings.push(format!(
            "PostgreSQL {major} gets no more corrections: upgrade it to {OLDEST_POSTGRES} or later"
        ));
    }
    for (index, name, remedy) in [
        (5, "full_page_writes", "a power cut may damage the database: set full_page_writes=on"),
        (6, "autovacuum", "tables grow without limit: set autovacuum=on"),
    ] {
        if row.try_get::<_, String>(index)? != "on" {
            warnings.push(format!("{name} is off, so {remedy}"));
        }
    }
    let encoding: String = row.try_get(7)?;
    if encoding != "UTF8" {
        warnings.push(format!(
            "the encoding is {encoding}, so some texts can't be stored: create the database with \
             ENCODING 'UTF8'"
        ));
    }
    let available: i64 = row.try_get(8)?;
    let needed = options.connections + SPARE_CONNECTIONS;
    if usize::try_from(available).unwrap_or(0) < needed {
        warnings.push(format!(
            "max_connections permits {available} connections, and one node needs up to {needed}: \
             raise max_connections, or lower database-connections"
        ));
    }
    let age: i64 = row.try_get(9)?;
    if age > TRANSACTION_AGE_LIMIT {
        warnings.push(format!(
            "the oldest transaction is {age} transactions old, and PostgreSQL rejects writes at \
             2 billion: run VACUUM in this database"
        ));
    }
    Ok(warnings)
}

/// Checks that standbys can be read.
pub async fn check_standby(url: &str, options: &Options) -> Result<()> {
    let pool = postgres::standby_pool(url, options)?;
    let is_standby: bool =
        pool.get().await?.query_one("SELECT pg_is_in_recovery()", &[]).await?.try_get(0)?;
    pool.close();
    if is_standby {
        return Ok(());
    }
    Err(Error::Settings("it is not a standby, but a primary server".to_owned()))
}

fn to_unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}
