//! Yardsticks for title updates, written by rusqlite alone. They commit in groups, as Galley's
//! writer thread does, or each update by itself, with or without axum in front.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::put;
use rusqlite::Connection;
use serde::Deserialize;
use tokio::sync::oneshot;

/// An SQLite connection that writes title updates.
struct TitleWriter {
    connection: Connection,
    workspace: String,
    /// The path and data of an existing event, from which others are written.
    path: String,
    data: String,
    written: i64,
}

impl TitleWriter {
    fn open(file: &Path) -> anyhow::Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA cache_size=-16384;",
        )?;
        connection.set_prepared_statement_cache_capacity(64);
        let workspace = connection.query_row("SELECT id FROM workspaces", [], |row| row.get(0))?;
        let (path, data) = connection.query_row(
            "SELECT path_after, data FROM events WHERE type = 'contentPieceAdded' LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        Ok(Self { connection, workspace, path, data, written: 0 })
    }

    fn pieces(&self) -> anyhow::Result<Vec<String>> {
        let sql = "SELECT id FROM content_pieces ORDER BY id LIMIT 1000";
        let mut statement = self.connection.prepare(sql)?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    fn begin(&self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute().map(drop)
    }

    fn commit(&self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("COMMIT")?.raw_execute().map(drop)
    }

    fn write(&mut self, piece: &str, title: &str) -> rusqlite::Result<()> {
        self.written += 1;
        let now = 1_800_000_000_000_i64 + self.written;
        self.connection
            .prepare_cached(
                "UPDATE content_pieces SET version = version + 1, updated_at_ms = ?3, title = ?4
                 WHERE workspace_id = ?1 AND id = ?2",
            )?
            .execute((&self.workspace, piece, now, title))?;
        let sequence: i64 = self
            .connection
            .prepare_cached(
                "UPDATE workspace_sequences SET last_sequence = last_sequence + 1
                 WHERE workspace_id = ?1 RETURNING last_sequence",
            )?
            .query_row([&self.workspace], |row| row.get(0))?;
        let id = format!("evt_{sequence}_{now}");
        self.connection
            .prepare_cached(
                "INSERT INTO events (workspace_id, sequence, id, type, created_at_ms, path_before, path_after, data)
                 VALUES (?1, ?2, ?3, 'contentPieceUpdated', ?4, ?5, ?5, ?6)",
            )?
            .execute((&self.workspace, sequence, id, now, &self.path, &self.data))?;
        Ok(())
    }
}

/// Writes titles for some seconds and prints the rate per second.
pub(crate) fn run(file: &Path, group: usize, seconds: u64) -> anyhow::Result<()> {
    let mut writer = TitleWriter::open(file)?;
    let pieces = writer.pieces()?;
    let (started, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut written = 0_usize;
    while started.elapsed() < time {
        writer.begin()?;
        for _ in 0..group {
            writer.write(&pieces[written % pieces.len()], &format!("Title {written}"))?;
            written += 1;
        }
        writer.commit()?;
    }
    println!("{}", written as f64 / started.elapsed().as_secs_f64());
    Ok(())
}

#[derive(Deserialize)]
struct Update {
    id: String,
    title: String,
}

type QueuedUpdate = (Update, oneshot::Sender<()>);

/// Accepts title updates over HTTP, and commits all queued ones in one transaction.
pub(crate) fn serve(address: SocketAddr, file: &Path) -> anyhow::Result<()> {
    let mut writer = TitleWriter::open(file)?;
    let (queue, waiting) = mpsc::channel::<QueuedUpdate>();
    std::thread::spawn(move || {
        while let Ok(first) = waiting.recv() {
            let group: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).collect();
            writer.begin().expect("nobody else writes");
            for (update, _) in &group {
                writer.write(&update.id, &update.title).expect("the piece is there");
            }
            writer.commit().expect("there is room");
            for (_, answer) in group {
                let _ = answer.send(());
            }
        }
    });
    let router = Router::new().route("/content-pieces", put(handle)).with_state(queue);
    super::serve(address, router)
}

async fn handle(State(queue): State<mpsc::Sender<QueuedUpdate>>, body: Bytes) -> StatusCode {
    let Ok(update) = serde_json::from_slice(&body) else { return StatusCode::BAD_REQUEST };
    let (answer, answered) = oneshot::channel();
    if queue.send((update, answer)).is_err() || answered.await.is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    StatusCode::NO_CONTENT
}
