//! The log lines and metrics of requests.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use galley_storage::authentication::Authentication;
use tracing::Span;
use tracing::field::{Empty, display};

use crate::client_socket::ClientSocket;
use crate::middleware::request_id::{RequestId, X_REQUEST_ID};

/// The route of a response, for metrics and the log.
#[derive(Debug, Clone)]
pub(crate) struct Route(MatchedPath);

/// Adds the route to the response's extensions.
pub(crate) async fn record_route(path: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(Route(path));
    response
}

/// Creates the span of a request's log lines.
pub(crate) fn span(request: &Request, id: &RequestId) -> Span {
    let trace_id = trace_id(request.headers()).map(display);
    let span = tracing::info_span!(
        "request",
        id = id.as_str(),
        trace_id,
        client = Empty,
        credential = Empty,
        user = Empty
    );
    if tracing::enabled!(tracing::Level::DEBUG) {
        record_client(&span, request);
    }
    span
}

/// Adds the client's address to the span.
fn record_client(span: &Span, request: &Request) {
    let socket = request.extensions().get::<ClientSocket>();
    if let Some(address) = socket.and_then(ClientSocket::address) {
        span.record("client", display(address));
    }
}

/// Adds the caller's credential and user to the current span.
pub(crate) fn record_caller(caller: &Authentication) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        let span = Span::current();
        span.record("credential", display(caller.credential));
        span.record("user", display(caller.user));
    }
}

/// Counts and logs a response.
pub(crate) fn report(method: &Method, path: &str, response: &Response, started: Instant) {
    let duration = started.elapsed();
    measure(method, response, duration);
    log(method, path, route_of(response), response.status(), duration);
}

/// Counts a response and its duration.
pub(crate) fn measure(method: &Method, response: &Response, duration: Duration) {
    let status = response.status();
    let route = route_of(response);
    let labels = [
        ("method", method_label(method).to_owned()),
        ("route", route.to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("galley_http_requests_total", &labels).increment(1);
    metrics::histogram!("galley_http_request_seconds", "route" => route.to_owned())
        .record(duration);
}

/// Logs a response from the cache at debug level, with the same fields as others.
pub(crate) fn log_cached(
    request: &Request,
    response: &Response,
    started: Instant,
    route: &str,
    caller: Option<&Authentication>,
) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let id = response.headers().get(&X_REQUEST_ID).and_then(|id| id.to_str().ok());
    let trace_id = trace_id(request.headers()).map(display);
    let credential = caller.map(|caller| display(caller.credential));
    let user = caller.map(|caller| display(caller.user));
    let span = tracing::info_span!("request", id, trace_id, client = Empty, credential, user);
    record_client(&span, request);
    let path = request.uri().path();
    span.in_scope(|| log(request.method(), path, route, response.status(), started.elapsed()));
}

fn log(method: &Method, path: &str, route: &str, status: StatusCode, duration: Duration) {
    let (status, ms) = (status.as_u16(), duration.as_secs_f64() * 1_000.0);
    if status >= StatusCode::INTERNAL_SERVER_ERROR.as_u16() {
        tracing::warn!(%method, path, route, status, ms, "request completed");
    } else {
        tracing::debug!(%method, path, route, status, ms, "request completed");
    }
}

fn route_of(response: &Response) -> &str {
    response.extensions().get::<Route>().map_or("none", |route| route.0.as_str())
}

/// Returns the metrics label of a method. Unknown methods share one, as clients may invent any.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Returns the trace id of a W3C `traceparent`: `00-<trace>-<parent>-<flags>`. A malformed header
/// is ignored.
fn trace_id(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all("traceparent").iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let mut parts = value.to_str().ok()?.split('-');
    let (version, trace, parent, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_id = |text: &str, length| is_hex(text, length) && text.bytes().any(|byte| byte != b'0');
    // A later version may have more parts.
    let is_complete = version != "00" || parts.next().is_none();
    let is_valid = is_hex(version, 2) && version != "ff" && is_hex(flags, 2) && is_complete;
    (is_valid && is_id(trace, 32) && is_id(parent, 16)).then(|| trace.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_traceparent_header_is_parsed_by_the_w3c_rules() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = "00f067aa0ba902b7";
        for (value, known) in [
            (format!("00-{trace}-{parent}-01"), true),
            (format!("cc-{trace}-{parent}-01-more"), true),
            (format!("00-{trace}-{parent}-01-more"), false),
            (format!("ff-{trace}-{parent}-01"), false),
            (format!("00-{}-{parent}-01", trace.to_uppercase()), false),
            (format!("00-{}-{parent}-01", "0".repeat(32)), false),
            (format!("00-{trace}-{}-01", "0".repeat(16)), false),
            (format!("00-{trace}-{parent}"), false),
            (String::new(), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::try_from(&value).unwrap());
            assert_eq!(trace_id(&headers).is_some(), known, "{value}");
        }
    }
}
