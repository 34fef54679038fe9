//! `/healthz` and `/readyz`: for whoever watches the process or balances over several.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;

use crate::http::app::App;
use crate::http::error::Error;
use crate::http::response;

#[derive(Serialize)]
struct Status {
    status: &'static str,
}

/// The process runs.
pub(crate) async fn health() -> Response {
    response::ok(&Status { status: "ok" })
}

/// Requests can be answered: the database is there.
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Error> {
    app.database().ping().await?;
    Ok(response::ok(&Status { status: "ready" }))
}
