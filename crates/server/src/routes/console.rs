//! The web console: one page for all addresses below `/console`, and its files.

use askama::Template;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY};
use axum::http::{HeaderMap, HeaderValue};
use galley_application::Error;

use crate::respond::pages;
use crate::routes::prelude::*;

/// The content security policy: scripts, styles and requests of this service only. Images may have
/// any address, as pieces have images of other sites, and so may audio and video.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; \
                      img-src 'self' http: https:; media-src 'self' http: https:; \
                      connect-src 'self'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

const CROSS_ORIGIN_OPENER_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-opener-policy");

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    version: &'static str,
}

/// Returns the page of the console. A build without the console has the start page in its place.
pub(crate) fn response(app: &App) -> Response {
    let Some(page) = app.limits().console.page() else {
        return pages::public(&HomePage { version: env!("CARGO_PKG_VERSION") });
    };
    let mut response = response::file(page);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Get the page of the console
///
/// The page is the same for every path below, such as `/console/ws_…/pieces/cp_…`. It uses this API
/// with the session of the browser.
#[utoipa::path(
    get,
    path = "/console",
    operation_id = "getConsole",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page(State(app): State<App>) -> Response {
    response(&app)
}

/// Get a file of the console
#[utoipa::path(
    get,
    path = "/console/assets/{file}",
    operation_id = "getConsoleFile",
    params(("file" = String, Path, description = "The file's name", example = "index.js")),
    responses((status = 200, content(
        (String = "text/css"),
        (String = "text/javascript"),
        (String = "image/svg+xml"),
    ))),
)]
pub(crate) async fn asset(
    State(app): State<App>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = name.ok().map(|Path(name)| format!("assets/{name}"));
    let file = name.and_then(|name| app.limits().console.get(&name));
    let mut response = file.ok_or_else(Error::not_found)?.response(&headers);
    // A file's name has the hash of its content.
    let cache = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, cache);
    Ok(response)
}
