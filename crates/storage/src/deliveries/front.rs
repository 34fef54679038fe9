//! From where on there are runs of events that no deliveries are made of yet.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galley_domain::EventId;

use crate::tx::Tx;

/// So much earlier than the first run that was found there may be others: they are committed in another order than
/// their ids were made, and others may have held them.
const MARGIN: Duration = Duration::from_secs(5);

/// How often everything is looked at, so that nothing waits for longer.
const WHOLE: Duration = Duration::from_secs(10);

/// From where on there are runs of events that no deliveries are made of yet, as far as this program knows. PostgreSQL keeps
/// those that were deleted for as long as somebody has a transaction open, so that to look for the first one from the
/// beginning on would take longer and longer.
#[derive(Debug, Default)]
pub struct Front(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    first: Option<EventId>,
    /// When everything was looked at.
    whole_at: Option<Instant>,
    /// When lines were looked at from the beginning on.
    lines_whole_at: Option<Instant>,
}

impl Front {
    /// From which id on to look now.
    pub(super) fn look(&self, tx: &Tx<'_>) -> EventId {
        let from = self.next(tx);
        if from == ALL {
            self.locked().whole_at = Some(Instant::now());
        }
        from
    }

    /// The same, where nothing is done about what is found; `found_nothing` is to be called with what it gave where that
    /// was nothing.
    pub(super) fn next(&self, tx: &Tx<'_>) -> EventId {
        let seen = self.locked();
        let first = seen.first.filter(|_| !is_over(seen.whole_at));
        match first {
            Some(first) if tx.has_other_writers() => first.earlier(MARGIN),
            _ => ALL,
        }
    }

    pub(super) fn found_nothing(&self, from: EventId) {
        if from == ALL {
            self.locked().whole_at = Some(Instant::now());
        }
    }

    /// To be called with the first run that was found.
    pub(super) fn saw(&self, first: EventId) {
        self.locked().first = Some(first);
    }

    /// Whether lines are to be looked at from the beginning on, whatever they say: now and then on PostgreSQL, should
    /// somebody have put something there without a word to the line, and always where that takes no longer.
    pub(super) fn is_whole(&self, tx: &Tx<'_>) -> bool {
        let mut seen = self.locked();
        let is_whole = !tx.has_other_writers() || is_over(seen.lines_whole_at);
        if is_whole {
            seen.lines_whole_at = Some(Instant::now());
        }
        is_whole
    }

    fn locked(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first of all identifiers.
const ALL: EventId = EventId::new(0);

fn is_over(whole_at: Option<Instant>) -> bool {
    whole_at.is_none_or(|at| at.elapsed() >= WHOLE)
}
