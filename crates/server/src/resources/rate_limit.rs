//! The rate limit of tokens and sessions, in requests per minute.
//!
//! Each of them has a bucket that refills evenly (GCRA). Responses report its status, after the
//! IETF's draft on RateLimit header fields.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, HeaderValue};
use galley_application::{Error, Reason, Rejection};
use galley_domain::Credential;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

/// The policy's window in seconds.
const WINDOW: u32 = 60;

type Buckets = RateLimiter<
    Credential,
    HashMapStateStore<Credential>,
    DefaultClock,
    StateInformationMiddleware,
>;

/// The rate limit of each credential, if there is one.
pub(crate) struct RateLimit(Option<(NonZeroU32, Buckets)>);

/// The rate-limit status of a credential. Clones share it, from the check of the request to the
/// headers of the response.
#[derive(Debug, Clone, Default)]
pub(crate) struct RateLimitStatus(Arc<OnceLock<HeaderMap>>);

impl RateLimitStatus {
    /// Adds the headers that the check of the request produced.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if let Some(status) = self.0.get() {
            headers.extend(status.clone());
        }
    }
}

impl RateLimit {
    /// Creates a limit of `per_minute` requests. With 0 there is no limit.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self(NonZeroU32::new(per_minute).map(|per_minute| {
            let buckets = RateLimiter::hashmap(Quota::per_minute(per_minute));
            (per_minute, buckets.with_middleware())
        }))
    }

    /// Deletes full buckets.
    pub(crate) fn delete_full_buckets(&self) {
        if let Some((_, buckets)) = &self.0 {
            buckets.retain_recent();
            buckets.shrink_to_fit();
        }
    }

    /// Counts a request of a credential, and rejects it beyond the limit.
    pub(crate) fn check(
        &self,
        credential: Credential,
        standing: Option<&RateLimitStatus>,
    ) -> Result<(), Error> {
        let Some((per_minute, buckets)) = &self.0 else { return Ok(()) };
        let checked = buckets.check_key(&credential);
        let remaining = checked
            .as_ref()
            .map_or(0, governor::middleware::StateSnapshot::remaining_burst_capacity);
        if let Some(RateLimitStatus(standing)) = standing {
            let _ = standing.set(headers(per_minute.get(), remaining));
        }
        let Err(rejected) = checked else { return Ok(()) };
        let wait = rejected.wait_time_from(DefaultClock::default().now());
        let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX - 1) + 1;
        let detail = format!("a token may send {per_minute} requests per minute");
        Err(Rejection::new(Reason::RateLimited, detail).retry_after(seconds).into())
    }
}

/// Returns the headers of the rate limit. `t` is the number of seconds until the bucket is full.
fn headers(per_minute: u32, remaining: u32) -> HeaderMap {
    let used = u64::from(per_minute.saturating_sub(remaining));
    let reset = (used * u64::from(WINDOW)).div_ceil(u64::from(per_minute));
    let mut headers = HeaderMap::new();
    let mut insert = |name, value: String| {
        let value = HeaderValue::try_from(value).expect("numbers are ASCII");
        headers.insert(name, value);
    };
    insert("ratelimit-policy", format!("\"default\";q={per_minute};w={WINDOW}"));
    insert("ratelimit", format!("\"default\";r={remaining};t={reset}"));
    headers
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_minute = self.0.as_ref().map(|(per_minute, _)| per_minute.get());
        out.debug_tuple("RateLimit").field(&per_minute).finish()
    }
}
