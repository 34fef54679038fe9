//! The changes of a transaction.

use std::collections::BTreeSet;

use galley_domain::WorkspaceId;
use galley_domain::audit::AuditEntry;

use crate::engine::change_tracking::{Affects, ChangeScope};
use crate::engine::new_event::AppendedEvent;

/// The changes of a transaction, or of one write in it, that its end records.
#[derive(Debug, Default)]
pub(crate) struct TransactionChanges {
    pub(crate) must_notify: bool,
    /// True if a statement has changed rows.
    pub(crate) has_changed: bool,
    pub(crate) scope: ChangeScope,
    /// The workspaces that have their next generation already.
    pub(crate) next: BTreeSet<WorkspaceId>,
    /// The events to insert, and their size in bytes.
    events: Vec<AppendedEvent>,
    events_size: usize,
    /// The entries of the audit log to insert.
    audit_entries: Vec<(WorkspaceId, AuditEntry)>,
}

impl TransactionChanges {
    /// Records that a statement has changed rows.
    pub(crate) fn record(&mut self, affects: Affects) {
        self.has_changed = true;
        self.scope.add_change(affects);
    }

    /// Adds the changes of another write.
    pub(crate) fn add(&mut self, other: Self) {
        self.must_notify |= other.must_notify;
        self.has_changed |= other.has_changed;
        self.scope.add(other.scope);
        self.next.extend(other.next);
        self.events.extend(other.events);
        self.events_size += other.events_size;
        self.audit_entries.extend(other.audit_entries);
    }

    /// Appends an entry of the audit log.
    pub(crate) fn append_audit_entry(&mut self, workspace: WorkspaceId, entry: AuditEntry) {
        self.audit_entries.push((workspace, entry));
    }

    /// Takes the entries of the audit log.
    pub(crate) fn take_audit_entries(&mut self) -> Vec<(WorkspaceId, AuditEntry)> {
        std::mem::take(&mut self.audit_entries)
    }

    /// Appends events. Returns the size of all that have not been taken yet.
    pub(crate) fn append_events(&mut self, events: impl Iterator<Item = AppendedEvent>) -> usize {
        let before = self.events.len();
        self.events.extend(events);
        self.events_size += self.events[before..].iter().map(AppendedEvent::size).sum::<usize>();
        self.events_size
    }

    /// Takes the events.
    pub(crate) fn take_events(&mut self) -> Vec<AppendedEvent> {
        self.events_size = 0;
        std::mem::take(&mut self.events)
    }
}
