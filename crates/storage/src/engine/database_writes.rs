//! The writes of a database: their attempts, groups and priorities.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_domain::{OrderKey, WorkspaceId};
use tracing::Instrument;

use crate::engine::database::{Database, Engine};
use crate::engine::erased::erase_write;
use crate::engine::error::{Error, Failure, Result};
use crate::engine::group_commit::{GroupedResult, run_alone, run_in_group};
use crate::engine::postgres::write_groups::WriteKey;
use crate::engine::postgres::{Postgres, WriteKind, WriteSession};
use crate::engine::write_pressure::WritePressure;
use crate::engine::write_transaction::WriteTx;
use crate::tables::ordering::note_if_long;

/// The share of time that background work takes while requests write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundShare {
    /// As much as other writers.
    Equal,
    /// A small part, while writes wait as at their full rate.
    Small,
}

/// The limit of the pause after background work under high write pressure.
const BACKGROUND_PAUSE_LIMIT: Duration = Duration::from_millis(20);

/// The number of waiting writes from which on a small share is a small part, and the pause after
/// each transaction as a multiple of its time. Paced clients have one or two waiting writes.
const WAITING_WRITES: usize = 4;
const SMALL_SHARE_PAUSE: u32 = 18;
const SMALL_SHARE_PAUSE_LIMIT: Duration = Duration::from_millis(500);

/// The limit of attempts of a write that conflicts with concurrent writes.
const ATTEMPT_LIMIT: u32 = 50;

/// The attempts of a write on PostgreSQL.
struct WriteAttempts {
    name: &'static str,
    kind: WriteKind,
    started: Instant,
    count: u32,
}

impl WriteAttempts {
    fn new(name: &'static str, kind: WriteKind) -> Self {
        Self { name, kind, started: Instant::now(), count: 0 }
    }

    /// Begins the transaction of the next attempt.
    async fn begin(&mut self, postgres: &Postgres) -> Result<WriteSession> {
        self.count += 1;
        let kind = if self.count == 1 { self.kind } else { WriteKind::Admitted };
        postgres.writer(kind).await
    }

    /// Waits before the next attempt. Returns false if there were too many.
    async fn back_off(&self, postgres: &Postgres) -> bool {
        if self.count == ATTEMPT_LIMIT || self.started.elapsed() > postgres.write_timeout {
            return false;
        }
        tracing::debug!(
            operation = self.name,
            attempts = self.count,
            "a conflict with a concurrent write: the transaction is retried"
        );
        tokio::time::sleep(postgres.retry_backoff(self.count)).await;
        true
    }
}

impl Database {
    // These functions box the closure, for the same reason as reads do (`database.rs`).

    /// Runs `operation` in a write transaction. When this returns `Ok`, its changes are durable.
    ///
    /// The closure may run more than once, and must await nothing but the transaction. On an error,
    /// all its changes are rolled back.
    ///
    /// Dropping the future doesn't undo a write in progress on SQLite. On PostgreSQL it does, so a
    /// caller whose write must finish spawns it.
    pub fn write<T, E, F>(
        &self,
        name: &'static str,
        operation: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        self.write_as(WriteKind::Foreground, name, Box::new(operation))
    }

    async fn write_as<T, E, F>(
        &self,
        kind: WriteKind,
        name: &'static str,
        operation: Box<F>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let _counted = self.pressure.count();
        let write = self.write_uncounted(kind, name, operation, None);
        let result = write.instrument(self.span(name)).await;
        if let Some(Error::KeySpaceExhausted(workspace, around)) =
            result.as_ref().err().and_then(Failure::storage_error)
        {
            self.record_long_key(*workspace, around.clone()).await;
        }
        result
    }

    /// Like [`Database::write`], for short writes that many clients send. On PostgreSQL, such
    /// writes share transactions, except those with a key in common. Without `keys`, it is the
    /// same.
    ///
    /// The keys must name all rows that the closure changes, or that its result depends on and
    /// other such writes change.
    pub fn write_grouped<T, E, F>(
        &self,
        name: &'static str,
        keys: Option<Vec<WriteKey>>,
        operation: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let operation = Box::new(operation);
        async move {
            let (Engine::Postgres(postgres), Some(keys)) = (&*self.engine, keys) else {
                return self.write_as(WriteKind::Foreground, name, operation).await;
            };
            let counted = self.pressure.count();
            let write = run_in_group(postgres, &self.commit_signal, &keys, &*operation);
            let result = write.instrument(self.span(name)).await;
            drop(counted);
            match result {
                GroupedResult::Done(result) => result,
                GroupedResult::MustRunAlone => {
                    self.write_as(WriteKind::Admitted, name, operation).await
                }
            }
        }
    }

    /// Stores a place where no order key is free. The transaction that found it was rolled back, so
    /// this takes another one.
    async fn record_long_key(&self, workspace: WorkspaceId, around: OrderKey) {
        let note = async move |tx: &WriteTx<'_>| note_if_long(tx, workspace, &around).await;
        let noted = self.write_uncounted(WriteKind::Foreground, "ordering.note", note, None);
        if let Err::<(), Error>(error) = noted.await {
            tracing::debug!(%error, "a long order key could not be recorded");
        }
    }

    /// Like [`Database::write`], with background priority. Between its steps the closure checks
    /// whether it should yield ([`WriteTx::should_yield`]), and then leaves the rest to a later
    /// transaction.
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
        self.write_with_share(name, BackgroundShare::Equal, operation).await
    }

    /// Like [`Database::write_in_background`], with a share of the time for writes.
    pub async fn write_with_share<T, E, F>(
        &self,
        name: &'static str,
        share: BackgroundShare,
        operation: F,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let started = Instant::now();
        let contention = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let seen = Arc::clone(&contention);
        let operation = async move |tx: &WriteTx<'_>| {
            let result = operation(tx).await;
            seen.0.store(tx.should_yield(), Ordering::Relaxed);
            seen.1.store(tx.waiting_writes(), Ordering::Relaxed);
            result
        };
        let result =
            self.write_uncounted(WriteKind::Admitted, name, operation, Some(&self.pressure)).await;
        let (had_to_yield, waiting_writes) = &*contention;
        let took = started.elapsed();
        if share == BackgroundShare::Small
            && waiting_writes.load(Ordering::Relaxed) >= WAITING_WRITES
        {
            let pause = took * SMALL_SHARE_PAUSE;
            tokio::time::sleep(pause.min(SMALL_SHARE_PAUSE_LIMIT)).await;
        } else if had_to_yield.load(Ordering::Relaxed) {
            // Leaves as much time to other writers as this transaction took.
            tokio::time::sleep(took.min(BACKGROUND_PAUSE_LIMIT)).await;
        }
        result
    }

    async fn write_uncounted<T, E, F>(
        &self,
        kind: WriteKind,
        name: &'static str,
        operation: F,
        pressure: Option<&Arc<WritePressure>>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let postgres = match &*self.engine {
            Engine::Sqlite(sqlite) => {
                let (write, result) = erase_write(name, operation);
                let log = sqlite.log.clone();
                let ended = sqlite.writer.write(name, write, pressure.cloned(), log).await;
                return result.take_after(ended);
            }
            Engine::Postgres(postgres) => postgres,
        };
        let mut attempts = WriteAttempts::new(name, kind);
        loop {
            let session = attempts.begin(postgres).await?;
            let slice = pressure.map(WritePressure::concurrent_slice);
            let error = match run_alone(session, slice.as_ref(), &operation).await {
                Ok((value, must_notify)) => {
                    if must_notify {
                        self.commit_signal.send_modify(|count| *count += 1);
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            let is_retryable = error.storage_error().is_some_and(Error::is_retryable);
            if !(is_retryable && attempts.back_off(postgres).await) {
                return Err(error);
            }
        }
    }
}
