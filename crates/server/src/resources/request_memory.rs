//! The memory of requests.

use std::sync::{Arc, OnceLock};

use galley_domain::WorkspaceId;
use galley_runtime::{MemoryBudget, Overloaded, Reservation};
use parking_lot::Mutex;

use crate::resources::overload::InFlightRequest;

/// A budget of memory that workspaces share.
pub(crate) type WorkspaceMemory = MemoryBudget<WorkspaceId>;

/// A reservation in that budget.
pub(crate) type WorkspaceReservation = Reservation<WorkspaceId>;

/// The resources of a request in progress, released with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct RequestReservation(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// The memory of the body that has been received.
    body: Mutex<Option<WorkspaceReservation>>,
    in_flight: InFlightRequest,
    workspace: OnceLock<WorkspaceId>,
}

impl RequestReservation {
    /// Creates the reservation of a request without a body.
    pub(crate) fn new(in_flight: InFlightRequest) -> Self {
        let workspace = OnceLock::new();
        Self(Arc::new(Parts { body: Mutex::default(), in_flight, workspace }))
    }

    /// Runs the request's work.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.in_flight.during(work).await
    }

    /// Sets the workspace of the request.
    pub(crate) fn set_workspace(&self, workspace: WorkspaceId) {
        self.0.workspace.get_or_init(|| workspace);
    }

    /// Returns the workspace of an authenticated request.
    pub(crate) fn workspace(&self) -> Option<WorkspaceId> {
        self.0.workspace.get().copied()
    }

    /// Resizes the reservation to `bytes` of the body.
    pub(crate) fn resize(&self, budget: &WorkspaceMemory, bytes: usize) -> Result<(), Overloaded> {
        let mut body = self.0.body.lock();
        body.get_or_insert_with(|| budget.reservation(self.workspace())).resize(bytes)
    }
}
