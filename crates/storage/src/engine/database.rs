//! A database of either engine, and its named transactions.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use galley_domain::{OrderKey, Timestamp, WorkspaceId};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::engine::change_tracking::{LastChange, Moment};
use crate::engine::commit_signal::CommitSignal;
use crate::engine::error::{self, Error, Failure, Result};
use crate::engine::heartbeat::Heartbeat;
use crate::engine::migrate;
use crate::engine::options::{DatabaseUrl, Options};
use crate::engine::postgres::Postgres;
use crate::engine::postgres::timeouts::{LOOKUP_TIMEOUT, READ_TIMEOUT, ResponseTimeout};
use crate::engine::sqlite::Sqlite;
use crate::engine::transaction::{Tx, WriteTx};
use crate::engine::write_pressure::Pressure;
use crate::tables::order_spread_rows::note_if_long;

/// An open database. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Database {
    engine: Arc<Engine>,
    commit_signal: CommitSignal,
    pressure: Arc<Pressure>,
    program_version: &'static str,
}

/// The engine of a database.
#[derive(Debug)]
pub(crate) enum Engine {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

/// How long work in the background leaves the database to others at the most, while there are many writes.
const REST_MAX: Duration = Duration::from_millis(20);

/// How often a write is run again when concurrent ones come in between.
const TRIES: u32 = 50;

impl Database {
    /// Opens the database, makes it where it is not there, and brings its schema up to date.
    ///
    /// Refuses a schema that this program is too old for, a PostgreSQL server that doesn't sync,
    /// and, for a server, a SQLite file that another one serves.
    pub async fn open(options: Options) -> Result<Self> {
        let commit_signal = CommitSignal::default();
        let program_version = options.program_version;
        let engine = match &options.url {
            DatabaseUrl::Sqlite(_) if options.replica_url.is_some() => {
                return Err(Error::Settings("only PostgreSQL has replicas".to_owned()));
            }
            DatabaseUrl::Sqlite(path) => {
                Engine::Sqlite(Sqlite::open(path, &options, commit_signal.clone())?)
            }
            DatabaseUrl::Postgres(url) => {
                Engine::Postgres(Box::new(Postgres::open(url, &options).await?))
            }
        };
        let engine = Arc::new(engine);
        Ok(Self { engine, commit_signal, pressure: Arc::default(), program_version })
    }

    pub(crate) fn engine_parts(&self) -> &Engine {
        &self.engine
    }

    /// Runs `operation` in a transaction that reads. It may be run twice.
    ///
    /// On SQLite it runs on the calling thread as long as it is quick, and then again on a thread
    /// of its own.
    pub async fn read<T, E, F>(&self, name: &'static str, operation: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        match &*self.engine {
            Engine::Sqlite(sqlite) => match sqlite.read_inline(name, &operation) {
                Err(error) if matches!(error.storage_error(), Some(Error::TimedOut)) => {
                    sqlite.read_on_thread(name, operation).await
                }
                result => result,
            },
            Engine::Postgres(postgres) => {
                let session = postgres.reader().await?;
                let tx = session.tx();
                let read = timeout(READ_TIMEOUT, operation(&tx)).await;
                let result = read.unwrap_or_else(|_| {
                    tracing::debug!(operation = name, "took too long");
                    Err(ResponseTimeout::error().into())
                });
                if tx.has_rest() || error::is_unavailable(&result) {
                    // It may still be waited for, there.
                    session.discard();
                } else {
                    session.release();
                }
                result
            }
        }
    }

    /// Like [`Database::read`], for one row by its key: on PostgreSQL those who read so share a connection.
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
                match timeout(LOOKUP_TIMEOUT, operation(&session.tx())).await {
                    Ok(result) => result,
                    Err(_) => {
                        // Nobody else is to wait for it.
                        postgres.discard_shared(session).await;
                        Err(ResponseTimeout::error().into())
                    }
                }
            }
        }
    }

    /// Like [`Database::read`], for what may be of a while ago: of a standby, if there is one that is no more than `age_max`
    /// behind. Says then how old what was read is at the most.
    ///
    /// An error is always of the database itself.
    pub async fn read_aged<T, E, F>(
        &self,
        name: &'static str,
        age_max: Duration,
        operation: F,
    ) -> Result<(T, Option<Duration>), E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        if let Engine::Postgres(postgres) = &*self.engine
            && let Some((value, age)) = postgres.read_replica(age_max, &operation).await
        {
            return Ok((value, Some(age)));
        }
        self.read(name, operation).await.map(|value| (value, None))
    }

    /// Whether [`Database::read_aged`] has somewhere else to read.
    pub fn has_replica(&self) -> bool {
        match &*self.engine {
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.has_replica(),
        }
    }

    /// Like [`Database::read`], for what is known to take long: on SQLite it goes to a thread of
    /// its own at once.
    pub async fn read_much<T, E, F>(&self, name: &'static str, operation: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        match &*self.engine {
            Engine::Sqlite(sqlite) => sqlite.read_on_thread(name, operation).await,
            Engine::Postgres(_) => self.read(name, operation).await,
        }
    }

    /// Runs `operation` in a transaction that writes; when this returns `Ok`, it is on disk.
    ///
    /// The closure may run more than once, and awaits nothing but the transaction. On an error
    /// nothing of it is kept. Dropping the future doesn't undo a write that is under way on SQLite;
    /// on PostgreSQL it does, so whoever must finish spawns it.
    pub async fn write<T, E, F>(&self, name: &'static str, operation: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let _counted = self.pressure.count();
        let result = self.write_uncounted(name, operation, None).await;
        if let Some(Error::Crowded(workspace, around)) =
            result.as_ref().err().and_then(Failure::storage_error)
        {
            self.note_crowded(*workspace, around.clone()).await;
        }
        result
    }

    /// Notes a place where no key can be chosen, as the transaction that found it was rolled back.
    async fn note_crowded(&self, workspace: WorkspaceId, around: OrderKey) {
        let note = async move |tx: &WriteTx<'_>| note_if_long(tx, workspace, &around).await;
        if let Err(error) = self.write_uncounted::<_, Error, _>("ordering.note", note, None).await {
            tracing::debug!(%error, "a crowded place could not be noted");
        }
    }

    /// Like [`Database::write`], for what nobody waits for: between its steps it asks whether it is in the
    /// way ([`WriteTx::is_in_the_way`]), and does the rest another time.
    pub async fn write_in_background<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let started = Instant::now();
        let was_in_the_way = Arc::new(AtomicBool::new(false));
        let was = Arc::clone(&was_in_the_way);
        let operation = async move |tx: &WriteTx<'_>| {
            let result = operation(tx).await;
            was.store(tx.is_in_the_way(), Ordering::Relaxed);
            result
        };
        let result = self.write_uncounted(name, operation, Some(&self.pressure)).await;
        if was_in_the_way.load(Ordering::Relaxed) {
            // Those who write get as much time as this took.
            tokio::time::sleep(started.elapsed().min(REST_MAX)).await;
        }
        result
    }

    async fn write_uncounted<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
        pressure: Option<&Arc<Pressure>>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let postgres = match &*self.engine {
            Engine::Sqlite(sqlite) => {
                return sqlite.write(name, operation, pressure.cloned()).await;
            }
            Engine::Postgres(postgres) => postgres,
        };
        let started = Instant::now();
        let mut tries = 1;
        loop {
            // What nobody waits for can wait, and what has waited before goes on.
            let is_patient = pressure.is_some() || tries > 1;
            let session = postgres.writer(is_patient).await?;
            let slice = pressure.map(Pressure::slice_beside_others);
            let (result, has_news) = {
                let tx = WriteTx::new(session.tx(), slice.as_ref());
                let result = match operation(&tx).await {
                    Ok(value) => tx.change_generations().await.map(|()| value).map_err(E::from),
                    Err(error) => Err(error),
                };
                (result, tx.has_news())
            };
            let error = match session.finish(result).await {
                Ok(value) => {
                    if has_news {
                        self.commit_signal.notify();
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            let again = error.storage_error().is_some_and(Error::is_worth_another_try);
            if !again || tries == TRIES || started.elapsed() > postgres.write_wait_max() {
                return Err(error);
            }
            tracing::debug!(operation = name, tries, "a concurrent write came in between");
            tokio::time::sleep(postgres.pause_before_try(tries)).await;
            tries += 1;
        }
    }

    /// The present, if it can be told without asking the database: on SQLite.
    ///
    /// With it an answer can be remembered that was read after it, and given again for as long as
    /// [`Database::last_change`] is before it. What may be remembered shows pieces, groups, tags, variants, members'
    /// profiles, roles and what a token may do; not when tokens were last used, invites, events, webhooks or
    /// deliveries.
    pub fn moment(&self) -> Option<Moment> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => sqlite.moment(),
            Engine::Postgres(_) => None,
        }
    }

    /// Whether other programs may write without this one being told, so that only the database itself knows whether
    /// something was changed ([`crate::tables::tokens::find_by_hash_with_generation`]): on PostgreSQL.
    pub fn has_generations(&self) -> bool {
        matches!(*self.engine, Engine::Postgres(_))
    }

    /// When a workspace was last changed; nothing, where [`Database::moment`] tells nothing.
    pub fn last_change(&self, workspace: WorkspaceId) -> Option<LastChange> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => Some(sqlite.last_change(workspace)),
            Engine::Postgres(_) => None,
        }
    }

    /// The SQLite file.
    pub fn path(&self) -> Option<&Path> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => Some(sqlite.path()),
            Engine::Postgres(_) => None,
        }
    }

    /// Whether a server is at work on it.
    pub async fn is_served(&self) -> Result<bool> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite.is_served()),
            Engine::Postgres(postgres) => postgres.is_served().await,
        }
    }

    /// Changes whenever this program has committed something that others wait for: an event, or a
    /// delivery.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.commit_signal.subscribe()
    }

    /// Fails with [`Error::Detached`] once a file of a SQLite database was deleted or replaced while it is open.
    pub fn check_files(&self) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite(sqlite) => sqlite.check_files(),
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// Whether the database answers, and is still one that this program may use: a newer one may have changed it.
    pub async fn ping(&self) -> Result<()> {
        self.check_files()?;
        let unknown = async |tx: &Tx<'_>| migrate::unknown(tx).await;
        for (oldest_program, name) in self.read_row::<_, Error, _>("ping", unknown).await? {
            migrate::refuse_too_old(self.program_version, &oldest_program, &name)?;
        }
        // Others don't go over the same connection.
        self.read("ping", async |tx: &Tx<'_>| tx.exists("SELECT 1", &[]).await.map(drop)).await
    }

    /// Writes a heartbeat of a session that sends deliveries, and returns which others are dead. On
    /// SQLite there is one, and nothing is written.
    pub async fn heartbeat(&self, session: &str, node: &str) -> Result<Heartbeat> {
        match &*self.engine {
            Engine::Sqlite(_) => Ok(Heartbeat::default()),
            Engine::Postgres(postgres) => postgres.heartbeat(session, node).await,
        }
    }

    /// Returns whether the connection of the last heartbeat is still there. Without it others may take
    /// the session for dead.
    pub fn has_heartbeat_connection(&self) -> bool {
        match &*self.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(postgres) => postgres.has_heartbeat_connection(),
        }
    }

    /// What time it is for all who share the database; nothing, where this machine's clock counts: on SQLite.
    pub async fn clock(&self) -> Result<Option<Timestamp>> {
        if !self.has_generations() {
            return Ok(None);
        }
        let read = async |tx: &Tx<'_>| {
            let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            tx.get(sql, &[], |row| row.time(0)).await
        };
        self.read_row::<_, Error, _>("clock", read).await.map(Some)
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        match &*self.engine {
            Engine::Sqlite(_) => "SQLite",
            Engine::Postgres(_) => "PostgreSQL",
        }
    }

    /// Waits for the writes under way and leaves the file tidy. Later calls fail.
    pub async fn close(&self) {
        match &*self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}
