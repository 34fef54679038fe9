//! `GET /openapi.json`

use std::sync::LazyLock;

use axum::response::Response;

use crate::http::response::{self, File};
use crate::openapi;

/// The OpenAPI document, built at the first request.
static FILE: LazyLock<File> =
    LazyLock::new(|| File::new("application/json", openapi::text().into_bytes()));

/// Get the OpenAPI document
///
/// Returns an OpenAPI 3.1 document of this API.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "getOpenapi",
    responses((status = 200, body = Object, example = json!({
        "openapi": "3.1.0", "info": {"title": "Galley", "version": "0.1.0"}, "paths": {}
    }))),
)]
pub(crate) async fn handle() -> Response {
    response::file(&FILE)
}
