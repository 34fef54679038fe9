//! Which statements ran, and how often: for tests that count queries or look at their plans.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counts the statements of a database that was opened with it.
#[derive(Debug, Default)]
pub struct StatementLog(Mutex<BTreeMap<String, u64>>);

impl StatementLog {
    pub(crate) fn record(&self, sql: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(sql) {
            Some(count) => *count += 1,
            None => drop(counts.insert(sql.to_owned(), 1)),
        }
    }

    /// The statements so far with their counts, forgetting them.
    pub fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
