//! The state that the writes of a group share.

use std::collections::HashMap;
use std::sync::Arc;

use galley_domain::{OrderKey, WorkspaceId};
use parking_lot::Mutex;

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
