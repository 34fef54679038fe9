//! The state that the writes of a group share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use galley_domain::{OrderKey, WorkspaceId};
use parking_lot::Mutex;

use crate::engine::change_tracking::ChangeScope;
use crate::engine::new_event::AppendedEvent;

/// The state of a transaction that several writes share.
#[derive(Debug, Default)]
pub(crate) struct GroupState {
    list_ends: Mutex<HashMap<WorkspaceId, Arc<ListEnd>>>,
}

/// The end of a workspace's list: its last order key, once one write has read it. Each write takes
/// the next key from here, so no write waits for the insert of another.
pub(crate) type ListEnd = tokio::sync::Mutex<Option<Option<OrderKey>>>;

impl GroupState {
    /// Returns the end of a workspace's list.
    pub(crate) fn list_end(&self, workspace: WorkspaceId) -> Arc<ListEnd> {
        Arc::clone(self.list_ends.lock().entry(workspace).or_default())
    }
}

/// The changes of a write that are recorded at the end of its transaction.
#[derive(Debug)]
pub(crate) struct TransactionChanges {
    pub(crate) must_notify: bool,
    pub(crate) scope: ChangeScope,
    pub(crate) next: BTreeSet<WorkspaceId>,
    pub(crate) events: Vec<AppendedEvent>,
}
