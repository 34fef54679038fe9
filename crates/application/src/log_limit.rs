//! A rate limit for log lines that clients or receivers cause, such as rejected credentials: one
//! line for each key in an interval.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The limit on tracked keys.
const KEYS_MAX: usize = 1_000;

/// The interval between two lines of one key.
const INTERVAL: Duration = Duration::from_mins(1);

/// The keys of which a line was logged recently.
#[derive(Debug)]
pub struct LogLimit<K>(Mutex<HashMap<K, Logged>>);

#[derive(Debug)]
struct Logged {
    at: Instant,
    suppressed: u64,
}

impl<K: Eq + Hash> Default for LogLimit<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> LogLimit<K> {
    /// Returns the number of suppressed lines of this key since its last line if a line is to be
    /// logged, or `None`.
    pub fn admit(&self, key: K) -> Option<u64> {
        self.admit_at(key, Instant::now())
    }

    fn admit_at(&self, key: K, now: Instant) -> Option<u64> {
        let mut logged = self.0.lock();
        if let Some(known) = logged.get_mut(&key) {
            if now.duration_since(known.at) < INTERVAL {
                known.suppressed += 1;
                return None;
            }
            let suppressed = known.suppressed;
            *known = Logged { at: now, suppressed: 0 };
            return Some(suppressed);
        }
        if logged.len() >= KEYS_MAX {
            logged.retain(|_, known| now.duration_since(known.at) < INTERVAL);
        }
        // More distinct keys in one interval are an attack, of which enough lines are logged.
        if logged.len() >= KEYS_MAX {
            return None;
        }
        logged.insert(key, Logged { at: now, suppressed: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_line_in_an_interval() {
        let limit = LogLimit::default();
        let start = Instant::now();
        assert_eq!(limit.admit_at(1, start), Some(0));
        assert_eq!(limit.admit_at(1, start), None);
        assert_eq!(limit.admit_at(2, start), Some(0));
        assert_eq!(limit.admit_at(1, start + INTERVAL), Some(1));
        assert_eq!(limit.admit_at(1, start + 2 * INTERVAL), Some(0));
    }

    #[test]
    fn keys_are_bounded() {
        let limit = LogLimit::default();
        let start = Instant::now();
        let logged = (0..2_000).filter(|&key| limit.admit_at(key, start).is_some()).count();
        assert_eq!(logged, KEYS_MAX);
        assert_eq!(limit.admit_at(5_000, start + INTERVAL), Some(0));
    }
}
