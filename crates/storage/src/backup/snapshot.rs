//! A snapshot of the store, for reading all of it.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::engine::{
    Error, Failure, Result, Tx,
    database::{Database, Engine},
    poll_once::finish_at_once,
    postgres::TransactionConnection,
    sqlite::open_reader,
};

/// A snapshot of a store. Later writes don't affect it, however long it is read.
#[derive(Clone)]
pub struct Snapshot(Arc<SnapshotEngine>);

enum SnapshotEngine {
    /// A connection in a read transaction.
    Sqlite(Mutex<Connection>),
    /// A connection in a read transaction.
    Postgres(TransactionConnection),
}

impl Snapshot {
    /// Opens a snapshot of the SQLite file at this path, which is not changed.
    pub fn of_file(path: &Path) -> Result<Self> {
        let connection = open_reader(path)?;
        // The first read of the transaction fixes the snapshot.
        connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        Ok(Self(Arc::new(SnapshotEngine::Sqlite(Mutex::new(connection)))))
    }

    pub(crate) async fn of_postgres(client: TransactionConnection) -> Result<Self> {
        client
            .batch_execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
                 SET LOCAL statement_timeout = 0;
                 SET LOCAL idle_in_transaction_session_timeout = 0;
                 SELECT count(*) FROM schema_migrations;",
            )
            .await?;
        Ok(Self(Arc::new(SnapshotEngine::Postgres(client))))
    }

    /// Runs `operation` on the snapshot. The closure must await nothing but the transaction.
    pub async fn read<T, E, F>(&self, name: &'static str, operation: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        if let SnapshotEngine::Postgres(client) = &*self.0 {
            return operation(&Tx::postgres(client, None)).await;
        }
        let engine = Arc::clone(&self.0);
        let run = move || {
            let SnapshotEngine::Sqlite(connection) = &*engine else {
                unreachable!("it is SQLite's")
            };
            let mut connection = connection.lock();
            finish_at_once(name, operation(&Tx::sqlite(&mut connection, None)))
        };
        tokio::task::spawn_blocking(run).await.unwrap_or_else(|_| Err(Error::Panicked.into()))
    }
}

impl Database {
    /// Returns a snapshot of the whole store, which can be read for as long as that takes.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        match self.engine_parts() {
            Engine::Sqlite(sqlite) => {
                let snapshot = Snapshot::of_file(&sqlite.path)?;
                // Rejects a snapshot of any files but those that are open here.
                sqlite.watch.check()?;
                Ok(snapshot)
            }
            Engine::Postgres(postgres) => {
                Snapshot::of_postgres(postgres.transaction_connection().await?).await
            }
        }
    }
}
