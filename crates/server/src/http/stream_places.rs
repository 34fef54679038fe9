//! The limits of open event streams: one for all workspaces, and a lower one for each, so that one
//! workspace can't use up the limit of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galley_domain::WorkspaceId;

/// The limit of all workspaces together.
const ALL_MAX: usize = 1_000;

/// The limit of each workspace.
const EACH_MAX: usize = 200;

/// The number of open streams by workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamPlaces(Arc<Mutex<HashMap<WorkspaceId, usize>>>);

impl StreamPlaces {
    /// Claims a permit, which its drop releases. Returns `None` at a limit.
    pub(super) fn take(&self, workspace: WorkspaceId) -> Option<StreamPlace> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        let own = open.get(&workspace).copied().unwrap_or_default();
        if all >= ALL_MAX || own >= EACH_MAX {
            return None;
        }
        open.insert(workspace, own + 1);
        Some(StreamPlace { places: self.clone(), workspace })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit of an open stream.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    places: StreamPlaces,
    workspace: WorkspaceId,
}

impl Drop for StreamPlace {
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
