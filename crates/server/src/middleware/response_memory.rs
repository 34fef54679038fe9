//! The memory of responses, reserved until they are sent.

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;
use galley_runtime::{Overloaded, UNCOUNTED};

use crate::app::App;
use crate::middleware::error_response;
use crate::middleware::request_id::RequestId;
use crate::problem::Problem;
use crate::resources::request_memory::{RequestReservation, WorkspaceMemory};
use crate::respond::response::{self, HasReservation};

/// Reserves memory for the response, or replaces it by an error response if the budget is full.
pub(crate) async fn reserve(
    app: &App,
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let method = request.method().clone();
    let extensions = request.extensions();
    let id = extensions.get::<RequestId>().cloned();
    let request_reservation = extensions.get::<RequestReservation>().cloned();
    let mut response = next(request).await;
    let (Some(id), Some(request_reservation)) = (id, request_reservation) else { return response };
    let budget = app.response_memory();
    match attach(budget, &method, &request_reservation, &mut response).await {
        Ok(()) => response,
        Err(full) => error_response::replace(&response, Problem::from(full), &id, &method),
    }
}

/// Attaches a reservation to the response's body. If the budget is full, the response to a change
/// leaves out the representation, and any other response is an error.
async fn attach(
    budget: &WorkspaceMemory,
    method: &Method,
    request: &RequestReservation,
    response: &mut Response,
) -> Result<(), Overloaded> {
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let has_reservation = response.extensions_mut().remove::<HasReservation>().is_some();
    let Some(size) = size.filter(|&size| size > UNCOUNTED && !has_reservation) else {
        return Ok(());
    };
    let mut reservation = budget.reservation(request.workspace());
    let reserved = reservation.resize(size);
    let has_changed = !method.is_safe() && response.status().is_success();
    if !has_changed {
        reserved?;
    } else if reserved.is_err() && !response::leave_out_representation(response).await {
        reservation.force_resize(size);
    }
    let body = std::mem::take(response.body_mut());
    let bytes = to_bytes(body, size).await.expect("the body is in memory");
    *response.body_mut() = Body::from(reservation.attach(bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use galley_domain::WorkspaceId;

    use super::*;
    use crate::extract::prefer::APPLIED;
    use crate::resources::overload::OverloadDetector;

    const ROOM: usize = 1_000_000;
    const ANSWER: usize = 300_000;

    fn answer(size: usize) -> Response {
        Response::new(Body::from(vec![b'x'; size]))
    }

    #[tokio::test]
    async fn responses_reserve_memory_until_they_are_sent() {
        let (room, overload) = (WorkspaceMemory::new(ROOM), OverloadDetector::new());
        let of = |workspace| {
            let place = RequestReservation::new(overload.start_request());
            place.set_workspace(WorkspaceId::new(workspace));
            place
        };
        let give = async |method: Method, place: &RequestReservation, mut answer: Response| {
            attach(&room, &method, place, &mut answer).await?;
            Ok::<_, Overloaded>(to_bytes(answer.into_body(), usize::MAX).await.unwrap())
        };
        let first = give(Method::GET, &of(1), answer(ANSWER)).await.unwrap();
        assert_eq!(first, vec![b'x'; ANSWER]);
        // No workspace has more than half.
        let refused = give(Method::GET, &of(1), answer(ANSWER)).await;
        assert!(matches!(refused, Err(Overloaded)));
        give(Method::GET, &of(1), answer(UNCOUNTED)).await.unwrap();
        let second = give(Method::HEAD, &of(2), answer(ANSWER)).await.unwrap();
        // The response to a change is always sent.
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
        marked.extensions_mut().insert(HasReservation);
        give(Method::GET, &of(4), marked).await.unwrap();
        drop(third);
        give(Method::GET, &of(4), answer(ANSWER)).await.unwrap();
        drop((first, second));
        give(Method::GET, &of(1), answer(ANSWER)).await.unwrap();
        assert_eq!(room.used(), (0, 0));
    }
}
