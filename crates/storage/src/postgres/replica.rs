//! A standby of the database, or several behind one address, for reads that may be of a while ago.
//!
//! How old what one shows is at the most is known without a clock in common: the database is asked how far its log is, and
//! a standby that has replayed it so far shows all that was committed before the question. The standby says in each read how
//! far it is, on the same connection and before what is read, so that it doesn't matter which of several answers.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::{ClientWrapper, Pool, PoolError};
use futures_util::future::join;
use tokio::time::timeout;

use super::connect::{self, Identity};
use super::session::Reading;
use crate::database::Options;
use crate::error::{Error, Failure, Result};
use crate::statement_log::StatementLog;
use crate::tx::Tx;

/// How long a read may take there before it is made anew elsewhere.
const TIME_MAX: Duration = Duration::from_secs(5);

/// How long nobody is sent there after it didn't answer.
const REST: Duration = Duration::from_secs(5);

/// How often the database is asked how far its log is, while anybody wants to know.
const ASKED_EVERY: Duration = Duration::from_millis(500);

/// How many of its answers are kept: a standby that is ten minutes behind is too far behind.
const POSITIONS_MAX: usize = 1_200;

/// How far a database's log is, with all that was answered before.
const WRITTEN: &str = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint";

/// How far a standby is with it; nothing, if it is none.
const REPLAYED: &str =
    "SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0')::bigint END";

#[derive(Debug)]
pub(super) struct Replica {
    pool: Pool,
    log: Option<Arc<StatementLog>>,
    positions: Mutex<Positions>,
    /// Until when nobody is sent there.
    rests_until: Mutex<Option<Instant>>,
}

impl Replica {
    /// Refuses what is known to be no standby of `database`. One that isn't there at the moment is used when it is.
    pub(super) async fn open(
        url: &str,
        options: &Options,
        database: &ClientWrapper,
    ) -> Result<Self> {
        let pool = connect::replica_pool(url, options, Identity::of(database).await?)?;
        let replica = Self {
            pool,
            log: options.statement_log.clone(),
            positions: Mutex::default(),
            rests_until: Mutex::default(),
        };
        match replica.pool.get().await {
            Ok(_) => {}
            Err(error @ PoolError::PostCreateHook(_)) => {
                return Err(Error::Settings(format!("the replica can't be used: {error}")));
            }
            Err(error) => replica.rest(&error),
        }
        Ok(replica)
    }

    /// What `operation` reads there, and how old that is at the most; nothing, if it can't be had, or is older than
    /// `age_max`.
    pub(super) async fn read<T, E, F>(
        &self,
        database: &Tx<'_>,
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
        self.ask(database).await?;
        let session = match self.pool.get().await {
            Ok(client) => Reading::new(client, self.log.clone()),
            Err(error) => {
                self.rest(&error);
                return None;
            }
        };
        let outcome = {
            let tx = session.tx();
            let replayed = tx.get(REPLAYED, &[], |row| row.opt_int(0));
            timeout(TIME_MAX, join(replayed, operation(&tx))).await
        };
        let Ok((replayed, value)) = outcome else {
            session.discard();
            self.rest(&Error::TimedOut);
            return None;
        };
        match replayed {
            Ok(Some(replayed)) => {
                self.works();
                // What it doesn't have may have come since.
                let (value, age) = (value.ok()?, self.positions().age(replayed)?);
                (age <= age_max).then_some((value, age))
            }
            Ok(None) => {
                // What was one is the database itself now, or stands alone.
                session.discard();
                self.rest(&"it is no standby");
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

    /// Asks the database how far its log is, if that was not asked lately.
    async fn ask(&self, database: &Tx<'_>) -> Option<()> {
        let asked = Instant::now();
        if !self.positions().is_to_ask(asked) {
            return Some(());
        }
        let position = database.get(WRITTEN, &[], |row| row.int(0));
        let position = timeout(TIME_MAX, position).await.ok()?.ok()?;
        self.positions().note(asked, position);
        Some(())
    }

    /// One at a time tries whether it is back.
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

    fn positions(&self) -> MutexGuard<'_, Positions> {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a connection to a standby is prepared: what it is asked in each read must not wait until it is known there, or the
/// read would be before it.
pub(super) async fn prepare(
    client: &ClientWrapper,
) -> std::result::Result<(), tokio_postgres::Error> {
    client.prepare_cached(REPLAYED).await.map(drop)
}

/// How far the database's log was, by when that was asked; the newest last.
#[derive(Debug, Default)]
struct Positions {
    known: VecDeque<(Instant, i64)>,
    /// When somebody last went to ask.
    asked: Option<Instant>,
}

impl Positions {
    /// Whether it is time to ask; then it counts as asked.
    fn is_to_ask(&mut self, now: Instant) -> bool {
        let is_due = self.asked.is_none_or(|asked| asked + ASKED_EVERY <= now);
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }

    fn note(&mut self, asked: Instant, position: i64) {
        match self.known.back() {
            // Somebody who asked later was answered before.
            Some(&(last, _)) if last >= asked => return,
            // Nothing was written since.
            Some(&(_, known)) if known == position => drop(self.known.pop_back()),
            _ => {}
        }
        self.known.push_back((asked, position));
        if self.known.len() > POSITIONS_MAX {
            self.known.pop_front();
        }
    }

    /// How old what a standby shows is at the most that has replayed so much.
    fn age(&self, replayed: i64) -> Option<Duration> {
        let reached = self.known.iter().rev().find(|(_, position)| *position <= replayed);
        reached.map(|(asked, _)| asked.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_that_of_the_newest_position_reached() {
        let now = Instant::now();
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).expect("it ran then");
        let mut positions = Positions::default();
        assert_eq!(positions.age(i64::MAX), None, "nothing is known");
        positions.note(ago(9), 100);
        positions.note(ago(6), 200);
        positions.note(ago(7), 150);
        positions.note(ago(3), 200);
        positions.note(ago(1), 300);
        let seconds = |replayed| positions.age(replayed).map(|age| age.as_secs());
        assert_eq!(seconds(99), None);
        assert_eq!(seconds(100), Some(9));
        assert_eq!(seconds(199), Some(9), "what came too late is left out");
        assert_eq!(seconds(200), Some(3), "nothing was written from the 6th second to the 3rd");
        assert_eq!(seconds(300), Some(1));
    }

    #[test]
    fn so_many_positions_are_kept_and_not_more() {
        let mut positions = Positions::default();
        let start = Instant::now();
        for number in (1_u32..).take(2 * POSITIONS_MAX) {
            positions.note(start + Duration::from_nanos(number.into()), number.into());
        }
        assert_eq!(positions.known.len(), POSITIONS_MAX);
        let (_, oldest) = positions.known[0];
        assert_eq!(positions.age(oldest - 1), None);
        assert!(positions.age(oldest).is_some());
    }
}
