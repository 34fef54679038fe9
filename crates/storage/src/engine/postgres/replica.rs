//! A standby of the database, or several behind one address, for stale reads.
//!
//! The upper bound of the staleness needs no common clock. It compares no log positions either,
//! which may be of different histories. Instead, the server writes an increasing number twice a
//! second, and logs when each write began. Each read first queries the number that the standby
//! shows, on the same connection. The standby then shows everything that was committed before that
//! write.

use std::collections::VecDeque;
use std::fmt::Display;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use futures_util::future::join;
use tokio::time::timeout;

use super::connect;
use super::session::{Held, Pooled, Reading};
use super::timeouts::READ_TIMEOUT;
use crate::engine::error::{Error, Failure, Result};
use crate::engine::options::Options;
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::Tx;
use crate::engine::value::params;

/// The timeout of the standby's first response; the read is then made at the primary.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The back-off after a failure, during which no read uses the standby.
const REST: Duration = Duration::from_secs(5);

/// The interval of heartbeats while reads use the standby.
const BEAT_EVERY: Duration = Duration::from_millis(500);

/// The time after the last stale read for which heartbeats continue.
const BEATS_FOR: Duration = Duration::from_mins(1);

/// The timeout of writing a heartbeat.
const BEAT_TIME_MAX: Duration = Duration::from_secs(5);

/// The limit of heartbeats in the log. A standby that shows an older one is too stale for any read.
const BEATS_MAX: usize = 1_200;

/// Deletes the heartbeats of servers that have written none for a day.
const TIDY: &str = "DELETE FROM heartbeats
    WHERE beaten_at_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000";

/// The query for the last heartbeat of a server that a standby shows, and its PostgreSQL form.
const SHOWN: &str = "SELECT number FROM heartbeats WHERE server = ?1";
const PREPARED: &str = "SELECT number FROM heartbeats WHERE server = $1";

#[derive(Debug)]
pub(super) struct Replica {
    pool: Pool,
    log: Option<Arc<StatementLog>>,
    heart: Arc<Heart>,
    /// The end of the back-off.
    rests_until: Mutex<Option<Instant>>,
}

impl Replica {
    /// Opens the standby of the database behind `primary`. If it is unavailable now, it is used as
    /// soon as it responds.
    pub(super) async fn open(url: &str, options: &Options, primary: &Pool) -> Result<Self> {
        let replica = Self {
            pool: connect::replica_pool(url, options, PREPARED)?,
            log: options.statement_log.clone(),
            heart: Arc::new(Heart::new(primary.clone())),
            rests_until: Mutex::default(),
        };
        if let Err(error) = connect::get(&replica.pool, SILENCE_MAX).await {
            replica.rest(&error);
        }
        Ok(replica)
    }

    /// Returns the result of `operation` on the standby, and an upper bound of its staleness.
    /// Returns `None` if the read fails or the bound exceeds `age_max`.
    pub(super) async fn read<T, E, F>(
        &self,
        age_max: Duration,
        operation: &F,
    ) -> Option<(T, Duration)>
    where
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Sync,
    {
        if !self.may_be_asked() {
            return None;
        }
        self.heart.go_on();
        let session = match connect::get(&self.pool, SILENCE_MAX).await {
            Ok(client) => Reading::new(Pooled::new(client), self.log.clone()),
            Err(error) => {
                self.rest(&error);
                return None;
            }
        };
        let tx = session.tx();
        let outcome = {
            let has_answered = AtomicBool::new(false);
            let shown = async {
                let shown = tx.find(SHOWN, params![&self.heart.server], |row| row.int(0)).await;
                has_answered.store(true, Ordering::Relaxed);
                shown
            };
            let mut both = pin!(join(shown, operation(&tx)));
            match timeout(SILENCE_MAX, both.as_mut()).await {
                Ok(both) => Some(both),
                // The standby responds; only the read is slow.
                Err(_) if has_answered.load(Ordering::Relaxed) => {
                    timeout(READ_TIMEOUT, both).await.ok()
                }
                Err(_) => None,
            }
        };
        let Some((shown, value)) = outcome else {
            session.discard();
            self.rest(&Error::TimedOut);
            return None;
        };
        if tx.has_rest() || shown.is_err() {
            session.discard();
        } else {
            session.release();
        }
        match shown {
            Ok(Some(shown)) => {
                self.works();
                // A failed read is repeated at the primary, which may have rows that the standby
                // lacks.
                let (value, age) = (value.ok()?, self.heart.age(shown)?);
                (age <= age_max).then_some((value, age))
            }
            Ok(None) => {
                if self.heart.has_beaten_long() {
                    self.rest(&"it shows nothing of this server, as if it were no standby of its database");
                }
                None
            }
            Err(error) => {
                self.rest(&error);
                None
            }
        }
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }

    /// Returns true if a read may use the standby. After the back-off, one read per back-off
    /// interval tests it.
    fn may_be_asked(&self) -> bool {
        let (mut rests_until, now) = (self.rests_until(), Instant::now());
        match *rests_until {
            None => true,
            Some(end) if end > now => false,
            Some(_) => {
                *rests_until = Some(now + REST);
                true
            }
        }
    }

    fn works(&self) {
        if self.rests_until().take().is_some() {
            tracing::info!("the replica answers again");
        }
    }

    fn rest(&self, why: &dyn Display) {
        let is_news = self.rests_until().replace(Instant::now() + REST).is_none();
        if is_news {
            tracing::warn!(%why, "the replica can't be read: its reads go to the database itself");
        }
    }

    fn rests_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rests_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The heartbeat writer of this server, with the log of its heartbeats.
#[derive(Debug)]
struct Heart {
    /// An identifier of this process.
    server: String,
    primary: Pool,
    beats: Mutex<Beats>,
}

impl Heart {
    fn new(primary: Pool) -> Self {
        let server = format!("{:032x}", rand::random::<u128>());
        Self { server, primary, beats: Mutex::default() }
    }

    /// Returns an upper bound of the staleness of a standby that shows this number.
    fn age(&self, number: i64) -> Option<Duration> {
        self.beats().age(number)
    }

    /// Returns true if a standby should show a heartbeat of this server by now.
    fn has_beaten_long(&self) -> bool {
        self.beats().known.front().is_some_and(|(began, _)| began.elapsed() > BEATS_FOR)
    }

    /// Keeps heartbeats running for [`BEATS_FOR`].
    fn go_on(self: &Arc<Self>) {
        let mut beats = self.beats();
        beats.ends = Some(Instant::now() + BEATS_FOR);
        if !std::mem::replace(&mut beats.goes_on, true) {
            drop(beats);
            tokio::spawn(Arc::clone(self).beat());
        }
    }

    async fn beat(self: Arc<Self>) {
        loop {
            let (began, number) = {
                let mut beats = self.beats();
                let is_over = beats.ends.is_none_or(|end| end <= Instant::now());
                if is_over || self.primary.is_closed() {
                    beats.goes_on = false;
                    return;
                }
                beats.next()
            };
            match timeout(BEAT_TIME_MAX, self.write(number)).await {
                Ok(Ok(())) => self.beats().note(began, number),
                Ok(Err(error)) => tracing::debug!(%error, "no heartbeat"),
                Err(_) => tracing::debug!("no heartbeat in time"),
            }
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }

    /// Writes a heartbeat without waiting for standbys. A standby applies all earlier commits
    /// before it in any case.
    async fn write(&self, number: i64) -> Result<()> {
        let server = &self.server;
        // The first heartbeat also deletes those of servers that have ended.
        let tidy = if number == 1 { TIDY } else { "" };
        let client = connect::get(&self.primary, BEAT_TIME_MAX).await?;
        let sql = format!(
            "BEGIN; SET LOCAL synchronous_commit = local;
             INSERT INTO heartbeats (server, number, beaten_at_ms)
             VALUES ('{server}', {number}, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
             ON CONFLICT (server) DO UPDATE
                SET number = excluded.number, beaten_at_ms = excluded.beaten_at_ms;
             {tidy}; COMMIT"
        );
        // If this is cancelled, the connection is closed.
        let client = Held::new(client);
        client.batch_execute(&sql).await?;
        client.release();
        Ok(())
    }

    fn beats(&self) -> MutexGuard<'_, Beats> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The heartbeat log: the numbers by the start of their write, newest last.
#[derive(Debug, Default)]
struct Beats {
    known: VecDeque<(Instant, i64)>,
    last: i64,
    goes_on: bool,
    ends: Option<Instant>,
}

impl Beats {
    fn next(&mut self) -> (Instant, i64) {
        self.last += 1;
        (Instant::now(), self.last)
    }

    fn note(&mut self, began: Instant, number: i64) {
        self.known.push_back((began, number));
        if self.known.len() > BEATS_MAX {
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
    fn the_age_is_that_of_the_number_shown() {
        let now = Instant::now();
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).expect("it ran then");
        let mut beats = Beats::default();
        assert_eq!(beats.age(1), None, "nothing is known");
        beats.note(ago(9), 1);
        beats.note(ago(6), 2);
        beats.note(ago(1), 4);
        let seconds = |number| beats.age(number).map(|age| age.as_secs());
        assert_eq!(seconds(0), None);
        assert_eq!(seconds(1), Some(9));
        assert_eq!(seconds(3), Some(6), "nobody was told that it was written");
        assert_eq!(seconds(4), Some(1));
    }

    #[test]
    fn so_many_numbers_are_remembered_and_not_more() {
        let mut beats = Beats::default();
        for _ in 0..2 * BEATS_MAX {
            let (began, number) = beats.next();
            beats.note(began, number);
        }
        assert_eq!(beats.known.len(), BEATS_MAX);
        let (_, oldest) = beats.known[0];
        assert_eq!(beats.age(oldest - 1), None);
        assert!(beats.age(oldest).is_some());
    }
}
