//! Write pressure: the load of foreground writes, which background writes yield to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The write pressure is high if the last two writes ended within this time.
const CLOSE: Duration = Duration::from_millis(5);

/// The time slice of background work under high pressure, on an engine where it blocks other
/// writers.
const SLICE: Duration = Duration::from_micros(100);

/// The same, on an engine where it does not. Starting a slice costs more there, and even more while
/// an old transaction is open. Short slices would do little else.
const SLICE_BESIDE_OTHERS: Duration = Duration::from_millis(20);

/// The foreground writes.
#[derive(Debug)]
pub(crate) struct Pressure {
    under_way: AtomicUsize,
    /// The end of the last write and of the one before it, in microseconds since `started`, or 0.
    ended: AtomicU64,
    ended_before: AtomicU64,
    started: Instant,
}

impl Default for Pressure {
    fn default() -> Self {
        Self {
            under_way: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            ended_before: AtomicU64::new(0),
            started: Instant::now(),
        }
    }
}

impl Pressure {
    /// Counts a foreground write until the returned guard is dropped.
    pub(crate) fn count(self: &Arc<Self>) -> Counted {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(self))
    }

    /// Returns true if there are many writes.
    pub(crate) fn is_high(&self) -> bool {
        let ended_before = self.ended_before.load(Ordering::Relaxed);
        let age = self.now().saturating_sub(ended_before);
        ended_before > 0 && u128::from(age) < CLOSE.as_micros()
    }

    /// Returns the time slice of background work that starts now, on an engine with a single
    /// writer.
    pub(crate) fn slice(self: &Arc<Self>) -> Slice {
        self.slice_of(SLICE, true)
    }

    /// Returns the time slice of background work that starts now, on an engine with concurrent
    /// writers.
    pub(crate) fn slice_beside_others(self: &Arc<Self>) -> Slice {
        self.slice_of(SLICE_BESIDE_OTHERS, false)
    }

    fn slice_of(self: &Arc<Self>, time: Duration, keeps_others_out: bool) -> Slice {
        let end = self.is_high().then(|| Instant::now() + time);
        Slice { pressure: Arc::clone(self), end, keeps_others_out }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// The guard of a foreground write.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Pressure>);

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.0.ended.swap(self.0.now(), Ordering::Relaxed);
        self.0.ended_before.store(before, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A time slice of background work.
#[derive(Debug)]
pub(crate) struct Slice {
    pressure: Arc<Pressure>,
    end: Option<Instant>,
    keeps_others_out: bool,
}

impl Slice {
    /// Returns true if the work should yield, as a foreground write waits or will soon.
    pub(crate) fn is_over(&self) -> bool {
        self.is_waited_for() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Returns true if the work should do little per step.
    pub(crate) fn is_short(&self) -> bool {
        self.keeps_others_out && (self.end.is_some() || self.is_waited_for())
    }

    fn is_waited_for(&self) -> bool {
        self.keeps_others_out && self.pressure.under_way.load(Ordering::Relaxed) > 0
    }
}
