//! A database of either engine, and its named transactions. Its writes are in
//! [`crate::engine::database_writes`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use galley_domain::{Timestamp, WorkspaceId};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{Instrument, Span};

use crate::engine::change_tracking::{DataVersion, LastModified};
use crate::engine::erased::erase_read;
use crate::engine::error::{Error, Failure, Result};
use crate::engine::full_text::FullTextEngine;
use crate::engine::heartbeat::Heartbeat;
use crate::engine::migrations;
use crate::engine::options::{DatabaseUrl, Options};
use crate::engine::poll_once::finish_at_once;
use crate::engine::postgres::Postgres;
use crate::engine::postgres::timeouts::{LOOKUP_TIMEOUT, READ_TIMEOUT, ResponseTimeout};
use crate::engine::sqlite::{Readers, Sqlite};
use crate::engine::trace;
use crate::engine::transaction::Tx;
use crate::engine::write_pressure::WritePressure;

/// An open database. Clones share it.
#[derive(Debug, Clone)]
pub struct Database {
    pub(super) engine: Arc<Engine>,
    /// Changes with each commit that workers or streams wait for.
    pub(super) commit_signal: watch::Sender<u64>,
    pub(super) pressure: Arc<WritePressure>,
    program_version: &'static str,
}

/// The engine of a database.
#[derive(Debug)]
pub(crate) enum Engine {
    Sqlite(Sqlite),
    Postgres(Arc<Postgres>),
}

/// Returns true if a read exceeded its time limit.
fn has_timed_out<T, E: Failure>(result: &Result<T, E>) -> bool {
    let error = result.as_ref().err().and_then(Failure::storage_error);
    matches!(error, Some(Error::TimedOut))
}

/// Returns the error of a read without a response.
fn timed_out(name: &'static str) -> Error {
    tracing::debug!(operation = name, "a read timed out");
    ResponseTimeout::error()
}

impl Database {
    /// Opens the database, creates it if it doesn't exist, and brings its schema up to date.
    ///
    /// Rejects a schema that this program is too old for and a PostgreSQL server that doesn't sync.
    /// For a server, it also rejects a SQLite file that another server has open.
    pub fn open(options: Options) -> BoxFuture<'static, Result<Self>> {
        // Boxed, so that it is compiled in this crate.
        Box::pin(Self::open_engine(options))
    }

    async fn open_engine(options: Options) -> Result<Self> {
        let commit_signal = watch::Sender::default();
        let program_version = options.program_version;
        let engine = match &options.url {
            DatabaseUrl::Sqlite(_) if options.replica_url.is_some() => {
                return Err(Error::Settings("only PostgreSQL has replicas".to_owned()));
            }
            DatabaseUrl::Sqlite(path) => {
                Engine::Sqlite(Sqlite::open(path, &options, commit_signal.clone())?)
            }
            DatabaseUrl::Postgres(url) => {
                Engine::Postgres(Arc::new(Postgres::open(url, &options).await?))
            }
        };
        let engine = Arc::new(engine);
        Ok(Self { engine, commit_signal, pressure: Arc::default(), program_version })
    }

    pub(crate) fn engine_parts(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn span(&self, name: &'static str) -> Span {
        let engine = match &*self.engine {
            Engine::Sqlite(_) => "sqlite",
            Engine::Postgres(_) => "postgresql",
        };
        trace::transaction(engine, name)
    }

    // Each `async fn` that a closure passes through holds it twice, so the future's size would
    // double at each level, and it is copied several times. So these functions box the closure.

    /// Runs `operation` in a read transaction. It may run twice.
    ///
    /// On SQLite it runs on the calling thread within a short time limit. Past that, it runs again
    /// on a thread of its own.
    pub fn read<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let operation = Box::new(operation);
        async move {
            match &*self.engine {
                Engine::Sqlite(sqlite) => {
                    let mut result = None;
                    let mut read = |tx: &Tx<'_>| {
                        result = Some(finish_at_once(name, operation(tx)));
                    };
                    sqlite.readers.run_inline(&mut read)?;
                    match result {
                        Some(result) if !has_timed_out(&result) => result,
                        _ => Self::read_on_thread(sqlite, name, operation).await,
                    }
                }
                Engine::Postgres(postgres) => {
                    let session = postgres.reader().await?;
                    let (result, has_unread_rows) = {
                        let tx = session.tx();
                        let read = timeout(READ_TIMEOUT, Box::pin(operation(&tx))).await;
                        (read.unwrap_or_else(|_| Err(timed_out(name).into())), tx.has_unread_rows())
                    };
                    let error = result.as_ref().err().and_then(Failure::storage_error);
                    session.end(has_unread_rows, error);
                    result
                }
            }
        }
        .instrument(self.span(name))
    }

    /// Like [`Database::read`], for one row by its key. On PostgreSQL these lookups share a
    /// connection.
    pub async fn read_row<T, E, F>(&self, name: &'static str, operation: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        match &*self.engine {
            Engine::Sqlite(_) => self.read(name, operation).await,
            Engine::Postgres(postgres) => {
                let session = postgres.shared_reader().await?;
                let tx = session.tx();
                let read = timeout(LOOKUP_TIMEOUT, Box::pin(operation(&tx)));
                match read.instrument(self.span(name)).await {
                    Ok(result) => result,
                    Err(_) => {
                        // Later lookups must not wait behind it.
                        postgres.discard_shared(session).await;
                        Err(ResponseTimeout::error().into())
                    }
                }
            }
        }
    }

    /// Like [`Database::read`], but allows stale data: reads from a standby that is at most
    /// `max_staleness` behind, if there is one. `None` allows no stale data. Also returns an upper
    /// bound of the data's age, or `None` if it was read from the primary.
    ///
    /// An error always comes from the primary.
    pub fn read_stale<T, E, F>(
        &self,
        name: &'static str,
        max_staleness: Option<Duration>,
        operation: F,
    ) -> impl Future<Output = Result<(T, Option<Duration>), E>>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let operation = Box::new(operation);
        async move {
            if let Some(max_staleness) = max_staleness
                && let Engine::Postgres(postgres) = &*self.engine
                && let Some(replica) = &postgres.replica
                && let Some((value, age)) = replica.read(max_staleness, &operation).await
            {
                return Ok((value, Some(age)));
            }
            self.read(name, operation).await.map(|value| (value, None))
        }
    }

    /// Returns true if [`Database::read_stale`] may use a standby.
    pub fn has_replica(&self) -> bool {
        match &*self.engine {
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.replica.is_some(),
        }
    }

    /// Like [`Database::read`], for reads that are known to take long. On SQLite they run on a
    /// thread of their own from the start.
    pub fn read_long<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let operation = Box::new(operation);
        async move {
            match &*self.engine {
                Engine::Sqlite(sqlite) => {
                    let read = Self::read_on_thread(sqlite, name, operation);
                    read.instrument(self.span(name)).await
                }
                Engine::Postgres(_) => self.read(name, operation).await,
            }
        }
    }

    async fn read_on_thread<T, E, F>(
        sqlite: &Sqlite,
        name: &'static str,
        operation: F,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let (read, result) = erase_read(name, operation);
        Readers::run_on_thread(&sqlite.readers, read).await?;
        result.take()
    }

    /// Returns the current data version if that takes no query: on SQLite.
    ///
    /// A response that is read after it may be cached. It is valid as long as
    /// [`Database::last_modified`] is no later. Cacheable responses show pieces, groups, tags,
    /// variants, members' profiles, roles and the permissions of tokens. They don't show when
    /// tokens were last used, invites, events, webhooks or deliveries.
    pub fn data_version(&self) -> Option<DataVersion> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => sqlite.commits.data_version(),
            Engine::Postgres(_) => None,
        }
    }

    /// Returns true if other programs may write without notifying this one: on PostgreSQL. Changes
    /// are then detected by a query of the database
    /// ([`crate::tables::authentication`]).
    pub fn has_generations(&self) -> bool {
        matches!(*self.engine, Engine::Postgres(_))
    }

    /// Returns when a workspace was last modified, or `None` where [`Database::data_version`]
    /// returns none.
    pub fn last_modified(&self, workspace: WorkspaceId) -> Option<LastModified> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => Some(sqlite.commits.last_modified(workspace)),
            Engine::Postgres(_) => None,
        }
    }

    /// Returns the path of the SQLite file.
    pub fn path(&self) -> Option<&Path> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => Some(&sqlite.path),
            Engine::Postgres(_) => None,
        }
    }

    /// Returns true if a server has the database open.
    pub async fn is_served(&self) -> Result<bool> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite.is_served()),
            Engine::Postgres(postgres) => postgres.is_served().await,
        }
    }

    /// Returns a receiver that changes when this program has committed an event or a delivery.
    pub fn subscribe_to_commits(&self) -> watch::Receiver<u64> {
        self.commit_signal.subscribe()
    }

    /// Fails with [`Error::Detached`] once a file of an open SQLite database was deleted or
    /// replaced.
    pub fn check_files(&self) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => sqlite.watch.check(),
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// Fails if the database doesn't respond, or if a newer program has changed its schema so that
    /// this one must not use it.
    pub async fn ping(&self) -> Result<()> {
        self.check_files()?;
        let unknown = async |tx: &Tx<'_>| migrations::unknown(tx).await;
        for (oldest_program, name) in self.read_row::<_, Error, _>("ping", unknown).await? {
            migrations::reject_too_old(self.program_version, &oldest_program, &name)?;
        }
        // `read_row` uses the shared connection, so this checks one of the pool as well.
        self.read("ping", async |tx: &Tx<'_>| tx.exists("SELECT 1", &[]).await.map(drop)).await
    }

    /// Writes a heartbeat of a session that sends deliveries, and returns the other sessions that
    /// are dead. SQLite has one session only, so nothing is written there.
    pub async fn heartbeat(&self, session: &str, node: &str) -> Result<Heartbeat> {
        match &*self.engine {
            Engine::Sqlite(_) => Ok(Heartbeat::default()),
            Engine::Postgres(postgres) => {
                postgres.heartbeat.write_heartbeat(&postgres.pool, session, node).await
            }
        }
    }

    /// Returns true if the connection of the last heartbeat is open. Without it, other nodes may
    /// declare the session dead.
    pub fn has_heartbeat_connection(&self) -> bool {
        match &*self.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(postgres) => postgres.heartbeat.is_connected(),
        }
    }

    /// Returns the database's time, which all nodes share, on PostgreSQL. Returns `None` on SQLite,
    /// where this machine's clock is used.
    pub async fn clock(&self) -> Result<Option<Timestamp>> {
        if !self.has_generations() {
            return Ok(None);
        }
        let read = async |tx: &Tx<'_>| {
            let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            tx.get(sql, &[], |row| row.get(0)).await
        };
        self.read_row::<_, Error, _>("clock", read).await.map(Some)
    }

    /// Returns the engine of full-text searches.
    pub fn full_text_engine(&self) -> FullTextEngine {
        match &*self.engine {
            Engine::Sqlite(_) => FullTextEngine::Fts5,
            Engine::Postgres(_) => FullTextEngine::Tsvector,
        }
    }

    /// Returns the engine's name.
    pub fn engine(&self) -> &'static str {
        match &*self.engine {
            Engine::Sqlite(_) => "SQLite",
            Engine::Postgres(_) => "PostgreSQL",
        }
    }

    /// Closes the database. On SQLite, the queued writes are completed first. Later calls fail.
    pub async fn close(&self) {
        match &*self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}
