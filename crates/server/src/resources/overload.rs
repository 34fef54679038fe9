//! Overload detection: requests beyond the capacity are rejected on arrival, before they cost
//! anything.
//!
//! The measure is the number of running requests. A short peak is a burst, and all of it is served.
//! A lasting one means that requests arrive faster than they complete, whatever resource they wait
//! for. From then on at most [`RUNNING_LIMIT`] requests run, until none has been rejected for a
//! while. So the admitted requests complete soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::Uri;

/// The limit of running requests under overload: as many as the writes that SQLite commits
/// together.
const RUNNING_LIMIT: usize = 128;

/// The interval at which the running requests are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The time for which the limit must be exceeded before requests are rejected.
const OVERLOAD_AFTER: Duration = Duration::from_secs(1);

/// The time without a rejection after which the overload has ended.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(2);

/// The paths of health checks, which are never rejected.
const HEALTH_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// The number of running requests, and the state of the overload.
#[derive(Debug)]
pub(crate) struct OverloadDetector {
    started: Instant,
    running: Arc<AtomicUsize>,
    /// The time until which the limit [`RUNNING_LIMIT`] applies, in milliseconds since the start.
    limiting_until: AtomicU64,
}

tokio::task_local! {
    /// The counter that includes the task's own request.
    static RUNNING_COUNTER: Arc<AtomicUsize>;
}

/// A running request, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightRequest(Arc<AtomicUsize>);

impl InFlightRequest {
    /// Runs `work` so that [`uncounted`] finds the counter.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        RUNNING_COUNTER.scope(Arc::clone(&self.0), work).await
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs `work` without counting its request as running. It serves waits that delay no other
/// request: for a slow client's body, or for a resource with limits of its own.
pub(crate) async fn uncounted<T>(work: impl Future<Output = T>) -> T {
    /// Counts the request again, however `work` ends.
    struct CountAgain(Arc<AtomicUsize>);

    impl Drop for CountAgain {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let count = RUNNING_COUNTER.try_with(Arc::clone).ok();
    let _aside = count.map(|count| {
        count.fetch_sub(1, Ordering::Relaxed);
        CountAgain(count)
    });
    work.await
}

impl OverloadDetector {
    pub(crate) fn new() -> Self {
        let limiting_until = AtomicU64::new(0);
        Self { started: Instant::now(), running: Arc::default(), limiting_until }
    }

    /// Counts a request until the returned value is dropped.
    pub(crate) fn start_request(&self) -> InFlightRequest {
        self.running.fetch_add(1, Ordering::Relaxed);
        InFlightRequest(Arc::clone(&self.running))
    }

    /// Returns true if a request is to be rejected.
    pub(crate) fn should_reject(&self, uri: &Uri) -> bool {
        if !self.is_at_limit() || !self.is_limiting() || HEALTH_PATHS.contains(&uri.path()) {
            return false;
        }
        self.extend_limiting();
        true
    }

    /// Checks the running requests periodically. Never returns.
    pub(crate) async fn monitor(&self) {
        let mut below_limit_at = Instant::now();
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if !self.is_at_limit() {
                below_limit_at = Instant::now();
            } else if below_limit_at.elapsed() > OVERLOAD_AFTER && !self.is_limiting() {
                let under_way = self.running.load(Ordering::Relaxed);
                tracing::warn!(under_way, "the server is overloaded: some requests are rejected");
                self.extend_limiting();
            }
        }
    }

    fn is_at_limit(&self) -> bool {
        self.running.load(Ordering::Relaxed) >= RUNNING_LIMIT
    }

    fn is_limiting(&self) -> bool {
        self.now() < self.limiting_until.load(Ordering::Relaxed)
    }

    fn extend_limiting(&self) {
        let calm = u64::try_from(RECOVERY_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        self.limiting_until.store(self.now().saturating_add(calm), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
