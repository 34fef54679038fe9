//! The end of requests whose client goes away: reads are cancelled, writes run to completion.

use std::any::Any;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use galley_application::Reason;
use tower::{Layer, ServiceExt};
use tower_http::catch_panic::{CatchPanic, CatchPanicLayer, ResponseForPanic};
use tower_http::normalize_path::{NormalizePath, NormalizePathLayer};
use tracing::Instrument;

use crate::client_socket::ClientSocket;
use crate::middleware::request_trace;
use crate::problem::Problem;
use crate::resources::request_memory::RequestReservation;

/// The router with the innermost layers, which tower-http has.
#[derive(Clone)]
pub(crate) struct Handlers(CatchPanic<NormalizePath<Router>, PanicResponse>);

/// The response to a request whose handler panicked.
#[derive(Debug, Clone, Copy)]
struct PanicResponse;

impl ResponseForPanic for PanicResponse {
    type ResponseBody = Body;

    fn response_for_panic(&mut self, _: Box<dyn Any + Send + 'static>) -> Response {
        panicked()
    }
}

impl Handlers {
    /// Wraps the router.
    pub(crate) fn new(router: Router) -> Self {
        let normalized = NormalizePathLayer::trim_trailing_slash().layer(router);
        Self(CatchPanicLayer::custom(PanicResponse).layer(normalized))
    }
}

/// Runs the handler of a request. A read is cancelled some time after its client closed the
/// connection; a write runs in a task of its own, which the end of the connection does not cancel.
pub(crate) async fn run(handlers: Handlers, request: Request) -> Response {
    let reservation = request.extensions().get::<RequestReservation>().cloned();
    let is_read = *request.method() == Method::GET;
    let socket = request.extensions().get::<ClientSocket>().cloned();
    // On the heap, as the layers and the task would otherwise copy the handler's whole future.
    let work = Box::pin(async move {
        let handled = async {
            let Ok(response) = handlers.0.oneshot(request).await;
            response.map(Body::new)
        };
        match reservation {
            Some(reservation) => reservation.during(handled).await,
            None => handled.await,
        }
    });
    if !is_read {
        let work = work.in_current_span();
        let task = if request_trace::is_enabled() {
            tokio::spawn(request_trace::in_current_trace(work))
        } else {
            tokio::spawn(work)
        };
        return task.await.unwrap_or_else(|_| panicked());
    }
    tokio::select! {
        biased;
        response = work => response,
        () = abandoned(socket) => {
            let detail = "the client closed its side of the connection and the response was not \
                          ready in time";
            Problem::new(Reason::RequestTimeout, detail).into_response()
        }
    }
}

/// Returns the response to a request whose handler panicked.
fn panicked() -> Response {
    tracing::error!("a handler panicked");
    Problem::new(Reason::Internal, "the log contains the cause under this request's id")
        .into_response()
}

async fn abandoned(socket: Option<ClientSocket>) {
    match socket {
        Some(socket) => socket.abandoned().await,
        None => std::future::pending().await,
    }
}
