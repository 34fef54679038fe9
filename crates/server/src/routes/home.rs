//! `GET /`

use askama::Template;
use axum::response::Response;

use crate::respond::pages;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    version: &'static str,
}

/// Get the start page
///
/// Returns an HTML page with the version, and links to the API reference and to the health checks.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "getHome",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page() -> Response {
    pages::public(&HomePage { version: env!("CARGO_PKG_VERSION") })
}
