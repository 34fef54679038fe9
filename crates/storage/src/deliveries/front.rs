//! From where on there are runs of events that no deliveries are made of yet.

use std::sync::{Mutex, PoisonError};
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
}

impl Front {
    /// From which id on to look now.
    pub(super) fn look(&self, tx: &Tx<'_>) -> EventId {
        self.from(tx, |seen| seen.whole_at = Some(Instant::now()))
    }

    /// The same, where nothing is done about what is found.
    pub(super) fn look_without_effect(&self, tx: &Tx<'_>) -> EventId {
        self.from(tx, |_| ())
    }

    fn from(&self, tx: &Tx<'_>, note_whole: impl Fn(&mut Seen)) -> EventId {
        const ALL: EventId = EventId::new(0);
        if !tx.has_other_writers() {
            return ALL;
        }
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = seen.whole_at.is_some_and(|at| at.elapsed() < WHOLE);
        match seen.first.filter(|_| is_fresh) {
            Some(first) => first.earlier(MARGIN),
            None => {
                note_whole(&mut seen);
                ALL
            }
        }
    }

    /// To be called with the first run that was found.
    pub(super) fn saw(&self, first: EventId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).first = Some(first);
    }
}
