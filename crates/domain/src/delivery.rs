//! Deliveries: when an event is sent to a webhook, and again, and when not any more.
//!
//! An *event* is matched with the *webhooks* that watch for it; each pair is a *delivery*. Every
//! time it is sent is an *attempt*, and what came of it an *outcome*. [`next_step`] says what a
//! delivery does after an attempt; [`Health`] says how much a webhook is sent at a time, so that a
//! receiver that fails is asked now and then and not hammered.

use std::time::Duration;

use crate::text::Invalid;
use crate::time::Timestamp;

/// How long after each attempt the next one comes.
const PAUSES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

/// How often a delivery is attempted.
pub const ATTEMPTS_MAX: u32 = 10;

/// The latest that a receiver can ask to be called again.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// By which part of itself a pause is longer at the most, so that not all come back at once.
const JITTER: f64 = 0.1;

/// For how long a webhook may fail until it is disabled.
pub const FAILING_MAX: Duration = Duration::from_hours(5 * 24);

/// How long deliveries and events are kept.
pub const KEPT: Duration = Duration::from_hours(30 * 24);

/// How many deliveries a disabled webhook keeps.
pub const HELD_MAX: i64 = 100_000;

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver took it.
    Taken,
    /// The receiver wants nothing of it ever again.
    Gone,
    /// It did not come through, or the receiver refused it.
    Failed {
        /// How long the receiver asked to be left alone.
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// What an answer with this status means. Redirects are not followed, so they are failures.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Taken,
            410 => Self::Gone,
            429 | 503 => Self::Failed { retry_after },
            _ => Self::Failed { retry_after: None },
        }
    }
}

/// What a delivery does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is delivered.
    Delivered,
    /// It is attempted again, then or later.
    Retry(Timestamp),
    /// Nothing: it has failed for good.
    Failed,
}

/// What a delivery does after its attempt with number `attempt`, from 1, ended `now`. `random` is
/// from 0 up to 1.
pub fn next_step(attempt: u32, outcome: Outcome, now: Timestamp, random: f64) -> Step {
    let retry_after = match outcome {
        Outcome::Taken => return Step::Delivered,
        // Its webhook is disabled; should somebody enable it, it is sent again.
        Outcome::Gone => return Step::Retry(now),
        Outcome::Failed { retry_after } => retry_after.unwrap_or_default().min(RETRY_AFTER_MAX),
    };
    let pause = attempt.checked_sub(1).and_then(|at| PAUSES.get(at as usize));
    match pause {
        Some(&pause) => Step::Retry(later(now, longer(pause, random).max(retry_after))),
        None => Step::Failed,
    }
}

fn longer(pause: Duration, random: f64) -> Duration {
    pause.mul_f64(1.0 + JITTER * random.clamp(0.0, 1.0))
}

/// Rounded up: never early.
fn later(now: Timestamp, pause: Duration) -> Timestamp {
    let ms = i64::try_from(pause.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
    Timestamp::from_ms(now.ms().saturating_add(ms))
}

/// How a webhook's receiver has been doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// How many attempts have failed since the last one that did not.
    pub failures: u32,
    /// How many attempts may be under way at the same time.
    pub slots: u32,
    /// Until when nothing is sent.
    pub open_until: Option<Timestamp>,
}

/// The most attempts of one webhook that are under way at the same time.
pub const SLOTS_MAX: u32 = 8;

/// How many attempts a receiver that nothing is known of gets at the same time.
const SLOTS_FIRST: u32 = 2;

/// After how many failures in a row a receiver is left alone for a while.
const FAILURES_MAX: u32 = 5;

/// How long it is left alone at first, and at the most.
const REST_FIRST: Duration = Duration::from_secs(10);
const REST_MAX: Duration = Duration::from_mins(10);

impl Default for Health {
    fn default() -> Self {
        Self { failures: 0, slots: SLOTS_FIRST, open_until: None }
    }
}

impl Health {
    /// How it is after an attempt.
    pub fn after(self, outcome: Outcome, now: Timestamp, random: f64) -> Self {
        if outcome == Outcome::Taken {
            let slots = self.slots.saturating_mul(2).clamp(1, SLOTS_MAX);
            return Self { failures: 0, slots, open_until: None };
        }
        let failures = self.failures.saturating_add(1);
        let rest = failures.checked_sub(FAILURES_MAX).map(|more| {
            let rest = REST_FIRST.saturating_mul(1 << more.min(16)).min(REST_MAX);
            later(now, longer(rest, random))
        });
        Self { failures, slots: 1, open_until: rest.max(self.open_until) }
    }

    /// Whether nothing is sent now.
    pub fn is_open(self, now: Timestamp) -> bool {
        self.open_until.is_some_and(|until| until > now)
    }

    /// Whether the last attempt failed.
    pub fn is_failing(self) -> bool {
        self.failures > 0
    }
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// How far a delivery has come.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Status {$($(#[$doc])* $name,)*}

        impl Status {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in the interface.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $text,)*}
            }
        }

        impl std::str::FromStr for Status {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($text => Ok(Self::$name),)*
                    _ => {
                        let names: Vec<_> = Self::ALL.iter().map(|one| one.as_str()).collect();
                        let message = format!("must be one of {}", names.join(", "));
                        Err(Invalid::new("invalid_enum_value", message))
                    }
                }
            }
        }
    };
}

statuses! {
    /// It is still to be sent, or sent again.
    Pending = "pending",
    /// The receiver took it.
    Delivered = "delivered",
    /// It was attempted as often as it may be.
    Failed = "failed",
    /// It is to be sent when its webhook is enabled.
    Held = "held",
}

/// What a delivery waits in line with: a receiver gets new events while others come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Samples that somebody asked for; they are sent whatever is up with the webhook.
    Test,
    /// What has not been attempted yet.
    Fresh,
    /// What is attempted again.
    Retry,
}

impl Lane {
    /// Every one, the first first.
    pub const ALL: [Self; 3] = [Self::Test, Self::Fresh, Self::Retry];

    /// Its number.
    pub const fn number(self) -> i64 {
        match self {
            Self::Test => 0,
            Self::Fresh => 1,
            Self::Retry => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FAILED: Outcome = Outcome::Failed { retry_after: None };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn it_is_attempted_ten_times_at_the_stated_times() {
        let pauses: Vec<i64> = (1..ATTEMPTS_MAX)
            .map(|attempt| match next_step(attempt, FAILED, at(0), 0.0) {
                Step::Retry(due) => due.ms() / 1_000,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(pauses, [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
        assert_eq!(next_step(ATTEMPTS_MAX, FAILED, at(0), 0.0), Step::Failed);
        assert_eq!(next_step(3, Outcome::Taken, at(0), 0.0), Step::Delivered);
    }

    #[test]
    fn the_receiver_can_only_make_it_later() {
        let step = |status, seconds| {
            let asked = Some(Duration::from_secs(seconds));
            match next_step(1, Outcome::of_status(status, asked), at(0), 0.0) {
                Step::Retry(due) => due.ms(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(step(429, 1), 5_000);
        assert_eq!(step(429, 60), 60_000);
        assert_eq!(step(503, u64::MAX), 86_400_000);
        assert_eq!(step(500, 60), 5_000, "nobody said that a 500 has it");
    }

    #[test]
    fn a_failing_receiver_is_left_alone_longer_and_longer() {
        let mut health = Health::default();
        let mut rests = Vec::new();
        for _ in 0..14 {
            health = health.after(FAILED, at(0), 0.0);
            rests.push(health.open_until.map_or(0, |until| until.ms() / 1_000));
        }
        assert_eq!(rests, [0, 0, 0, 0, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600]);
        assert_eq!(health.slots, 1);
        for slots in [2, 4, 8, 8] {
            health = health.after(Outcome::Taken, at(0), 0.0);
            assert_eq!(health, Health { failures: 0, slots, open_until: None });
        }
    }

    proptest! {
        #[test]
        fn never_early_and_at_most_a_tenth_late(
            attempt in 1_u32..ATTEMPTS_MAX, random in 0.0..1.0, now in 0_i64..1 << 45
        ) {
            let pause = i64::try_from(PAUSES[attempt as usize - 1].as_millis()).unwrap();
            let Step::Retry(due) = next_step(attempt, FAILED, at(now), random) else {
                return Err(TestCaseError::fail("it is to be attempted again"));
            };
            prop_assert!((now + pause..=now + pause + pause / 10 + 1).contains(&due.ms()));
        }
    }
}
