//! More requests than the processor can answer: some are refused as they come in, before they cost anything.
//!
//! It shows in how late a task is woken. Late for a moment is a crowd, which is served. Late for longer, while many
//! requests are under way, means that they come faster than they go: from then on no more than [`MANY`] are under way at a
//! time, until nobody has been refused for a while. So those who are let in are answered soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::Uri;

/// So many requests under way are many: twice that wait for one another where all of them write.
const MANY: usize = 128;

/// How often the time is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// A task that is woken so much later than it should be waits for others.
const LATE: Duration = Duration::from_millis(50);

/// For how long it has to be late each time.
const LATE_FOR: Duration = Duration::from_secs(1);

/// For how long nobody has to be refused.
const CALM_FOR: Duration = Duration::from_secs(2);

/// Who looks after the service itself is never refused.
const SERVICE: [&str; 2] = ["/healthz", "/readyz"];

/// How much is under way, and whether that is too much.
#[derive(Debug)]
pub(crate) struct Overload {
    started: Instant,
    under_way: Arc<AtomicUsize>,
    /// Until when no more than [`MANY`] may be under way, in milliseconds since the start.
    strict_until: AtomicU64,
}

/// A request that is under way.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Overload {
    pub(super) fn new() -> Self {
        let strict_until = AtomicU64::new(0);
        Self { started: Instant::now(), under_way: Arc::default(), strict_until }
    }

    /// Counts a request until what is returned is dropped.
    pub(super) fn count(&self) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(&self.under_way))
    }

    /// Whether a request is to be refused.
    pub(super) fn refuses(&self, uri: &Uri) -> bool {
        let is_strict = || self.now() < self.strict_until.load(Ordering::Relaxed);
        if !self.is_much() || !is_strict() || SERVICE.contains(&uri.path()) {
            return false;
        }
        self.be_strict();
        true
    }

    /// Looks at the time, for good.
    pub(super) async fn watch(&self) {
        let mut in_time_at = Instant::now();
        loop {
            let slept_at = Instant::now();
            tokio::time::sleep(PAUSE).await;
            if slept_at.elapsed() < PAUSE + LATE || !self.is_much() {
                in_time_at = Instant::now();
            } else if in_time_at.elapsed() > LATE_FOR {
                let under_way = self.under_way.load(Ordering::Relaxed);
                tracing::warn!(under_way, "more requests than can be answered: some are refused");
                self.be_strict();
                in_time_at = Instant::now();
            }
        }
    }

    fn is_much(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) >= MANY
    }

    fn be_strict(&self) {
        let calm = u64::try_from(CALM_FOR.as_millis()).unwrap_or(u64::MAX);
        self.strict_until.store(self.now().saturating_add(calm), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
