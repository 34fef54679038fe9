//! The end of requests whose client goes away: reads are cancelled, writes run to completion.

use std::any::Any;

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use galley_application::Reason;
use tracing::Instrument;

use crate::client_socket::ClientSocket;
use crate::problem::Problem;
use crate::resources::request_memory::RequestReservation;

/// Runs a request. A read is cancelled some time after its client closed the connection; a write
/// runs in a task of its own, which the end of the connection does not cancel.
pub(crate) async fn run(request: Request, next: Next) -> Response {
    let reservation = request.extensions().get::<RequestReservation>().cloned();
    let is_read = *request.method() == Method::GET;
    let socket = request.extensions().get::<ClientSocket>().cloned();
    let work = async move {
        match reservation {
            Some(reservation) => reservation.during(next.run(request)).await,
            None => next.run(request).await,
        }
    };
    if !is_read {
        let task = tokio::spawn(work.in_current_span());
        return task.await.unwrap_or_else(|error| panicked(Box::new(error)));
    }
    tokio::select! {
        biased;
        response = work => response,
        () = abandoned(socket) => {
            let detail = "the client closed its side, and the response was not ready soon after";
            Problem::new(Reason::RequestTimeout, detail).into_response()
        }
    }
}

/// Returns the response to a request whose handler panicked.
pub(crate) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    Problem::new(Reason::Internal, "the log has the cause under this request's id").into_response()
}

async fn abandoned(socket: Option<ClientSocket>) {
    match socket {
        Some(socket) => socket.abandoned().await,
        None => std::future::pending().await,
    }
}
