//! `/healthz` and `/readyz`: for whoever watches the process or balances over several.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::app::App;
use crate::http::error::Error;
use crate::http::response;

/// How the service is.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceStatus)]
struct Status {
    /// `ok`, or `ready`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether the process runs
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "getHealth",
    responses((status = 200, body = Status)),
)]
pub(crate) async fn health() -> Response {
    response::ok(&Status { status: "ok" })
}

/// Whether requests can be answered
///
/// That is, whether the database is there.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    responses((status = 200, body = Status)),
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Error> {
    app.database().ping().await?;
    Ok(response::ok(&Status { status: "ready" }))
}
