//! `/healthz` and `/readyz`: health checks for monitoring and load balancers.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use galley_application::{Reason, housekeeping};
use galley_storage::Error as StorageError;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::app::App;
use crate::problem::Problem;
use crate::respond::response;

/// The status of the service.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceStatus)]
struct StatusBody {
    /// `ok` from `/healthz`, `ready` from `/readyz`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Check that the process runs
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "getHealth",
    responses((status = 200, body = StatusBody)),
)]
pub(crate) async fn health() -> Response {
    response::ok(&StatusBody { status: "ok" })
}

/// The timeout of a database ping.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Check that this server is ready for requests
///
/// The server is ready if the database is reachable, its schema fits the program's version, and the
/// server is not shutting down.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    responses((status = 200, body = StatusBody)),
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    let not_ready = |detail: &str| {
        let soon = HeaderValue::from_static("5");
        Problem::new(Reason::NotReady, detail).with_header(RETRY_AFTER, soon)
    };
    if app.is_draining() {
        return Err(not_ready("the server is draining"));
    }
    match timeout(PING_TIMEOUT, app.database().ping()).await {
        Ok(Ok(())) => Ok(response::ok(&StatusBody { status: "ready" })),
        Ok(Err(StorageError::Schema(reason))) => Err(not_ready(&reason)),
        Ok(Err(StorageError::Detached(_))) => {
            housekeeping::measure_files(false);
            Err(not_ready("the database's files were deleted or replaced"))
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(StorageError::TimedOut.into()),
    }
}
