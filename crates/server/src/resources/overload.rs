//! More requests than can be answered: some are refused as they come in, before they cost anything.
//!
//! It shows in how many are under way. Many for a moment are a crowd, which is served. Many all the time mean that they come
//! faster than they go, whatever it is that they wait for: from then on no more than [`MANY`] are under way, until nobody
//! has been refused for a while. So those who are let in are answered soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::Uri;

/// So many requests under way are many: as many writes as SQLite commits together.
const MANY: usize = 128;

/// How often they are counted.
const PAUSE: Duration = Duration::from_millis(10);

/// For how long they have to be many.
const MANY_FOR: Duration = Duration::from_secs(1);

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

tokio::task_local! {
    /// Where the task's own request is counted.
    static COUNT: Arc<AtomicUsize>;
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct InFlightRequest(Arc<AtomicUsize>);

impl InFlightRequest {
    /// Lets [`uncounted`] know of it.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        COUNT.scope(Arc::clone(&self.0), work).await
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for what holds up nobody else: a client that sends slowly, or a turn at what takes long, for which others have
/// bounds of their own. Such a request is not counted meanwhile.
pub(crate) async fn uncounted<T>(work: impl Future<Output = T>) -> T {
    /// Counts it again, whatever becomes of it.
    struct Aside(Arc<AtomicUsize>);

    impl Drop for Aside {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let count = COUNT.try_with(Arc::clone).ok();
    let _aside = count.map(|count| {
        count.fetch_sub(1, Ordering::Relaxed);
        Aside(count)
    });
    work.await
}

impl Overload {
    pub(crate) fn new() -> Self {
        let strict_until = AtomicU64::new(0);
        Self { started: Instant::now(), under_way: Arc::default(), strict_until }
    }

    /// Counts a request until what is returned is dropped.
    pub(crate) fn start_request(&self) -> InFlightRequest {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        InFlightRequest(Arc::clone(&self.under_way))
    }

    /// Whether a request is to be refused.
    pub(crate) fn should_reject(&self, uri: &Uri) -> bool {
        if !self.is_much() || !self.is_strict() || SERVICE.contains(&uri.path()) {
            return false;
        }
        self.be_strict();
        true
    }

    /// Counts, for good.
    pub(crate) async fn watch(&self) {
        let mut few_at = Instant::now();
        loop {
            tokio::time::sleep(PAUSE).await;
            if !self.is_much() {
                few_at = Instant::now();
            } else if few_at.elapsed() > MANY_FOR && !self.is_strict() {
                let under_way = self.under_way.load(Ordering::Relaxed);
                tracing::warn!(under_way, "more requests than can be answered: some are refused");
                self.be_strict();
            }
        }
    }

    fn is_much(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) >= MANY
    }

    fn is_strict(&self) -> bool {
        self.now() < self.strict_until.load(Ordering::Relaxed)
    }

    fn be_strict(&self) {
        let calm = u64::try_from(CALM_FOR.as_millis()).unwrap_or(u64::MAX);
        self.strict_until.store(self.now().saturating_add(calm), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
