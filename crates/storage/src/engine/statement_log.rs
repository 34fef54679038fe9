//! A log of the statements that ran, for tests: their counts, their plans, and their scope in
//! change tracking.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::engine::change_tracking::Affects;
use crate::engine::value::Value;

/// Counts the statements of a database that was opened with it.
#[derive(Debug, Default)]
pub struct StatementLog {
    counts: Mutex<BTreeMap<String, u64>>,
    changes: Option<Mutex<Vec<ChangeStatement>>>,
}

/// A statement that changes rows, as it ran.
#[derive(Debug, Clone)]
pub struct ChangeStatement {
    /// Its text.
    pub sql: String,
    /// Its parameters.
    pub params: Vec<Value<'static>>,
    /// The data that it affects.
    pub affects: Affects,
}

impl StatementLog {
    /// Creates a log that also stores each statement that changes rows.
    pub fn with_changes() -> Self {
        Self { changes: Some(Mutex::default()), ..Self::default() }
    }

    pub(crate) fn record(&self, sql: &str) {
        let mut counts = self.counts.lock();
        match counts.get_mut(sql) {
            Some(count) => *count += 1,
            None => drop(counts.insert(sql.to_owned(), 1)),
        }
    }

    pub(crate) fn record_change(&self, sql: &str, params: &[Value<'_>], affects: Affects) {
        let Some(changes) = &self.changes else { return };
        let params = params.iter().cloned().map(Value::into_owned).collect();
        let change = ChangeStatement { sql: sql.to_owned(), params, affects };
        changes.lock().push(change);
    }

    /// Returns the statements so far with their counts, and clears them.
    pub fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.counts.lock())
    }

    /// Returns the statements so far that changed rows, in order, and clears them.
    pub fn take_changes(&self) -> Vec<ChangeStatement> {
        let Some(changes) = &self.changes else { return Vec::new() };
        std::mem::take(&mut *changes.lock())
    }
}
