//! The OpenTelemetry spans of requests, with the attributes of its semantic conventions for HTTP.
//!
//! They exist only if the service has a trace collector. The log has spans of its own.

use std::collections::HashMap;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use galley_storage::TRACE_TARGET;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{FutureExt, TraceContextExt, WithContext};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::field::{Empty, display};
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::client_socket::ClientSocket;
use crate::middleware::matched_route::{method_label, route_of};

/// The lengths up to which spans have texts of clients, in bytes.
const PATH_LIMIT: usize = 1_024;
const USER_AGENT_LIMIT: usize = 256;

/// Returns true if spans are exported.
pub(crate) fn is_enabled() -> bool {
    tracing::enabled!(target: TRACE_TARGET, Level::INFO)
}

/// Creates the span of a request. Its parent is that of the header `traceparent`, if it is valid.
pub(crate) fn span(request: &Request) -> Span {
    let method = method_label(request.method());
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        parent: None,
        "HTTP request",
        otel.name = method,
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = Empty,
        http.response.status_code = Empty,
        http.response.body.size = Empty,
        url.scheme = "http",
        url.path = cut(request.uri().path(), PATH_LIMIT),
        client.address = Empty,
        user_agent.original = Empty,
    );
    let socket = request.extensions().get::<ClientSocket>();
    if let Some(address) = socket.and_then(ClientSocket::address) {
        span.record("client.address", display(address));
    }
    if let Some(agent) = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok()) {
        span.record("user_agent.original", cut(agent, USER_AGENT_LIMIT));
    }
    let parent = TraceContextPropagator::new().extract(&parent_headers(request.headers()));
    // Fails only if the span is not exported.
    let _ = span.set_parent(parent);
    span
}

/// Returns the headers of W3C Trace Context. Several values of `traceparent` are invalid.
fn parent_headers(headers: &HeaderMap) -> HashMap<String, String> {
    ["traceparent", "tracestate"]
        .into_iter()
        .filter_map(|name| {
            let mut values = headers.get_all(name).iter();
            let (value, None) = (values.next()?, values.next()) else { return None };
            Some((name.to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect()
}

/// Returns the beginning of a text from a client.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Adds a response to the span of its request.
pub(crate) fn record_response(span: &Span, method: &Method, response: &Response) {
    let (status, method) = (response.status(), method_label(method));
    if let Some(route) = route_of(response) {
        span.record("http.route", route);
        // A field would be read at the start of the span only.
        span.context().span().update_name(format!("{method} {route}"));
    }
    // Other integers are exported as texts.
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if let Some(size) = response.body().size_hint().exact() {
        span.record("http.response.body.size", i64::try_from(size).unwrap_or(i64::MAX));
    }
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

/// Keeps the current span the parent of the spans of `work`, also in a task of its own.
pub(crate) fn in_current_trace<F: Future>(work: F) -> WithContext<F> {
    work.with_current_context()
}

/// Returns the trace id of the current span, if spans are exported.
pub(crate) fn current_trace_id() -> Option<String> {
    if !is_enabled() {
        return None;
    }
    let context = Span::current().context();
    let context = context.span().span_context().clone();
    context.is_valid().then(|| context.trace_id().to_string())
}
