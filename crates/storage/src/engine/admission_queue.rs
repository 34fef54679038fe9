//! Those who wait for what there is little of: how many may.
//!
//! Where there is more to do than can be done, a queue without a bound only grows, and one with a bound keeps everybody
//! waiting for as long as it is. So what counts is whether it ever empties, as in CoDel (RFC 8289). While it does, it is a
//! crowd that passes, and everybody is served. While it doesn't, only few may wait, so that these are served soon, and the
//! others are told at once to come again. Those who ask again only when they were answered, a few hundred of them, keep
//! waiting for one another and are no such queue: for them there is room in any case.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::timeout;

/// A queue that has not been empty for so long doesn't empty by itself.
const STANDING: Duration = Duration::from_secs(1);

/// Those who wait in one queue.
#[derive(Debug)]
pub struct Waiters {
    started: Instant,
    /// When nobody waited last, in milliseconds since the start.
    emptied_at: AtomicU64,
    count: AtomicUsize,
    limits: Limits,
}

/// How long somebody waits, and how many do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long at the most.
    pub time: Duration,
    /// How many, while the queue empties now and then.
    pub crowd: usize,
    /// How many, while it doesn't.
    pub standing: usize,
}

impl Waiters {
    /// Nobody waits yet.
    pub fn new(limits: Limits) -> Self {
        let (emptied_at, count) = (AtomicU64::default(), AtomicUsize::default());
        Self { started: Instant::now(), emptied_at, count, limits }
    }

    /// Nobody waits now.
    pub(crate) fn is_empty(&self) {
        self.emptied_at.store(self.now(), Ordering::Relaxed);
    }

    /// Whether there is room for one more beside so many.
    pub(crate) fn has_room(&self, beside: usize) -> bool {
        let Limits { crowd, standing, .. } = self.limits;
        beside < standing || (beside < crowd && !self.is_standing())
    }

    /// What `turn` comes to, unless too many wait, or that takes too long.
    pub async fn wait<T>(&self, turn: impl Future<Output = T>) -> Option<T> {
        let mut turn = pin!(turn);
        let at_once = std::future::poll_fn(|context| {
            Poll::Ready(match turn.as_mut().poll(context) {
                Poll::Ready(came) => Some(came),
                Poll::Pending => None,
            })
        });
        if let Some(came) = at_once.await {
            self.is_empty();
            return Some(came);
        }
        let counted = Counted(self);
        if !self.has_room(self.count.fetch_add(1, Ordering::Relaxed)) {
            return None;
        }
        let came = timeout(self.limits.time, turn).await.ok();
        drop(counted);
        came
    }

    fn is_standing(&self) -> bool {
        let since = self.now().saturating_sub(self.emptied_at.load(Ordering::Relaxed));
        u128::from(since) > STANDING.as_millis()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// One of those who wait.
struct Counted<'w>(&'w Waiters);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.is_empty();
        }
    }
}
