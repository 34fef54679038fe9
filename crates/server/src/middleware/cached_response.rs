//! Responses from the cache, and their storage.

use std::sync::OnceLock;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::{ETAG, VARY};
use axum::response::Response;
use galley_application::StalenessBound;
use galley_domain::Timestamp;
use galley_storage::authentication::Authentication;
use metrics::{Counter, Histogram};

use crate::app::App;
use crate::extract::authentication::{self, CredentialLookup};
use crate::middleware::conditional_get::not_modified;
use crate::middleware::request_id::RequestId;
use crate::middleware::{error_response, request_log};
use crate::problem::Problem;
use crate::resources::rate_limit::RateLimitStatus;
use crate::resources::response_cache::{
    CachedResponse, PendingEntry, ROUTES, ReadAfter, RequestKey, is_cacheable,
};
use crate::resources::stated_credential::StatedCredential;
use crate::respond::entity_tag;

/// Returns the valid cached response to a request.
///
/// Otherwise adds the pending entry of the response to the request's extensions, for [`store`]. If
/// the database has several writers, adds the looked-up token as well.
pub(crate) async fn look_up(app: &App, request: &mut Request) -> Option<Response> {
    let route = app.response_cache().route_of(request)?;
    if app.database().has_generations() {
        return look_up_by_generation(app, request, route).await;
    }
    // The data version precedes the lookup, so a valid response is no older than the request.
    let version = app.database().data_version()?;
    let key = RequestKey::of(app.sessions(), request)?;
    let now = app.environment().now();
    if let Some(cached) = app.response_cache().get(&key)
        && let Some(token) = cached.token_if_valid()
        && !token.has_expired(now)
    {
        return Some(respond(app, request, route, &cached, &token.authentication, now));
    }
    let pending = app.response_cache().pending(&key, ReadAfter::Version(version));
    add_pending(request, pending);
    None
}

async fn look_up_by_generation(app: &App, request: &mut Request, route: usize) -> Option<Response> {
    let key = RequestKey::of(app.sessions(), request)?;
    // A malformed token causes no query.
    if matches!(key.credential, StatedCredential::Token(_)) {
        authentication::bearer(request.headers())?;
    }
    let found = authentication::find_with_generation(app, key.credential).await;
    let now = app.environment().now();
    let mut pending = None;
    if let Ok(Some((found, Some(generation)))) = &found
        && let Some(authentication) = &found.authentication
    {
        if !found.has_expired(now)
            && let Some(cached) = app.response_cache().get(&key)
            && cached.has_generation(*generation)
        {
            return Some(respond(app, request, route, &cached, authentication, now));
        }
        pending = app.response_cache().pending(&key, ReadAfter::Generation(*generation));
    }
    let found = found.map(|found| found.map(|(found, _)| found));
    request.extensions_mut().insert(CredentialLookup(found));
    add_pending(request, pending);
    None
}

fn add_pending(request: &mut Request, pending: Option<PendingEntry>) {
    if let Some(pending) = pending {
        request.extensions_mut().insert(pending);
    }
}

/// Stores the response to a request that has a pending entry.
pub(crate) async fn store(
    app: &App,
    mut request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let pending = request.extensions_mut().remove::<PendingEntry>();
    let staleness = request.extensions().get::<StalenessBound>().cloned();
    let response = next(request).await;
    let Some(pending) = pending else { return response };
    if !is_cacheable(&response)
        || staleness.is_some_and(|staleness| staleness.stale_read().is_some())
    {
        return response;
    }
    app.response_cache().store(app.token_cache(), pending, response).await
}

/// Returns a cached response with the headers of this request.
fn respond(
    app: &App,
    request: &Request,
    route: usize,
    cached: &CachedResponse,
    caller: &Authentication,
    now: Timestamp,
) -> Response {
    let started = Instant::now();
    let status = RateLimitStatus::default();
    if let Err(error) = app.rate_limit().check(caller.credential, Some(&status)) {
        return rate_limited(app, request, cached, error.into(), &status);
    }
    app.credential_use().record(app.database(), caller, now);
    let tag = cached.headers.get(ETAG);
    let is_listed = tag.is_some_and(|tag| entity_tag::is_listed(request.headers(), tag));
    let body = if is_listed { Body::empty() } else { Body::from(cached.body.clone()) };
    let mut response = Response::new(body);
    *response.headers_mut() = cached.headers.clone();
    if is_listed {
        response = not_modified(response);
    }
    RequestId::of(request.headers(), app.environment()).write(&mut response);
    status.write(response.headers_mut());
    let metrics = RouteMetrics::of(route, request.method());
    if is_listed { &metrics.not_modified } else { &metrics.complete }.increment(1);
    metrics.seconds.record(started.elapsed());
    request_log::log_cached(request, &mut response, started, ROUTES[route], Some(caller));
    response
}

/// Returns the error response to a request over the rate limit.
fn rate_limited(
    app: &App,
    request: &Request,
    cached: &CachedResponse,
    problem: Problem,
    status: &RateLimitStatus,
) -> Response {
    let mut response = error_response::standalone_logged(problem, request, app.environment());
    status.write(response.headers_mut());
    response.headers_mut().remove(VARY);
    error_response::copy_cors_headers(response.headers_mut(), &cached.headers);
    response
}

/// The metrics of a route and method, looked up once.
pub(crate) struct RouteMetrics {
    pub(crate) complete: Counter,
    not_modified: Counter,
    pub(crate) seconds: Histogram,
}

impl RouteMetrics {
    fn of(route: usize, method: &Method) -> &'static Self {
        /// By route, then by method.
        static METRICS: [[OnceLock<RouteMetrics>; 2]; ROUTES.len()] =
            [const { [const { OnceLock::new() }; 2] }; ROUTES.len()];
        let is_head = usize::from(*method == Method::HEAD);
        METRICS[route][is_head].get_or_init(|| Self::new(method, ROUTES[route]))
    }

    pub(crate) fn new(method: &Method, route: &'static str) -> Self {
        let counter = |status: &'static str| {
            let method = method.to_string();
            metrics::counter!(
                "galley_http_requests_total", "method" => method, "route" => route, "status" => status
            )
        };
        Self {
            complete: counter("200"),
            not_modified: counter("304"),
            seconds: metrics::histogram!("galley_http_request_seconds", "route" => route),
        }
    }
}
