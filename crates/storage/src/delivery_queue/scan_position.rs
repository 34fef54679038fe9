//! The position from which the fan-out scans for runs of events.

use std::time::{Duration, Instant};

use galley_domain::EventId;
use parking_lot::Mutex;

use crate::engine::Tx;

/// The margin before the first known run of events. Runs are committed in another order than their
/// ids were created, and another node may have locked some.
const MARGIN: Duration = Duration::from_secs(5);

/// The interval of full scans, which bounds the delay of a run that the position missed.
const FULL_SCAN_INTERVAL: Duration = Duration::from_secs(10);

/// The position of the first run of events to fan out, as far as this process knows. PostgreSQL
/// keeps deleted index entries while any transaction is open, so a scan from the start would get
/// slower and slower.
#[derive(Debug, Default)]
pub struct ScanPosition(Mutex<ScanBounds>);

#[derive(Debug, Default)]
struct ScanBounds {
    first: Option<EventId>,
    /// The time of the last full scan.
    full_scan_at: Option<Instant>,
    /// The time of the last full scan of the queues.
    queue_scan_at: Option<Instant>,
}

impl ScanPosition {
    /// Returns the id from which a scan begins, and notes a full scan.
    pub(super) fn begin_scan(&self, tx: &Tx<'_>) -> EventId {
        let from = self.start(tx);
        if from == ALL {
            self.0.lock().full_scan_at = Some(Instant::now());
        }
        from
    }

    /// Returns the id from which a scan begins. A caller that finds no run calls
    /// [`ScanPosition::found_none`] with it.
    pub(super) fn start(&self, tx: &Tx<'_>) -> EventId {
        let position = self.0.lock();
        let first = position.first.filter(|_| !is_elapsed(position.full_scan_at));
        match first {
            Some(first) if tx.has_other_writers() => first.earlier(MARGIN),
            _ => ALL,
        }
    }

    /// Notes a scan without result.
    pub(super) fn found_none(&self, from: EventId) {
        if from == ALL {
            self.0.lock().full_scan_at = Some(Instant::now());
        }
    }

    /// Notes the first run of a scan.
    pub(super) fn found(&self, first: EventId) {
        self.0.lock().first = Some(first);
    }

    /// Returns true if queues are to be scanned from their start, whatever bounds they have: on
    /// PostgreSQL at intervals, on SQLite always, as it takes no longer there.
    pub(super) fn is_full_scan_due(&self, tx: &Tx<'_>) -> bool {
        let mut position = self.0.lock();
        let is_due = !tx.has_other_writers() || is_elapsed(position.queue_scan_at);
        if is_due {
            position.queue_scan_at = Some(Instant::now());
        }
        is_due
    }
}

/// The first of all identifiers.
const ALL: EventId = EventId::new(0);

fn is_elapsed(full_scan_at: Option<Instant>) -> bool {
    full_scan_at.is_none_or(|at| at.elapsed() >= FULL_SCAN_INTERVAL)
}
