//! A standby of the database, or several behind one address, for stale reads.
//!
//! The upper bound of the staleness needs no common clock. It compares no log positions either,
//! which may be of different histories. Instead, the server writes an increasing number twice a
//! second, and logs when each write began. Each read first queries the number that the standby
//! shows, on the same connection. The standby then shows everything that was committed before that
//! write.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use futures_util::future::join;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::connect;
use super::session::{PooledConnection, ReadSession, TransactionConnection};
use super::timeouts::READ_TIMEOUT;
use crate::engine::error::{Error, Failure, Result};
use crate::engine::options::Options;
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::Tx;
use crate::engine::value::params;

/// The timeout of the standby's first response; the read is then made at the primary.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The back-off after a failure, during which no read uses the standby.
const FAILURE_BACKOFF: Duration = Duration::from_secs(5);

/// The interval of heartbeats while reads use the standby.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

/// The time after the last stale read for which heartbeats continue.
const HEARTBEAT_DURATION: Duration = Duration::from_mins(1);

/// The timeout of writing a heartbeat.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit of heartbeats in the log. A standby that shows an older one is too stale for any read.
const HEARTBEAT_LOG_LIMIT: usize = 1_200;

/// Deletes the heartbeats of servers that have written none for a day.
const DELETE_OLD_HEARTBEATS: &str = "DELETE FROM heartbeats
    WHERE beaten_at_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000";

/// The query for the last heartbeat of a server that a standby shows, and its PostgreSQL form.
const SHOWN: &str = "SELECT number FROM heartbeats WHERE server = ?1";
const SELECT_NUMBER_POSTGRES: &str = "SELECT number FROM heartbeats WHERE server = $1";

#[derive(Debug)]
pub(crate) struct Replica {
    pool: Pool,
    log: Option<Arc<StatementLog>>,
    heartbeat_writer: Arc<HeartbeatWriter>,
    /// The end of the back-off.
    backoff_until: Mutex<Option<Instant>>,
}

impl Replica {
    /// Opens the standby of the database behind `primary`. If it is unavailable now, it is used as
    /// soon as it responds.
    pub(super) async fn open(url: &str, options: &Options, primary: &Pool) -> Result<Self> {
        let replica = Self {
            pool: connect::replica_pool(url, options, SELECT_NUMBER_POSTGRES)?,
            log: options.statement_log.clone(),
            heartbeat_writer: Arc::new(HeartbeatWriter::new(primary.clone())),
            backoff_until: Mutex::default(),
        };
        if let Err(error) = connect::get(&replica.pool, RESPONSE_TIMEOUT).await {
            replica.back_off(&error);
        }
        Ok(replica)
    }

    /// Returns the result of `operation` on the standby, and an upper bound of its staleness.
    /// Returns `None` if the read fails or the bound exceeds `max_staleness`.
    pub(crate) async fn read<T, E, F>(
        &self,
        max_staleness: Duration,
        operation: &F,
    ) -> Option<(T, Duration)>
    where
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Sync,
    {
        let session = self.session().await?;
        let (read, has_unread_rows) = {
            let tx = session.tx();
            (self.read_with_heartbeat(&tx, operation).await, tx.has_unread_rows())
        };
        let Some((shown, value)) = read else {
            session.discard();
            self.back_off(&Error::TimedOut);
            return None;
        };
        let age = self.end(session, has_unread_rows, shown)?;
        // A failed read is repeated at the primary, which may have rows that the standby lacks.
        (age <= max_staleness).then_some((value.ok()?, age))
    }

    /// Returns a connection, unless the standby is not used now.
    async fn session(&self) -> Option<ReadSession<PooledConnection>> {
        if !self.may_be_read() {
            return None;
        }
        self.heartbeat_writer.keep_running();
        match connect::get(&self.pool, RESPONSE_TIMEOUT).await {
            Ok(client) => Some(ReadSession::new(PooledConnection::new(client), self.log.clone())),
            Err(error) => {
                self.back_off(&error);
                None
            }
        }
    }

    /// Ends a read that was shown this heartbeat. Returns an upper bound of its staleness.
    fn end(
        &self,
        session: ReadSession<PooledConnection>,
        has_unread_rows: bool,
        shown: Result<Option<i64>>,
    ) -> Option<Duration> {
        if has_unread_rows || shown.is_err() {
            session.discard();
        } else {
            session.release();
        }
        match shown {
            Ok(Some(shown)) => {
                self.note_success();
                self.heartbeat_writer.age(shown)
            }
            Ok(None) => {
                if self.heartbeat_writer.is_established() {
                    self.back_off(
                        &"it lacks this server's heartbeats, so it may be no standby of this \
                          database",
                    );
                }
                None
            }
            Err(error) => {
                self.back_off(&error);
                None
            }
        }
    }

    /// Runs a read, and reads this server's last heartbeat in the same transaction. Returns `None`
    /// if the standby does not respond in time.
    async fn read_with_heartbeat<T, E, F>(
        &self,
        tx: &Tx<'_>,
        operation: &F,
    ) -> Option<(Result<Option<i64>>, Result<T, E>)>
    where
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Sync,
    {
        let has_responded = AtomicBool::new(false);
        let shown = async {
            let shown =
                tx.find(SHOWN, params![&self.heartbeat_writer.server], |row| row.get(0)).await;
            has_responded.store(true, Ordering::Relaxed);
            shown
        };
        // Boxed, as each read has this future within its own, even without a standby.
        let mut both = Box::pin(join(shown, operation(tx)));
        match timeout(RESPONSE_TIMEOUT, both.as_mut()).await {
            Ok(both) => Some(both),
            // The standby responds; only the read is slow.
            Err(_) if has_responded.load(Ordering::Relaxed) => {
                timeout(READ_TIMEOUT, both).await.ok()
            }
            Err(_) => None,
        }
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }

    /// Returns true if a read may use the standby. After the back-off, one read per back-off
    /// interval tests it.
    fn may_be_read(&self) -> bool {
        let (mut backoff_until, now) = (self.backoff_until.lock(), Instant::now());
        match *backoff_until {
            None => true,
            Some(end) if end > now => false,
            Some(_) => {
                *backoff_until = Some(now + FAILURE_BACKOFF);
                true
            }
        }
    }

    fn note_success(&self) {
        if self.backoff_until.lock().take().is_some() {
            tracing::info!("the replica can be read again");
        }
    }

    fn back_off(&self, why: &dyn Display) {
        let is_first_failure =
            self.backoff_until.lock().replace(Instant::now() + FAILURE_BACKOFF).is_none();
        if is_first_failure {
            tracing::warn!(%why, "the replica can't be read: reads go to the primary");
        }
    }
}

/// The heartbeat writer of this server, with the log of its heartbeats.
#[derive(Debug)]
struct HeartbeatWriter {
    /// An identifier of this process.
    server: String,
    primary: Pool,
    heartbeat_log: Mutex<HeartbeatLog>,
}

impl HeartbeatWriter {
    fn new(primary: Pool) -> Self {
        let server = format!("{:032x}", rand::random::<u128>());
        Self { server, primary, heartbeat_log: Mutex::default() }
    }

    /// Returns an upper bound of the staleness of a standby that shows this number.
    fn age(&self, number: i64) -> Option<Duration> {
        self.beats().age(number)
    }

    /// Returns true if a standby should show a heartbeat of this server by now.
    fn is_established(&self) -> bool {
        self.beats().known.front().is_some_and(|(began, _)| began.elapsed() > HEARTBEAT_DURATION)
    }

    /// Keeps heartbeats running for [`HEARTBEAT_DURATION`].
    fn keep_running(self: &Arc<Self>) {
        let mut beats = self.beats();
        beats.ends_at = Some(Instant::now() + HEARTBEAT_DURATION);
        if !std::mem::replace(&mut beats.is_running, true) {
            drop(beats);
            tokio::spawn(Arc::clone(self).run());
        }
    }

    async fn run(self: Arc<Self>) {
        loop {
            let (began, number) = {
                let mut beats = self.beats();
                let is_over = beats.ends_at.is_none_or(|end| end <= Instant::now());
                if is_over || self.primary.is_closed() {
                    beats.is_running = false;
                    return;
                }
                beats.next()
            };
            match timeout(HEARTBEAT_TIMEOUT, self.write(number)).await {
                Ok(Ok(())) => self.beats().add(began, number),
                Ok(Err(error)) => tracing::debug!(%error, "the heartbeat failed"),
                Err(_) => tracing::debug!("the heartbeat timed out"),
            }
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        }
    }

    /// Writes a heartbeat without waiting for standbys. A standby applies all earlier commits
    /// before it in any case.
    async fn write(&self, number: i64) -> Result<()> {
        let server = &self.server;
        // The first heartbeat also deletes those of servers that have ended.
        let delete_expired = if number == 1 { DELETE_OLD_HEARTBEATS } else { "" };
        let client = connect::get(&self.primary, HEARTBEAT_TIMEOUT).await?;
        let sql = format!(
            "BEGIN; SET LOCAL synchronous_commit = local;
             INSERT INTO heartbeats (server, number, beaten_at_ms)
             VALUES ('{server}', {number}, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
             ON CONFLICT (server) DO UPDATE
                SET number = excluded.number, beaten_at_ms = excluded.beaten_at_ms;
             {delete_expired}; COMMIT"
        );
        // If this is cancelled, the connection is closed.
        let client = TransactionConnection::new(client);
        client.batch_execute(&sql).await?;
        client.release();
        Ok(())
    }

    fn beats(&self) -> MutexGuard<'_, HeartbeatLog> {
        self.heartbeat_log.lock()
    }
}

/// The heartbeat log: the numbers by the start of their write, newest last.
#[derive(Debug, Default)]
struct HeartbeatLog {
    known: VecDeque<(Instant, i64)>,
    last: i64,
    is_running: bool,
    ends_at: Option<Instant>,
}

impl HeartbeatLog {
    fn next(&mut self) -> (Instant, i64) {
        self.last += 1;
        (Instant::now(), self.last)
    }

    fn add(&mut self, began: Instant, number: i64) {
        self.known.push_back((began, number));
        if self.known.len() > HEARTBEAT_LOG_LIMIT {
            self.known.pop_front();
        }
    }

    /// Returns the time since the write of this number began. An unconfirmed write is not in the
    /// log, so the number before it counts.
    fn age(&self, number: i64) -> Option<Duration> {
        let reached = self.known.iter().rev().find(|(_, known)| *known <= number);
        reached.map(|(began, _)| began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staleness_is_the_age_of_the_shown_heartbeat() {
        let now = Instant::now();
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).expect("it ran then");
        let mut beats = HeartbeatLog::default();
        assert_eq!(beats.age(1), None, "nothing is known");
        beats.add(ago(9), 1);
        beats.add(ago(6), 2);
        beats.add(ago(1), 4);
        let seconds = |number| beats.age(number).map(|age| age.as_secs());
        assert_eq!(seconds(0), None);
        assert_eq!(seconds(1), Some(9));
        assert_eq!(seconds(3), Some(6), "nobody was told that it was written");
        assert_eq!(seconds(4), Some(1));
    }

    #[test]
    fn the_heartbeat_log_is_bounded() {
        let mut beats = HeartbeatLog::default();
        for _ in 0..2 * HEARTBEAT_LOG_LIMIT {
            let (began, number) = beats.next();
            beats.add(began, number);
        }
        assert_eq!(beats.known.len(), HEARTBEAT_LOG_LIMIT);
        let (_, oldest) = beats.known[0];
        assert_eq!(beats.age(oldest - 1), None);
        assert!(beats.age(oldest).is_some());
    }
}
