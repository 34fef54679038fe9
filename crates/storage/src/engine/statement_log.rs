//! Statements as they run, for tests: their counts, their plans, and what change tracking takes them
//! to change.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use galley_domain::{ContentPieceId, WorkspaceId};

use crate::engine::change_tracking;
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
    /// True if cached responses may show the rows that it changes.
    pub is_tracked: bool,
    /// The only workspace that change tracking takes it to change.
    pub workspace: Option<WorkspaceId>,
    /// The only piece that change tracking takes it to change.
    pub piece: Option<ContentPieceId>,
}

impl StatementLog {
    /// A log that also keeps each statement that changes rows.
    pub fn with_changes() -> Self {
        Self { changes: Some(Mutex::default()), ..Self::default() }
    }

    pub(crate) fn record(&self, sql: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(sql) {
            Some(count) => *count += 1,
            None => drop(counts.insert(sql.to_owned(), 1)),
        }
    }

    pub(crate) fn record_change(&self, sql: &str, params: &[Value<'_>], is_tracked: bool) {
        let Some(changes) = &self.changes else { return };
        let (workspace, piece) = change_tracking::named_by(sql, params);
        let params = params.iter().cloned().map(Value::into_owned).collect();
        let change = ChangeStatement { sql: sql.to_owned(), params, is_tracked, workspace, piece };
        changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    }

    /// The statements so far with their counts, forgetting them.
    pub fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The statements that changed rows so far, in their order, forgetting them.
    pub fn take_changes(&self) -> Vec<ChangeStatement> {
        let Some(changes) = &self.changes else { return Vec::new() };
        std::mem::take(&mut *changes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
