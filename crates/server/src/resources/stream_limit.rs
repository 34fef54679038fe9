//! The limits of open event streams: one for all workspaces, and a lower one for each, so that one
//! workspace can't use up the limit of all.

use std::collections::HashMap;
use std::sync::Arc;

use galley_domain::WorkspaceId;
use parking_lot::{Mutex, MutexGuard};

/// The limit of all workspaces together.
const STREAM_LIMIT: usize = 1_000;

/// The limit of each workspace.
const WORKSPACE_STREAM_LIMIT: usize = 200;

/// The number of open streams by workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamLimiter(Arc<Mutex<HashMap<WorkspaceId, usize>>>);

impl StreamLimiter {
    /// Claims a permit, which its drop releases. Returns `None` at a limit.
    pub(crate) fn acquire(&self, workspace: WorkspaceId) -> Option<StreamPermit> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        let own = open.get(&workspace).copied().unwrap_or_default();
        if all >= STREAM_LIMIT || own >= WORKSPACE_STREAM_LIMIT {
            return None;
        }
        open.insert(workspace, own + 1);
        Some(StreamPermit { limiter: self.clone(), workspace })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, usize>> {
        self.0.lock()
    }
}

/// The permit of an open stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    limiter: StreamLimiter,
    workspace: WorkspaceId,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.lock();
        if let Some(own) = open.get_mut(&self.workspace) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.workspace);
            }
        }
    }
}
