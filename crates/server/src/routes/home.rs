//! `GET /`

use askama::Template;
use axum::response::Response;

use crate::pages;

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    version: &'static str,
}

/// Read where to begin
///
/// A page for browsers with the version, and links to the reference and to the state of the server.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "getHome",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page() -> Response {
    pages::public(&Home { version: env!("CARGO_PKG_VERSION") })
}
