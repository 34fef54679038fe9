//! Deliveries of events to webhooks: the schedule of attempts, and the circuit breaker of each
//! webhook.
//!
//! An *event* is matched with the *webhooks* that subscribe to it, and each pair is a *delivery*.
//! Each request that sends it is an *attempt*, and the attempt's result an *outcome*. [`next_step`]
//! returns the next step of a delivery after an attempt. [`CircuitBreaker`] limits the concurrent
//! attempts of a webhook, so that a failing receiver gets few requests.

use std::time::Duration;

use crate::named_enum;
use crate::time::Timestamp;

/// The back-off after each attempt.
const BACKOFFS: [Duration; 11] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

/// The limit on the delay that a receiver can request by `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The limit on the random part that lengthens a back-off, as a fraction of it. It spreads
/// deliveries that failed at the same time.
const JITTER: f64 = 0.1;

/// The time for which all attempts of a webhook may fail before it is disabled.
pub const FAILING_TIMEOUT: Duration = Duration::from_hours(5 * 24);

/// The retention of deliveries and events.
pub const RETENTION: Duration = Duration::from_hours(30 * 24);

/// The limit on deliveries that a disabled webhook keeps.
pub const DISABLED_BACKLOG_MAX: i64 = 100_000;

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The receiver accepted the event.
    Accepted,
    /// The receiver responded that it is gone for good (410).
    Gone,
    /// The receiver rejected the event, or there was no response.
    Failed {
        /// The delay that the receiver requested.
        retry_after: Option<Duration>,
    },
}

impl AttemptOutcome {
    /// Returns the outcome of a response with this status. Redirects are not followed, so they are
    /// failures.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Accepted,
            410 => Self::Gone,
            429 | 503 => Self::Failed { retry_after },
            _ => Self::Failed { retry_after: None },
        }
    }
}

/// The next step of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStep {
    /// None: it is delivered.
    Delivered,
    /// The next attempt, at this time or later.
    Retry(Timestamp),
    /// None: it has failed for good.
    Failed,
}

/// Returns the next step of a delivery after attempt number `attempt`, from 1, which ended `now`.
///
/// `random` is from 0 up to 1.
pub fn next_step(
    attempt: u32,
    outcome: AttemptOutcome,
    now: Timestamp,
    random: f64,
) -> DeliveryStep {
    let retry_after = match outcome {
        AttemptOutcome::Accepted => return DeliveryStep::Delivered,
        // Its webhook gets disabled. If it is enabled again, the event is sent again.
        AttemptOutcome::Gone => return DeliveryStep::Retry(now),
        AttemptOutcome::Failed { retry_after } => {
            retry_after.unwrap_or_default().min(RETRY_AFTER_MAX)
        }
    };
    let pause = attempt.checked_sub(1).and_then(|at| BACKOFFS.get(at as usize));
    match pause {
        Some(&pause) => {
            DeliveryStep::Retry(later(now, with_jitter(pause, random).max(retry_after)))
        }
        None => DeliveryStep::Failed,
    }
}

fn with_jitter(pause: Duration, random: f64) -> Duration {
    pause.mul_f64(1.0 + JITTER * random.clamp(0.0, 1.0))
}

/// Returns the end of a pause, rounded up so that it is never early.
fn later(now: Timestamp, pause: Duration) -> Timestamp {
    let ms = i64::try_from(pause.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
    Timestamp::from_ms(now.ms().saturating_add(ms))
}

/// The state of a webhook's circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitBreaker {
    /// The number of consecutive failed attempts.
    pub failures: u32,
    /// The limit on concurrent attempts.
    pub slots: u32,
    /// The time until which the circuit breaker is open, so that no attempts are made.
    pub open_until: Option<Timestamp>,
}

/// The limit on concurrent attempts of one webhook.
pub const SLOTS_MAX: u32 = 8;

/// The initial limit on concurrent attempts of a webhook.
const SLOTS_FIRST: u32 = 2;

/// The number of consecutive failures that opens the circuit breaker.
const FAILURES_TO_OPEN: u32 = 5;

/// The first and the longest time for which the circuit breaker stays open.
const OPEN_BACKOFF_FIRST: Duration = Duration::from_secs(10);
const OPEN_BACKOFF_MAX: Duration = Duration::from_mins(10);

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self { failures: 0, slots: SLOTS_FIRST, open_until: None }
    }
}

impl CircuitBreaker {
    /// Returns the state after an attempt.
    pub fn after(self, outcome: AttemptOutcome, now: Timestamp, random: f64) -> Self {
        if outcome == AttemptOutcome::Accepted {
            let slots = self.slots.saturating_mul(2).clamp(1, SLOTS_MAX);
            return Self { failures: 0, slots, open_until: None };
        }
        let failures = self.failures.saturating_add(1);
        let backoff = failures.checked_sub(FAILURES_TO_OPEN).map(|more| {
            let rest = OPEN_BACKOFF_FIRST.saturating_mul(1 << more.min(16)).min(OPEN_BACKOFF_MAX);
            later(now, with_jitter(rest, random))
        });
        Self { failures, slots: 1, open_until: backoff.max(self.open_until) }
    }

    /// Returns true if the circuit breaker is open now.
    pub fn is_open(self, now: Timestamp) -> bool {
        self.open_until.is_some_and(|until| until > now)
    }

    /// Returns true if the last attempt failed.
    pub fn is_failing(self) -> bool {
        self.failures > 0
    }
}

named_enum! {
    /// The status of a delivery.
    pub enum DeliveryStatus {
        /// Its first or next attempt is due now or later.
        Pending = "pending",
        /// The receiver accepted it.
        Delivered = "delivered",
        /// Its last permitted attempt failed.
        Failed = "failed",
        /// It is paused until its webhook is enabled.
        Paused = "held",
    }
}

/// The lane of a delivery in its webhook's queue. With lanes, retries don't delay new events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Samples that a client requested. They are sent in any state of the webhook.
    Test,
    /// Deliveries before their first attempt.
    FirstAttempt,
    /// Deliveries after a failed attempt.
    Retry,
}

impl Lane {
    /// Every lane, in the order of priority.
    pub const ALL: [Self; 3] = [Self::Test, Self::FirstAttempt, Self::Retry];

    /// Returns the lane's number.
    pub const fn number(self) -> i64 {
        match self {
            Self::Test => 0,
            Self::FirstAttempt => 1,
            Self::Retry => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ATTEMPTS_MAX: u32 = 12;

    const FAILED: AttemptOutcome = AttemptOutcome::Failed { retry_after: None };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn a_delivery_is_attempted_twelve_times_on_schedule() {
        let backoffs: Vec<i64> = (1..ATTEMPTS_MAX)
            .map(|attempt| match next_step(attempt, FAILED, at(0), 0.0) {
                DeliveryStep::Retry(due) => due.ms() / 1_000,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(backoffs, [1, 5, 30, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
        assert_eq!(next_step(ATTEMPTS_MAX, FAILED, at(0), 0.0), DeliveryStep::Failed);
        assert_eq!(next_step(3, AttemptOutcome::Accepted, at(0), 0.0), DeliveryStep::Delivered);
    }

    #[test]
    fn retry_after_can_only_delay_the_next_attempt() {
        let step = |status, seconds| {
            let asked = Some(Duration::from_secs(seconds));
            match next_step(1, AttemptOutcome::of_status(status, asked), at(0), 0.0) {
                DeliveryStep::Retry(due) => due.ms(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(step(429, 0), 1_000);
        assert_eq!(step(429, 60), 60_000);
        assert_eq!(step(503, u64::MAX), 86_400_000);
        assert_eq!(step(500, 60), 1_000, "the header has an effect on 429 and 503 only");
    }

    #[test]
    fn consecutive_failures_open_the_circuit_breaker_for_longer() {
        let mut health = CircuitBreaker::default();
        let mut open_seconds = Vec::new();
        for _ in 0..14 {
            health = health.after(FAILED, at(0), 0.0);
            open_seconds.push(health.open_until.map_or(0, |until| until.ms() / 1_000));
        }
        assert_eq!(open_seconds, [0, 0, 0, 0, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600]);
        assert_eq!(health.slots, 1);
        for slots in [2, 4, 8, 8] {
            health = health.after(AttemptOutcome::Accepted, at(0), 0.0);
            assert_eq!(health, CircuitBreaker { failures: 0, slots, open_until: None });
        }
    }

    proptest! {
        #[test]
        fn retries_are_never_early_and_at_most_a_tenth_late(
            attempt in 1_u32..ATTEMPTS_MAX, random in 0.0..1.0, now in 0_i64..1 << 45
        ) {
            let pause = i64::try_from(BACKOFFS[attempt as usize - 1].as_millis()).unwrap();
            let DeliveryStep::Retry(due) = next_step(attempt, FAILED, at(now), random) else {
                return Err(TestCaseError::fail("the delivery is not retried"));
            };
            prop_assert!((now + pause..=now + pause + pause / 10 + 1).contains(&due.ms()));
        }
    }
}
