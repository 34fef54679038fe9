//! A queue for a limited resource, with a bound on the waiting tasks.
//!
//! Under lasting overload an unbounded queue grows without end, and a bounded one delays every task
//! by its full length. So the bound depends on whether the queue ever drains, as in CoDel (RFC
//! 8289). While it drains now and then, the queue absorbs a burst and admits many tasks. While it
//! does not, only a few may wait, which are served soon, and the others are rejected at once. Some
//! hundred clients that each wait for a response before their next request keep the queue filled
//! without overload. The sustained limit leaves room for them.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::timeout;

/// A queue that has not drained for this time is under sustained load.
const SUSTAINED_AFTER: Duration = Duration::from_secs(1);

/// The tasks that wait for one resource.
#[derive(Debug)]
pub struct AdmissionQueue {
    started: Instant,
    /// The last time at which the queue was empty, in milliseconds since the start.
    drained_at: AtomicU64,
    waiting: AtomicUsize,
    limits: AdmissionLimits,
}

/// The limits of an [`AdmissionQueue`].
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits {
    /// The time after which a waiting task is rejected.
    pub timeout: Duration,
    /// The limit of waiting tasks while the queue drains now and then.
    pub burst: usize,
    /// The limit of waiting tasks under sustained load.
    pub sustained: usize,
}

impl AdmissionQueue {
    /// Creates an empty queue.
    pub fn new(limits: AdmissionLimits) -> Self {
        let (drained_at, waiting) = (AtomicU64::default(), AtomicUsize::default());
        Self { started: Instant::now(), drained_at, waiting, limits }
    }

    /// Records that no task is waiting now.
    pub fn note_drained(&self) {
        self.drained_at.store(self.now(), Ordering::Relaxed);
    }

    /// Returns true if one more task may wait behind `waiting` others.
    pub fn admits(&self, waiting: usize) -> bool {
        let AdmissionLimits { burst, sustained, .. } = self.limits;
        waiting < sustained || (waiting < burst && !self.is_sustained())
    }

    /// Returns the output of `permit`, or `None` if too many tasks wait or the timeout has passed.
    pub async fn wait<T>(&self, permit: impl Future<Output = T>) -> Option<T> {
        let mut permit = pin!(permit);
        let immediate = std::future::poll_fn(|context| {
            Poll::Ready(match permit.as_mut().poll(context) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            })
        });
        if let Some(output) = immediate.await {
            self.note_drained();
            return Some(output);
        }
        let counted = WaitingTask(self);
        if !self.admits(self.waiting.fetch_add(1, Ordering::Relaxed)) {
            return None;
        }
        let output = timeout(self.limits.timeout, permit).await.ok();
        drop(counted);
        output
    }

    fn is_sustained(&self) -> bool {
        let since = self.now().saturating_sub(self.drained_at.load(Ordering::Relaxed));
        u128::from(since) > SUSTAINED_AFTER.as_millis()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A waiting task, counted until it is dropped.
struct WaitingTask<'q>(&'q AdmissionQueue);

impl Drop for WaitingTask<'_> {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.note_drained();
        }
    }
}
