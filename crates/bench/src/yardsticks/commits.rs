//! The rows of a new title, written by rusqlite alone: in groups, as Galley's writer does, or with a commit for each.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Prints how many were written in a second.
pub(crate) fn run(file: &Path, group: usize, seconds: u64) -> anyhow::Result<()> {
    let connection = Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA cache_size=-16384;",
    )?;
    connection.set_prepared_statement_cache_capacity(64);
    let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    };
    let workspace = texts("SELECT id FROM workspaces")?.remove(0);
    let pieces = texts("SELECT id FROM content_pieces ORDER BY id LIMIT 1000")?;
    let (path, data) = connection.query_row(
        "SELECT path_after, data FROM events WHERE type = 'contentPieceAdded' LIMIT 1",
        [],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
    )?;
    let (started, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut written = 0_usize;
    while started.elapsed() < time {
        connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
        for _ in 0..group {
            let (piece, now) =
                (&pieces[written % pieces.len()], 1_800_000_000_000_i64 + i64::try_from(written)?);
            connection
                .prepare_cached(
                    "UPDATE content_pieces SET version = version + 1, updated_at_ms = ?3, title = ?4
                     WHERE workspace_id = ?1 AND id = ?2",
                )?
                .execute((&workspace, piece, now, format!("Title {written}")))?;
            let sequence: i64 = connection
                .prepare_cached(
                    "UPDATE workspace_sequences SET last_sequence = last_sequence + 1
                     WHERE workspace_id = ?1 RETURNING last_sequence",
                )?
                .query_row([&workspace], |row| row.get(0))?;
            connection
                .prepare_cached(
                    "INSERT INTO events (workspace_id, sequence, id, type, created_at_ms, path_before, path_after, data)
                     VALUES (?1, ?2, ?3, 'contentPieceUpdated', ?4, ?5, ?5, ?6)",
                )?
                .execute((&workspace, sequence, format!("evt_{written}_{now}"), now, &path, &data))?;
            written += 1;
        }
        connection.prepare_cached("COMMIT")?.raw_execute()?;
    }
    println!("{}", written as f64 / started.elapsed().as_secs_f64());
    Ok(())
}
