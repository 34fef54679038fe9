//! The context of a request: its id, its span, and the values that handlers return to headers.

use std::time::Instant;

use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;
use tracing::Instrument;

use crate::app::App;
use crate::extract::head_request::IsHead;
use crate::extract::prefer;
use crate::middleware::request_id::RequestId;
use crate::middleware::request_log;
use crate::resources::rate_limit::RateLimitStatus;
use crate::resources::request_memory::RequestReservation;

/// Adds the context to the request's extensions, and its results to the response's headers. Logs
/// and counts the response.
pub(crate) async fn provide(
    app: &App,
    mut request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers(), app.environment());
    let rate_limit_status = RateLimitStatus::default();
    let staleness = prefer::staleness_bound(request.headers(), app.database());
    let span = request_log::span(&request, &id);
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let extensions = request.extensions_mut();
    extensions.insert(RequestReservation::new(app.overload().start_request()));
    extensions.insert(rate_limit_status.clone());
    extensions.insert(id.clone());
    if staleness.allows_stale() {
        extensions.insert(staleness.clone());
    }
    if method == Method::HEAD {
        request.extensions_mut().insert(IsHead);
        // Its response has the headers of GET, including the coding. hyper leaves the body out.
        *request.method_mut() = Method::GET;
    }
    let mut response = next(request).instrument(span.clone()).await;
    id.write(&mut response);
    rate_limit_status.write(response.headers_mut());
    prefer::write_staleness(&staleness, response.headers_mut());
    span.in_scope(|| request_log::report(&method, &path, &response, started));
    response
}
