//! Write pressure: the load of foreground writes, which background writes yield to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The write pressure is high if the last two writes ended within this time.
const HIGH_PRESSURE_INTERVAL: Duration = Duration::from_millis(5);

/// The time slice of background work under high pressure, on an engine where it blocks other
/// writers.
const BLOCKING_SLICE: Duration = Duration::from_micros(100);

/// The same, on an engine where it does not. Starting a slice costs more there, and even more while
/// an old transaction is open. Short slices would do little else.
const CONCURRENT_SLICE: Duration = Duration::from_millis(20);

/// The foreground writes.
#[derive(Debug)]
pub(crate) struct WritePressure {
    under_way: AtomicUsize,
    /// The end of the last write and of the one before it, in microseconds since `started`, or 0.
    ended: AtomicU64,
    ended_before: AtomicU64,
    started: Instant,
}

impl Default for WritePressure {
    fn default() -> Self {
        Self {
            under_way: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            ended_before: AtomicU64::new(0),
            started: Instant::now(),
        }
    }
}

impl WritePressure {
    /// Counts a foreground write until the returned guard is dropped.
    pub(crate) fn count(self: &Arc<Self>) -> ForegroundWrite {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        ForegroundWrite(Arc::clone(self))
    }

    /// Returns true if there are many writes.
    pub(crate) fn is_high(&self) -> bool {
        let ended_before = self.ended_before.load(Ordering::Relaxed);
        let age = self.now().saturating_sub(ended_before);
        ended_before > 0 && u128::from(age) < HIGH_PRESSURE_INTERVAL.as_micros()
    }

    /// Returns the time slice of background work that starts now, on an engine with a single
    /// writer.
    pub(crate) fn slice(self: &Arc<Self>) -> TimeSlice {
        self.slice_for(BLOCKING_SLICE, true)
    }

    /// Returns the time slice of background work that starts now, on an engine with concurrent
    /// writers.
    pub(crate) fn concurrent_slice(self: &Arc<Self>) -> TimeSlice {
        self.slice_for(CONCURRENT_SLICE, false)
    }

    fn slice_for(self: &Arc<Self>, time: Duration, blocks_writers: bool) -> TimeSlice {
        let end = self.is_high().then(|| Instant::now() + time);
        TimeSlice { pressure: Arc::clone(self), end, blocks_writers }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// The guard of a foreground write.
#[derive(Debug)]
pub(crate) struct ForegroundWrite(Arc<WritePressure>);

impl Drop for ForegroundWrite {
    fn drop(&mut self) {
        let before = self.0.ended.swap(self.0.now(), Ordering::Relaxed);
        self.0.ended_before.store(before, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A time slice of background work.
#[derive(Debug)]
pub(crate) struct TimeSlice {
    pressure: Arc<WritePressure>,
    end: Option<Instant>,
    blocks_writers: bool,
}

impl TimeSlice {
    /// Returns true if the work should yield, as a foreground write waits or will soon.
    pub(crate) fn is_over(&self) -> bool {
        self.foreground_waits() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Returns true if the work should do little per step.
    pub(crate) fn is_short(&self) -> bool {
        self.blocks_writers && (self.end.is_some() || self.foreground_waits())
    }

    fn foreground_waits(&self) -> bool {
        self.blocks_writers && self.writes_under_way() > 0
    }

    /// Returns the number of foreground writes that have begun and not ended.
    pub(crate) fn writes_under_way(&self) -> usize {
        self.pressure.under_way.load(Ordering::Relaxed)
    }
}
