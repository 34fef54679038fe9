//! PostgreSQL: a pool of connections, reads without a transaction, writes in one each.
//!
//! A read's statements each see what was committed when they began, so that what must be
//! consistent is read by one statement. Writes run at READ COMMITTED; where two could cross,
//! the operation locks a row, or a unique index makes one of them try again.

mod connect;
mod heartbeat;
mod replica;
mod session;
mod shared_connection;
pub(crate) mod timeouts;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::engine::error::{Error, Failure, Result};
use crate::engine::heartbeat::Heartbeat;
use crate::engine::migrate;
use crate::engine::options::Options;
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::Tx;
use galley_runtime::{AdmissionLimits, AdmissionQueue};
use heartbeat::HeartbeatConnection;
use replica::Replica;
pub(crate) use session::Held;
use session::{Pooled, Reading, Writing};
use shared_connection::Shared;

/// How long it may take to get a connection, also where one has to be made.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);

/// How many writes wait for one.
const WRITERS_WAIT: AdmissionLimits =
    AdmissionLimits { timeout: CONNECTION_TIME_MAX, burst: 4_096, sustained: 128 };

/// A pool of connections to one PostgreSQL database.
#[derive(Debug)]
pub(crate) struct Postgres {
    pool: Pool,
    shared: Shared,
    heartbeat: HeartbeatConnection,
    replica: Option<Replica>,
    log: Option<Arc<StatementLog>>,
    jitter: RandomState,
    times_waited: AtomicU64,
    write_wait_max: Duration,
    /// Some connections are left to those who read, whatever those who write wait for.
    writers: Arc<Semaphore>,
    admission: AdmissionQueue,
}

impl Postgres {
    pub(crate) async fn open(url: &str, options: &Options) -> Result<Self> {
        let pool = connect::pool(url, options)?;
        let client = pool.get().await?;
        connect::refuse_unsynced(&client).await?;
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
            shared: Shared::default(),
            heartbeat: HeartbeatConnection::default(),
            log: options.statement_log.clone(),
            jitter: RandomState::new(),
            times_waited: AtomicU64::new(0),
            write_wait_max: options.write_wait_max,
            writers: Arc::new(Semaphore::new(writers)),
            admission: AdmissionQueue::new(WRITERS_WAIT),
        })
    }

    /// A connection to read with.
    pub(crate) async fn reader(&self) -> Result<Reading<Pooled>> {
        Ok(Reading::new(Pooled::new(self.get().await?), self.log.clone()))
    }

    async fn get(&self) -> Result<Object> {
        connect::get(&self.pool, CONNECTION_TIME_MAX).await
    }

    /// The connection of all who look up one row.
    pub(crate) async fn shared_reader(&self) -> Result<Reading<Arc<ClientWrapper>>> {
        Ok(Reading::new(self.shared.get(&self.pool).await?, self.log.clone()))
    }

    /// Whether there may be standbys.
    pub(crate) fn has_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// What `operation` reads of a standby, and how old that is at the most; nothing, if there is none that is in time.
    pub(crate) async fn read_replica<T, E, F>(
        &self,
        age_max: Duration,
        operation: &F,
    ) -> Option<(T, Duration)>
    where
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Sync,
    {
        let replica = self.replica.as_ref()?;
        replica.read(age_max, operation).await
    }

    /// A connection for something longer.
    pub(crate) async fn held(&self) -> Result<Held> {
        Ok(Held::new(self.get().await?))
    }

    /// Returns whether the connection of the last heartbeat is still there.
    pub(crate) fn has_heartbeat_connection(&self) -> bool {
        self.heartbeat.is_connected()
    }

    /// Writes a heartbeat of a session.
    pub(crate) async fn heartbeat(&self, session: &str, node: &str) -> Result<Heartbeat> {
        self.heartbeat.beat(&self.pool, session, node).await
    }

    /// Whether a server is connected to the database.
    pub(crate) async fn is_served(&self) -> Result<bool> {
        let sql = "SELECT 1 FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = $1 LIMIT 1";
        let found = self.get().await?.query_opt(sql, &[&connect::SERVER]).await?;
        Ok(found.is_some())
    }

    /// Has the next one who looks up a row make another connection.
    pub(crate) async fn discard_shared(&self, session: Reading<Arc<ClientWrapper>>) {
        self.shared.discard(session.client()).await;
    }

    /// A connection within a new transaction, for somebody who waits for it in any case, or not where too many do.
    pub(crate) async fn writer(&self, is_patient: bool) -> Result<Writing> {
        let turn = Arc::clone(&self.writers).acquire_owned();
        let turn = if is_patient {
            timeout(CONNECTION_TIME_MAX, turn).await.ok()
        } else {
            self.admission.wait(turn).await
        };
        let turn = turn.and_then(std::result::Result::ok);
        let turn = turn.ok_or(Error::Overloaded)?;
        Writing::begin(self.get().await?, turn, self.log.clone()).await
    }

    /// How long a write may be tried again.
    pub(crate) fn write_wait_max(&self) -> Duration {
        self.write_wait_max
    }

    /// How long to wait before a write is tried again: longer each time on average, and not in
    /// step with whoever else tries again.
    pub(crate) fn pause_before_try(&self, tries: u32) -> Duration {
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
