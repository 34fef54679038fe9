//! The log lines and metrics of requests.

use std::time::{Duration, Instant};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use galley_storage::authentication::Authentication;
use tracing::Span;
use tracing::field::{Empty, display};

use crate::client_socket::ClientSocket;
use crate::middleware::matched_route::{Route, method_label, route_of};
use crate::middleware::request_id::{RequestId, X_REQUEST_ID};
use crate::middleware::request_trace;

/// The target of the access log's events.
const ACCESS_LOG: &str = "galley::access";

/// The target of the spans of requests, which the filter always passes.
const REQUEST_SPAN: &str = "galley::request";

/// The length up to which the access log has a user agent, in bytes.
const USER_AGENT_LIMIT: usize = 256;

/// Creates the span of a request's log lines.
pub(crate) fn span(request: &Request, id: &RequestId) -> Span {
    let trace_id = trace_id_of(request).map(display);
    let span = tracing::info_span!(
        target: REQUEST_SPAN,
        "request",
        id = id.as_str(),
        trace_id,
        client = Empty,
        user_agent = Empty,
        credential = Empty,
        user = Empty
    );
    if has_access_log() {
        record_client(&span, request);
    }
    span
}

fn has_access_log() -> bool {
    tracing::enabled!(target: ACCESS_LOG, tracing::Level::INFO)
}

/// Adds the client's address and program to the span.
fn record_client(span: &Span, request: &Request) {
    let socket = request.extensions().get::<ClientSocket>();
    if let Some(address) = socket.and_then(ClientSocket::address) {
        span.record("client", display(address));
    }
    let agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    if let Some(agent) = agent {
        // A header that is text is ASCII.
        span.record("user_agent", &agent[..agent.len().min(USER_AGENT_LIMIT)]);
    }
}

/// Adds the caller's credential and user to the current span.
pub(crate) fn record_caller(caller: &Authentication) {
    if has_access_log() {
        let span = Span::current();
        span.record("credential", display(caller.credential));
        span.record("user", display(caller.user));
    }
}

/// Counts and logs a response.
pub(crate) fn report(method: &Method, path: &str, response: &Response, started: Instant) {
    let duration = started.elapsed();
    measure(method, response, duration);
    log(method, path, route_of(response).unwrap_or("none"), response, duration);
}

/// Counts a response and its duration.
pub(crate) fn measure(method: &Method, response: &Response, duration: Duration) {
    let status = response.status();
    let route = route_of(response).unwrap_or("none");
    let labels = [
        ("method", method_label(method).to_owned()),
        ("route", route.to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("galley_http_requests_total", &labels).increment(1);
    metrics::histogram!("galley_http_request_seconds", "route" => route.to_owned())
        .record(duration);
}

/// Logs a response from the cache, with the same fields as others, and adds its route for traces.
pub(crate) fn log_cached(
    request: &Request,
    response: &mut Response,
    started: Instant,
    route: &'static str,
    caller: Option<&Authentication>,
) {
    if request_trace::is_enabled() {
        response.extensions_mut().insert(Route::Cached(route));
    }
    if !has_access_log() {
        return;
    }
    let id = response.headers().get(&X_REQUEST_ID).and_then(|id| id.to_str().ok());
    let trace_id = trace_id_of(request).map(display);
    let credential = caller.map(|caller| display(caller.credential));
    let user = caller.map(|caller| display(caller.user));
    let span = tracing::info_span!(
        target: REQUEST_SPAN,
        "request",
        id,
        trace_id,
        client = Empty,
        user_agent = Empty,
        credential,
        user
    );
    record_client(&span, request);
    let path = request.uri().path();
    span.in_scope(|| log(request.method(), path, route, response, started.elapsed()));
}

/// Logs a response in the access log. An error of the server is logged without an access log, too.
fn log(method: &Method, path: &str, route: &str, response: &Response, duration: Duration) {
    let (status, ms) = (response.status().as_u16(), duration.as_secs_f64() * 1_000.0);
    // The body of a response to HEAD is not sent.
    let bytes = response.body().size_hint().exact().filter(|_| method != Method::HEAD);
    match (response.status().is_server_error(), has_access_log()) {
        (true, false) => {
            tracing::warn!(%method, path, route, status, bytes, ms, "request completed");
        }
        (true, true) => {
            tracing::warn!(
                target: ACCESS_LOG, %method, path, route, status, bytes, ms, "request completed"
            );
        }
        (false, _) => {
            tracing::info!(
                target: ACCESS_LOG, %method, path, route, status, bytes, ms, "request completed"
            );
        }
    }
}

/// Returns the trace id of the request's exported span, or of its `traceparent`.
fn trace_id_of(request: &Request) -> Option<String> {
    request_trace::current_trace_id().or_else(|| trace_id(request.headers()))
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
