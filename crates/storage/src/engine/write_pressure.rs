//! Whether somebody waits for the store: what nobody waits for stands back then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// So close to each other, writes are many.
const CLOSE: Duration = Duration::from_millis(5);

/// How long work in the background takes at a time while there are many writes, where it keeps them waiting.
const SLICE: Duration = Duration::from_micros(100);

/// The same where it does not. To begin such a piece costs more there, and the more the longer somebody has left a
/// transaction open: with short ones little else would be done then.
const SLICE_BESIDE_OTHERS: Duration = Duration::from_millis(20);

/// The writes that somebody waits for.
#[derive(Debug)]
pub(crate) struct Pressure {
    under_way: AtomicUsize,
    /// When the last one ended and the one before it, in microseconds since `started`, or 0.
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
    /// Counts a write until what is returned is dropped.
    pub(crate) fn count(self: &Arc<Self>) -> Counted {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(self))
    }

    /// Whether there are many writes.
    pub(crate) fn is_high(&self) -> bool {
        let ended_before = self.ended_before.load(Ordering::Relaxed);
        let age = self.now().saturating_sub(ended_before);
        ended_before > 0 && u128::from(age) < CLOSE.as_micros()
    }

    /// What a piece of work in the background that begins now keeps to, if nobody else writes meanwhile.
    pub(crate) fn slice(self: &Arc<Self>) -> Slice {
        self.slice_of(SLICE, true)
    }

    /// The same, if others do.
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

/// A write that somebody waits for.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Pressure>);

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.0.ended.swap(self.0.now(), Ordering::Relaxed);
        self.0.ended_before.store(before, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A piece of work in the background.
#[derive(Debug)]
pub(crate) struct Slice {
    pressure: Arc<Pressure>,
    end: Option<Instant>,
    keeps_others_out: bool,
}

impl Slice {
    /// Whether it is to end, as others wait, or soon will.
    pub(crate) fn is_over(&self) -> bool {
        self.is_waited_for() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether it is to do little.
    pub(crate) fn is_short(&self) -> bool {
        self.keeps_others_out && (self.end.is_some() || self.is_waited_for())
    }

    fn is_waited_for(&self) -> bool {
        self.keeps_others_out && self.pressure.under_way.load(Ordering::Relaxed) > 0
    }
}
