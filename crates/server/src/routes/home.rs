//! `GET /`

use crate::routes::console;
use crate::routes::prelude::*;

/// Get the start page
///
/// Returns the page of the web console. A build without the console returns an HTML page with the
/// version, and links to the API reference and to the health checks.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "getHome",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page(State(app): State<App>) -> Response {
    console::response(&app)
}
