//! Error responses: problem details with the id of their request, and the headers of all responses.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use galley_application::{Environment, Reason, Rejection};

use crate::middleware::matched_route::Route;
use crate::middleware::request_id::RequestId;
use crate::middleware::request_log;
use crate::problem::Problem;

/// Writes the body of an error response, and the headers that all responses have.
pub(crate) async fn write(
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let id = request.extensions().get::<RequestId>().cloned();
    let method = request.method().clone();
    let response = next(request).await;
    finish(response, id.as_ref().map_or("", RequestId::as_str), &method)
}

/// Returns the error response that replaces another one, with its route and CORS headers.
pub(crate) fn replace(
    response: &Response,
    problem: Problem,
    id: &RequestId,
    method: &Method,
) -> Response {
    let mut error = problem.into_response();
    copy_cors_headers(error.headers_mut(), response.headers());
    if let Some(route) = response.extensions().get::<Route>() {
        error.extensions_mut().insert(route.clone());
    }
    finish(error, id.as_str(), method)
}

/// Copies the CORS and `Vary` headers of the replaced response to the error response.
pub(crate) fn copy_cors_headers(error: &mut HeaderMap, replaced: &HeaderMap) {
    let is_copied =
        |name: &HeaderName| name.as_str().starts_with("access-control-") || name == VARY;
    for (name, value) in replaced.iter().filter(|(name, _)| is_copied(name)) {
        error.append(name, value.clone());
    }
}

/// Returns the error response to a request that is rejected as the server has too much to do. It is
/// counted and not logged, to keep it cheap.
pub(crate) fn overloaded(request: &Request, environment: &Environment) -> Response {
    let rejection = Rejection::new(Reason::Overloaded, "nothing was changed; try again");
    let problem = Problem::from(rejection.retry_after(1));
    let response = standalone(problem, request, environment);
    request_log::measure(request.method(), &response, Duration::ZERO);
    response
}

/// Returns the error response to a request that passes no other middleware, and logs it.
pub(crate) fn standalone_logged(
    problem: Problem,
    request: &Request,
    environment: &Environment,
) -> Response {
    let started = Instant::now();
    let response = standalone(problem, request, environment);
    request_log::report(request.method(), request.uri().path(), &response, started);
    response
}

fn standalone(problem: Problem, request: &Request, environment: &Environment) -> Response {
    let id = RequestId::of(request.headers(), environment);
    let mut response = finish(problem.into_response(), id.as_str(), request.method());
    id.write(&mut response);
    response
}

const VARY_OF_ALL: &str = "authorization, cookie, galley-workspace, accept-encoding";

/// The `Vary` of responses that are the same for all callers.
pub(crate) const VARY_OF_PUBLIC: &str = "accept-encoding";

/// Writes out a problem, and adds the headers that all responses have.
fn finish(mut response: Response, request_id: &str, method: &Method) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let route = response.extensions_mut().remove::<Route>();
        response = written(&problem, request_id, response.headers());
        if let Some(route) = route {
            response.extensions_mut().insert(route);
        }
    }
    let headers = response.headers_mut();
    let default = HeaderValue::from_static("private, no-cache");
    let cached = headers.entry(CACHE_CONTROL).or_insert(default);
    // The caller has no effect on a public response, which proxies may keep for all.
    let varies =
        if cached.as_bytes().starts_with(b"public") { VARY_OF_PUBLIC } else { VARY_OF_ALL };
    if matches!(*method, Method::GET | Method::HEAD) {
        headers.append(VARY, HeaderValue::from_static(varies));
    }
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Returns the response of a problem, with the headers of the router's response, such as `Allow`.
fn written(problem: &Problem, request_id: &str, router_headers: &HeaderMap) -> Response {
    let body = problem.to_json(request_id);
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = problem.status();
    let headers = response.headers_mut();
    headers.extend(router_headers.clone());
    headers.extend(problem.headers.clone());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CONTENT_LENGTH, length);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
