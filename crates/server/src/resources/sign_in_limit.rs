//! The limit on sign-ins of a client: requests for mails, and attempts to use links and codes.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use galley_application::{Error, Reason, Rejection};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

/// The sign-ins that a client may try in an hour. Several people may share an address.
const PER_HOUR: NonZeroU32 = NonZeroU32::new(60).expect("it is not zero");

/// The limit of each client.
pub(crate) struct SignInLimit(DefaultKeyedRateLimiter<Option<IpAddr>>);

impl Default for SignInLimit {
    fn default() -> Self {
        Self(RateLimiter::keyed(Quota::per_hour(PER_HOUR)))
    }
}

impl SignInLimit {
    /// Counts an attempt of a client, and rejects it beyond the limit.
    pub(crate) fn check(&self, client: Option<IpAddr>) -> Result<(), Error> {
        let Err(rejected) = self.0.check_key(&client.map(network)) else { return Ok(()) };
        let wait = rejected.wait_time_from(DefaultClock::default().now());
        let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX - 1) + 1;
        let detail = format!("a client may try to sign in {PER_HOUR} times an hour");
        Err(Rejection::new(Reason::TooManySignIns, detail).retry_after(seconds).into())
    }

    /// Deletes the counts of clients that have tried nothing for long.
    pub(crate) fn delete_full_buckets(&self) {
        self.0.retain_recent();
        self.0.shrink_to_fit();
    }
}

impl fmt::Debug for SignInLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SignInLimit")
    }
}

/// Returns the address that stands for a client's network. A client chooses its address within a
/// network of IPv6 (/64) freely.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
    }
}
