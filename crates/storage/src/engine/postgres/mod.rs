//! The PostgreSQL engine: a connection pool, reads without a transaction, and a transaction for
//! each write.
//!
//! Each statement of a read sees all commits before its start, so data that must be consistent is
//! read by one statement. Writes run at READ COMMITTED. Where two could conflict, the operation
//! locks a row, or a unique index makes one of them retry.

pub(crate) mod connect;
mod heartbeat;
mod replica;
mod session;
mod shared_connection;
pub(crate) mod timeouts;
pub(crate) mod write_groups;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::engine::error::{Error, Result};
use crate::engine::migrate;
use crate::engine::options::Options;
use crate::engine::statement_log::StatementLog;
use galley_runtime::{AdmissionLimits, AdmissionQueue};
use heartbeat::HeartbeatConnection;
use replica::Replica;
use session::{PooledConnection, ReadSession};
pub(crate) use session::{TransactionConnection, WriteKind, WriteSession};
use shared_connection::SharedConnection;
use write_groups::WriteGroups;

/// The timeout of getting a connection, including opening one.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits of writes that wait for a connection.
const WRITER_LIMITS: AdmissionLimits =
    AdmissionLimits { timeout: CONNECTION_TIMEOUT, burst: 4_096, sustained: 128 };

/// Creates a pool of connections to the primary, of a database whose schema may be of any version.
pub(crate) fn inspection_pool(url: &str, options: &Options) -> Result<Pool> {
    connect::pool(url, options)
}

/// Creates a pool of connections to standbys, of a database whose schema may be of any version.
pub(crate) fn standby_pool(url: &str, options: &Options) -> Result<Pool> {
    connect::replica_pool(url, options, "SELECT 1")
}

/// A pool of connections to one PostgreSQL database.
#[derive(Debug)]
pub(crate) struct Postgres {
    pub(crate) pool: Pool,
    shared: SharedConnection,
    pub(crate) heartbeat: HeartbeatConnection,
    pub(crate) replica: Option<Replica>,
    log: Option<Arc<StatementLog>>,
    jitter: RandomState,
    times_waited: AtomicU64,
    /// The time limit for retries of a write.
    pub(crate) write_timeout: Duration,
    /// The permits of writes. There are fewer than connections, so that reads always find some.
    writers: Arc<Semaphore>,
    admission: AdmissionQueue,
    pub(crate) groups: WriteGroups,
    /// The writes that wait for their groups.
    pub(crate) group_admission: AdmissionQueue,
}

impl Postgres {
    pub(crate) async fn open(url: &str, options: &Options) -> Result<Self> {
        let pool = connect::pool(url, options)?;
        let client = pool.get().await?;
        connect::reject_unsynced(&client).await?;
        migrate::postgres(&client, options).await?;
        let replica = match &options.replica_url {
            Some(url) => Some(Replica::open(url, options, &pool).await?),
            None => None,
        };
        drop(client);
        let writers = (options.connections - options.connections / 4).max(1);
        Ok(Self {
            pool,
            replica,
            shared: SharedConnection::default(),
            heartbeat: HeartbeatConnection::default(),
            log: options.statement_log.clone(),
            jitter: RandomState::new(),
            times_waited: AtomicU64::new(0),
            write_timeout: options.write_timeout,
            writers: Arc::new(Semaphore::new(writers)),
            admission: AdmissionQueue::new(WRITER_LIMITS),
            groups: WriteGroups::default(),
            group_admission: AdmissionQueue::new(WRITER_LIMITS),
        })
    }

    /// Returns a connection for reads.
    pub(crate) async fn reader(&self) -> Result<ReadSession<PooledConnection>> {
        Ok(ReadSession::new(PooledConnection::new(self.get().await?), self.log.clone()))
    }

    async fn get(&self) -> Result<Object> {
        connect::get(&self.pool, CONNECTION_TIMEOUT).await
    }

    /// Returns the connection that single-row lookups share.
    pub(crate) async fn shared_reader(&self) -> Result<ReadSession<Arc<ClientWrapper>>> {
        Ok(ReadSession::new(self.shared.get(&self.pool).await?, self.log.clone()))
    }

    /// Returns a connection for a longer session.
    pub(crate) async fn transaction_connection(&self) -> Result<TransactionConnection> {
        Ok(TransactionConnection::new(self.get().await?))
    }

    /// Returns true if a server is connected to the database.
    pub(crate) async fn is_served(&self) -> Result<bool> {
        let sql = "SELECT 1 FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = $1 LIMIT 1";
        let found = self.get().await?.query_opt(sql, &[&connect::SERVER_NAME]).await?;
        Ok(found.is_some())
    }

    /// Discards the shared connection; the next lookup opens another one.
    pub(crate) async fn discard_shared(&self, session: ReadSession<Arc<ClientWrapper>>) {
        self.shared.discard(session.client()).await;
    }

    /// Begins a write transaction. One of the foreground fails with `Overloaded` if the admission
    /// queue is full.
    pub(crate) async fn writer(&self, kind: WriteKind) -> Result<WriteSession> {
        let permit = Arc::clone(&self.writers).acquire_owned();
        let admitted = if kind == WriteKind::Foreground {
            self.admission.wait(permit).await
        } else {
            timeout(CONNECTION_TIMEOUT, permit).await.ok()
        };
        let admitted = admitted.and_then(std::result::Result::ok);
        let admitted = admitted.ok_or(Error::Overloaded)?;
        WriteSession::begin(self.get().await?, admitted, self.log.clone(), kind).await
    }

    /// Returns the back-off before a retry. Its average grows with each attempt. It is random, so
    /// that conflicting writes don't retry in step.
    pub(crate) fn retry_backoff(&self, tries: u32) -> Duration {
        let times_waited = self.times_waited.fetch_add(1, Ordering::Relaxed);
        let most = 4 * u64::from(tries.min(16));
        Duration::from_millis(1 + self.jitter.hash_one(times_waited) % most)
    }

    pub(crate) async fn close(&self) {
        self.shared.close().await;
        self.heartbeat.close().await;
        self.replica.iter().for_each(Replica::close);
        self.pool.close();
    }
}
