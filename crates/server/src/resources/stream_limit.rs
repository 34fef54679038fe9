//! How many streams of events may be open: of all workspaces, and of one, so that none takes the places of the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galley_domain::WorkspaceId;

/// Of all workspaces.
const ALL_MAX: usize = 1_000;

/// Of one.
const EACH_MAX: usize = 200;

/// The streams that are open, by workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamLimiter(Arc<Mutex<HashMap<WorkspaceId, usize>>>);

impl StreamLimiter {
    /// A place until it is dropped, if there is one.
    pub(crate) fn acquire(&self, workspace: WorkspaceId) -> Option<StreamPermit> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        let own = open.get(&workspace).copied().unwrap_or_default();
        if all >= ALL_MAX || own >= EACH_MAX {
            return None;
        }
        open.insert(workspace, own + 1);
        Some(StreamPermit { places: self.clone(), workspace })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an open stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    places: StreamLimiter,
    workspace: WorkspaceId,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.places.lock();
        if let Some(own) = open.get_mut(&self.workspace) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.workspace);
            }
        }
    }
}
