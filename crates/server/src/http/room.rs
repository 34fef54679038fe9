//! The memory of requests and responses, and the response to a full budget.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::body::{Body, HttpBody, to_bytes};
use axum::http::Method;
use axum::response::Response;
use galley_domain::WorkspaceId;
use galley_runtime::{MemoryBudget, Overloaded, Reservation, UNCOUNTED};
use serde::Serialize;

use crate::http::overload::UnderWay;
use crate::http::response;

/// A budget of memory that is shared by workspaces.
pub(crate) type WorkspaceMemory = MemoryBudget<WorkspaceId>;

/// A part of that budget.
pub(crate) type WorkspaceReservation = Reservation<WorkspaceId>;

/// A buffer with a size limit.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl Bounded {
    /// Returns the JSON of a resource, or `None` if it exceeds the limit.
    pub(super) fn json(body: &impl Serialize, max: usize) -> Option<Vec<u8>> {
        let mut bounded = Self { bytes: Vec::with_capacity(1_024), max };
        serde_json::to_writer(&mut bounded, body).ok()?;
        let mut bytes = bounded.bytes;
        // Small bodies are sent soon, so that copying them does not pay.
        if bytes.len() > UNCOUNTED {
            bytes.shrink_to_fit();
        }
        Some(bytes)
    }
}

impl std::io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + more.len() > self.max {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The registration of a request: its count and its body's reservation, until all clones are
/// dropped.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<PlaceParts>);

#[derive(Debug)]
struct PlaceParts {
    /// The reservation of the body, once a part of it was received.
    body: Mutex<Option<WorkspaceReservation>>,
    under_way: UnderWay,
    workspace: OnceLock<WorkspaceId>,
}

impl Place {
    /// Creates the registration of a request whose body was not received yet.
    pub(super) fn new(under_way: UnderWay) -> Self {
        let workspace = OnceLock::new();
        Self(Arc::new(PlaceParts { body: Mutex::default(), under_way, workspace }))
    }

    /// Runs the work of the request.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.under_way.during(work).await
    }

    /// Records the workspace of the request.
    pub(super) fn belongs_to(&self, workspace: WorkspaceId) {
        self.0.workspace.get_or_init(|| workspace);
    }

    fn workspace(&self) -> Option<WorkspaceId> {
        self.0.workspace.get().copied()
    }

    /// Resizes the body's reservation. Fails if the budget is exceeded.
    pub(super) fn widen(&self, budget: &WorkspaceMemory, bytes: usize) -> Result<(), Overloaded> {
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.get_or_insert_with(|| budget.reservation(self.workspace())).resize(bytes)
    }
}

/// A marker of responses whose bytes have a reservation, or need none because they are shared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasSpace;

/// Reserves memory for a response until it is sent. Fails if the budget is exceeded. The response
/// to a completed change never fails: it loses its representation, or exceeds the budget.
pub(super) async fn give_space(
    budget: &WorkspaceMemory,
    method: &Method,
    place: &Place,
    response: &mut Response,
) -> Result<(), Overloaded> {
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let is_counted = response.extensions_mut().remove::<HasSpace>().is_some();
    let Some(size) = size.filter(|&size| size > UNCOUNTED && !is_counted) else { return Ok(()) };
    let mut reservation = budget.reservation(place.workspace());
    let given = reservation.resize(size);
    let has_changed = !method.is_safe() && response.status().is_success();
    if !has_changed {
        given?;
    } else if given.is_err() && !response::leave_out_representation(response).await {
        reservation.force_resize(size);
    }
    let body = std::mem::take(response.body_mut());
    let bytes = to_bytes(body, size).await.expect("its bytes are there already");
    *response.body_mut() = Body::from(reservation.attach(bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use crate::http::overload::Overload;
    use crate::http::prefer::APPLIED;

    const ROOM: usize = 1_000_000;
    const ANSWER: usize = 300_000;

    fn answer(size: usize) -> Response {
        Response::new(Body::from(vec![b'x'; size]))
    }

    #[tokio::test]
    async fn what_is_answered_takes_room_until_it_is_sent() {
        let (room, overload) = (WorkspaceMemory::new(ROOM), Overload::new());
        let of = |workspace| {
            let place = Place::new(overload.count());
            place.belongs_to(WorkspaceId::new(workspace));
            place
        };
        let give = async |method: Method, place: &Place, mut answer: Response| {
            give_space(&room, &method, place, &mut answer).await?;
            Ok::<_, Overloaded>(to_bytes(answer.into_body(), usize::MAX).await.unwrap())
        };
        let first = give(Method::GET, &of(1), answer(ANSWER)).await.unwrap();
        assert_eq!(first, vec![b'x'; ANSWER]);
        // One workspace may reserve at most half.
        let refused = give(Method::GET, &of(1), answer(ANSWER)).await;
        assert!(matches!(refused, Err(Overloaded)));
        give(Method::GET, &of(1), answer(UNCOUNTED)).await.unwrap();
        let second = give(Method::HEAD, &of(2), answer(ANSWER)).await.unwrap();
        // The response to a completed change never fails.
        let whole = serde_json::json!({"id": "tag_1", "label": "x".repeat(2 * ROOM)});
        for (status, reduced) in [(StatusCode::OK, ""), (StatusCode::CREATED, r#"{"id":"tag_1"}"#)]
        {
            let mut preferred = Response::new(Body::from(whole.to_string()));
            *preferred.status_mut() = status;
            preferred.headers_mut().insert(APPLIED, "return=representation".try_into().unwrap());
            assert_eq!(give(Method::PUT, &of(3), preferred).await.unwrap(), reduced);
        }
        let mut wrong = answer(2 * ROOM);
        *wrong.status_mut() = StatusCode::BAD_REQUEST;
        assert!(give(Method::POST, &of(3), wrong).await.is_err());
        let third = give(Method::POST, &of(3), answer(2 * ROOM)).await.unwrap();
        assert!(give(Method::GET, &of(4), answer(ANSWER)).await.is_err());
        let mut marked = answer(ANSWER);
        marked.extensions_mut().insert(HasSpace);
        give(Method::GET, &of(4), marked).await.unwrap();
        drop(third);
        give(Method::GET, &of(4), answer(ANSWER)).await.unwrap();
        drop((first, second));
        give(Method::GET, &of(1), answer(ANSWER)).await.unwrap();
        assert_eq!(room.used(), (0, 0));
    }
}
