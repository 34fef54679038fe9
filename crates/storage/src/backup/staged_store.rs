//! A staged store: it is filled while empty, and becomes visible only when it is complete.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::tables;
use crate::engine::{
    Cause, DatabaseUrl, Error, Failure, Options, Result, Tx, WriteTx, migrate,
    poll_once::finish_at_once,
    postgres::{Postgres, TransactionConnection},
    sqlite::{ServerLock, StagedFile, open_reader},
};

/// A staged store. If it is dropped before [`StagedStore::finish`], everything in it is discarded.
pub struct StagedStore(Arc<StagedEngine>);

enum StagedEngine {
    Sqlite(StagedStoreFile),
    /// A connection in a transaction.
    Postgres(TransactionConnection),
}

/// A staged file. Its connection is closed before it is published.
struct StagedStoreFile {
    connection: Mutex<Option<Connection>>,
    file: Mutex<StagedFile>,
    /// The lock of the database that the file will be; `None` for a backup.
    lock: Option<ServerLock>,
}

impl StagedStore {
    /// Opens the store that the options name, which must be empty. No server can start on it until
    /// this is finished or dropped.
    pub async fn open(options: &Options) -> Result<Self> {
        match &options.url {
            DatabaseUrl::Sqlite(path) => {
                let lock = ServerLock::take(path)?;
                reject_rows(path)?;
                Self::file(path, Some(lock), options)
            }
            DatabaseUrl::Postgres(url) => {
                let postgres = Postgres::open(url, options).await?;
                Self::postgres(postgres.transaction_connection().await?).await
            }
        }
    }

    /// Creates a staged backup.
    pub(super) fn backup(path: &Path, options: &Options) -> Result<Self> {
        Self::file(path, None, options)
    }

    /// Creates a staged file that will replace the one at `path`.
    fn file(path: &Path, lock: Option<ServerLock>, options: &Options) -> Result<Self> {
        let (file, mut connection) = StagedFile::open(path)?;
        migrate::bring_up_to_date(&mut connection, options)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let connection = Mutex::new(Some(connection));
        let file = Mutex::new(file);
        Ok(Self(Arc::new(StagedEngine::Sqlite(StagedStoreFile { connection, file, lock }))))
    }

    async fn postgres(client: TransactionConnection) -> Result<Self> {
        // The locks block a server that starts meanwhile, and another process that fills the store.
        client
            .batch_execute(
                "BEGIN;
                 SET LOCAL statement_timeout = 0;
                 SET LOCAL idle_in_transaction_session_timeout = 0;
                 LOCK TABLE workspaces, users, key_check IN SHARE ROW EXCLUSIVE MODE;",
            )
            .await?;
        let store = Self(Arc::new(StagedEngine::Postgres(client)));
        for table in tables::all() {
            let is_empty = async |tx: &WriteTx<'_>| table.is_empty(tx).await;
            if !store.write::<_, Error, _>("staged_store.is_empty", is_empty).await? {
                return Err(not_empty());
            }
        }
        Ok(store)
    }

    /// Runs `operation` in the store's transaction, for writes and reads. The closure must await
    /// nothing but the transaction.
    pub async fn write<T, E, F>(&self, name: &'static str, operation: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        if let StagedEngine::Postgres(client) = &*self.0 {
            return operation(&WriteTx::new(Tx::postgres(client, None), None)).await;
        }
        let engine = Arc::clone(&self.0);
        let run = move || {
            let StagedEngine::Sqlite(file) = &*engine else { unreachable!("it is SQLite's") };
            let mut connection = file.connection.lock();
            let connection = connection.as_mut().expect("there until it is finished");
            finish_at_once(name, operation(&WriteTx::new(Tx::sqlite(connection, None), None)))
        };
        tokio::task::spawn_blocking(run).await.unwrap_or_else(|_| Err(Error::Panicked.into()))
    }

    /// Publishes the store. From then on it is complete and durable.
    pub async fn finish(self) -> Result<()> {
        if let StagedEngine::Postgres(client) = &*self.0 {
            return Ok(client.batch_execute("COMMIT").await?);
        }
        let engine = Arc::clone(&self.0);
        let run = move || {
            let StagedEngine::Sqlite(file) = &*engine else { unreachable!("it is SQLite's") };
            file.finish()
        };
        tokio::task::spawn_blocking(run).await.unwrap_or(Err(Error::Panicked))
    }
}

impl StagedStoreFile {
    fn finish(&self) -> Result<()> {
        let connection = self.connection.lock().take();
        let connection = connection.expect("it is finished once");
        connection.execute_batch("COMMIT")?;
        let broken = connection.prepare("PRAGMA foreign_key_check")?.exists([])?;
        if broken {
            return Err(Error::corrupt("rows refer to others that do not exist"));
        }
        drop(connection);
        let mut file = self.file.lock();
        if self.lock.is_none() {
            file.seal()?;
        }
        file.publish()
    }
}

/// Rejects a SQLite file that contains rows.
pub(super) fn reject_rows(path: &Path) -> Result<()> {
    if !path.try_exists().map_err(|error| Error::Unavailable(Cause::new(error)))? {
        return Ok(());
    }
    let connection = open_reader(path)?;
    for table in tables::of(&connection)? {
        if connection.prepare(&format!("SELECT 1 FROM {}", table.name))?.exists([])? {
            return Err(not_empty());
        }
    }
    Ok(())
}

fn not_empty() -> Error {
    Error::Settings("the target store is not empty: name another one".to_owned())
}
