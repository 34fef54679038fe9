//! The request pipeline around the router: the steps of every request and every response.
//!
//! It serves cached responses, rejects requests under overload and assigns request ids. It ignores
//! trailing slashes, lets writes finish after a disconnect, and turns panics and problems into
//! error responses. It also compresses, logs and counts.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    HOST, TRANSFER_ENCODING, VARY,
};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use galley_api_types::problem::{Issue, Step};
use galley_application::{Environment, Reason, Rejection};
use galley_domain::Invalid;
use galley_storage::tokens::Authentication;
use tower::ServiceExt;
use tracing::field::{Empty, display};
use tracing::{Instrument, Span};

use crate::http::answers::{Answers, LookedUp};
use crate::http::app::App;
use crate::http::client_socket::ClientSocket;
use crate::http::prefer::Freshness;
use crate::http::rate_limit::Standing;
use crate::http::room::Place;
use crate::http::{compression, conditional, room};
use crate::problem::Problem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The matched route, for metrics and the log.
#[derive(Debug, Clone)]
struct Route(MatchedPath);

/// Handles a request, from the response cache or by `router`.
pub(crate) async fn handle(router: Router, app: &App, mut request: Request) -> Response {
    let started = Instant::now();
    let malformed = malformed_header(&request);
    let ticket = if malformed.is_some() {
        None
    } else {
        match app.answers().look_up(app, &mut request).await {
            LookedUp::Known(response) => return response,
            LookedUp::New(ticket) => ticket,
        }
    };
    if malformed.is_none() && app.overload().refuses(request.uri()) {
        return refuse(app, &request);
    }
    let place = Place::new(app.overload().count());
    request.extensions_mut().insert(place.clone());
    let environment = app.environment();
    let standing = Standing::default();
    request.extensions_mut().insert(standing.clone());
    let freshness = Freshness::of(request.headers(), app.database());
    if freshness.may_be_old() {
        request.extensions_mut().insert(freshness.clone());
    }
    let request_id = request_id(request.headers(), environment);
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let trace_id = trace_id(request.headers()).map(tracing::field::display);
    let span = tracing::info_span!(
        "request",
        id = %request_id,
        trace_id,
        client = Empty,
        token = Empty,
        user = Empty
    );
    if tracing::enabled!(tracing::Level::DEBUG) {
        note_client(&span, &request);
    }
    let accepted = request.headers().get(ACCEPT_ENCODING).cloned();
    let known = conditional::known_tags(request.headers());
    if method == Method::HEAD {
        // The response has the headers of GET, including the content coding. The connection drops
        // the body.
        *request.method_mut() = Method::GET;
    }
    let response = match malformed {
        None => answer(router, request, place.clone()).instrument(span.clone()).await,
        // The connection is closed, as a proxy may frame the next bytes differently (request
        // smuggling).
        Some(issue) => Problem::from(Rejection::of_issues(vec![issue]))
            .with_header(CONNECTION, HeaderValue::from_static("close"))
            .into_response(),
    };
    let mut response = finish(response, &request_id, &method);
    if let Err(full) = room::give_space(app.answer_room(), &method, &place, &mut response).await {
        response = finish(instead_of(&response, Problem::from(full)), &request_id, &method);
    }
    let ticket = ticket.filter(|_| Answers::is_worth(&response) && !freshness.is_old());
    let mut response = compression::compress(accepted, response).await;
    if let Some(ticket) = ticket {
        response = app.answers().keep(ticket, response).await;
    }
    set_request_id(&mut response, &request_id);
    standing.write(response.headers_mut());
    freshness.write(response.headers_mut());
    if matches!(method, Method::GET | Method::HEAD) && conditional::is_known(&known, &response) {
        response = not_modified(response);
    }
    span.in_scope(|| report(&method, &path, &response, started));
    response
}

async fn answer(router: Router, mut request: Request, place: Place) -> Response {
    *request.uri_mut() = without_trailing_slash(request.uri());
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let socket = request.extensions().get::<ClientSocket>().cloned();
    let answer = AssertUnwindSafe(router.oneshot(request)).catch_unwind();
    let answered = if reads {
        tokio::select! {
            biased;
            answered = place.during(answer) => answered,
            () = abandoned(socket) => {
                let detail = "the client closed its side, and the response was not ready soon after";
                return Problem::new(Reason::RequestTimeout, detail).into_response();
            }
        }
    } else {
        // A disconnect drops the future of the connection. A spawned write runs to completion.
        let whole = async move { place.during(answer).await };
        let task = tokio::spawn(whole.in_current_span());
        task.await.unwrap_or_else(|error| Err(Box::new(error)))
    };
    match answered {
        Ok(Ok(response)) => response,
        Err(_) => {
            tracing::error!("a handler panicked");
            Problem::new(Reason::Internal, "the log has the cause under this request's id")
                .into_response()
        }
    }
}

async fn abandoned(socket: Option<ClientSocket>) {
    match socket {
        Some(socket) => socket.abandoned().await,
        None => std::future::pending().await,
    }
}

/// Creates the error response that replaces `answer`, with its route and CORS headers.
fn instead_of(answer: &Response, refusal: Problem) -> Response {
    let mut refused = refusal.into_response();
    keep_headers_of_origin(refused.headers_mut(), answer.headers());
    if let Some(route) = answer.extensions().get::<Route>() {
        refused.extensions_mut().insert(route.clone());
    }
    refused
}

/// Copies the CORS and `Vary` headers of the replaced response to the error response.
pub(crate) fn keep_headers_of_origin(refused: &mut HeaderMap, answer: &HeaderMap) {
    let is_of_origin =
        |name: &HeaderName| name.as_str().starts_with("access-control-") || name == VARY;
    for (name, value) in answer.iter().filter(|(name, _)| is_of_origin(name)) {
        refused.append(name, value.clone());
    }
}

/// Turns a response into 304, for a client that has the representation: the same headers, and no
/// body.
pub(crate) fn not_modified(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    *response.body_mut() = Body::empty();
    for about_the_body in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING] {
        response.headers_mut().remove(about_the_body);
    }
    response
}

/// Returns the error response to overload. It is cheap: metrics count it, but the log has no line.
pub(crate) fn refuse(app: &App, request: &Request) -> Response {
    let rejection = Rejection::new(Reason::Overloaded, "nothing was changed; try again");
    let problem = Problem::from(rejection.retry_after(1));
    let request_id = request_id(request.headers(), app.environment());
    let mut response = finish(problem.into_response(), &request_id, request.method());
    set_request_id(&mut response, &request_id);
    measure(request.method(), &response, Duration::ZERO);
    response
}

/// Completes, counts and logs a response that no handler produced.
pub(crate) fn finish_alone(
    response: Response,
    request: &Request,
    app: &App,
    standing: &Standing,
) -> Response {
    let started = Instant::now();
    let request_id = request_id(request.headers(), app.environment());
    let mut response = finish(response, &request_id, request.method());
    set_request_id(&mut response, &request_id);
    standing.write(response.headers_mut());
    report(request.method(), request.uri().path(), &response, started);
    response
}

/// Adds the request's id to a response: that of the client, or a new one.
pub(crate) fn identify(response: &mut Response, request: &HeaderMap, environment: &Environment) {
    set_request_id(response, &request_id(request, environment));
}

fn set_request_id(response: &mut Response, request_id: &str) {
    if let Ok(id) = HeaderValue::try_from(request_id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
}

/// Returns the URI without slashes at the end of its path, except for the root's.
fn without_trailing_slash(uri: &Uri) -> Uri {
    let path = uri.path();
    if path.len() < 2 || !path.ends_with('/') {
        return uri.clone();
    }
    let path = path.trim_end_matches('/');
    let path = if path.is_empty() { "/" } else { path };
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = text.parse::<PathAndQuery>().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Returns the issue of a malformed `Host` or `Transfer-Encoding`. HTTP/1.1 demands one `Host`:
/// proxies that see two may each use another one.
fn malformed_header(request: &Request) -> Option<Issue> {
    let issue = |name: &str, code, message| {
        Some(Issue::new(vec![Step::Field(name.to_owned())], &Invalid::new(code, message)))
    };
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts != 1 && (hosts > 0 || request.version() >= Version::HTTP_11) {
        return issue("Host", "required", "must stand once (RFC 9112, section 3.2)");
    }
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => None,
        (Some(coding), None) if is_chunked(coding) => None,
        _ => issue(
            "Transfer-Encoding",
            "unsupported",
            "must be chunked, once (RFC 9112, section 6.1)",
        ),
    }
}

/// Returns the trace id of W3C Trace Context, from the header `traceparent`:
/// `00-<trace>-<parent>-<flags>`. A malformed header is ignored.
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
    let whole = version != "00" || parts.next().is_none();
    let valid = is_hex(version, 2) && version != "ff" && is_hex(flags, 2) && whole;
    (valid && is_id(trace, 32) && is_id(parent, 16)).then(|| trace.to_owned())
}

/// Returns the client's request id if it is 1 to 128 visible ASCII characters, else a new one.
fn request_id(headers: &HeaderMap, environment: &Environment) -> String {
    let given = headers.get(&REQUEST_ID).and_then(|value| value.to_str().ok());
    let fits =
        |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    given.filter(fits).map_or_else(|| format!("{:032x}", environment.new_id()), str::to_owned)
}

/// Writes out a problem, and adds the headers of every response.
fn finish(mut response: Response, request_id: &str, method: &Method) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let route = response.extensions_mut().remove::<Route>();
        response = written(&problem, request_id, response.headers());
        if let Some(route) = route {
            response.extensions_mut().insert(route);
        }
    }
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
    if matches!(*method, Method::GET | Method::HEAD) {
        headers.append(VARY, HeaderValue::from_static("authorization, accept-encoding"));
    }
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Returns the response to a problem. `more` are headers that the router set, such as `Allow`.
fn written(problem: &Problem, request_id: &str, more: &HeaderMap) -> Response {
    let body = problem.to_json(request_id);
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = problem.status();
    let headers = response.headers_mut();
    headers.extend(more.clone());
    headers.extend(problem.headers.clone());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CONTENT_LENGTH, length);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn report(method: &Method, path: &str, response: &Response, started: Instant) {
    let duration = started.elapsed();
    measure(method, response, duration);
    log(method, path, route_of(response), response.status(), duration);
}

fn route_of(response: &Response) -> &str {
    response.extensions().get::<Route>().map_or("none", |route| route.0.as_str())
}

/// Records the client's address in the span of a request.
fn note_client(span: &Span, request: &Request) {
    let socket = request.extensions().get::<ClientSocket>();
    if let Some(address) = socket.and_then(ClientSocket::address) {
        span.record("client", display(address));
    }
}

/// Records the caller in the span of the current request.
pub(crate) fn note_caller(caller: &Authentication) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        let span = Span::current();
        span.record("token", display(caller.token));
        span.record("user", display(caller.user));
    }
}

fn measure(method: &Method, response: &Response, duration: Duration) {
    let status = response.status();
    let route = route_of(response);
    let labels = [
        ("method", known(method).to_owned()),
        ("route", route.to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("galley_http_requests_total", &labels).increment(1);
    metrics::histogram!("galley_http_request_seconds", "route" => route.to_owned())
        .record(duration);
}

/// Logs a request that no handler processed, in the format of the others, if debug logging is
/// enabled.
pub(crate) fn log_alone(
    request: &Request,
    response: &Response,
    started: Instant,
    route: &str,
    caller: &Authentication,
) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let id = response.headers().get(&REQUEST_ID).and_then(|id| id.to_str().ok());
    let trace_id = trace_id(request.headers()).map(tracing::field::display);
    let (token, user) = (display(caller.token), display(caller.user));
    let span = tracing::info_span!("request", id, trace_id, client = Empty, token, user);
    note_client(&span, request);
    let path = request.uri().path();
    span.in_scope(|| log(request.method(), path, route, response.status(), started.elapsed()));
}

fn log(method: &Method, path: &str, route: &str, status: StatusCode, duration: Duration) {
    let (status, ms) = (status.as_u16(), duration.as_secs_f64() * 1_000.0);
    if status >= StatusCode::INTERNAL_SERVER_ERROR.as_u16() {
        tracing::warn!(%method, path, route, status, ms, "answered");
    } else {
        tracing::debug!(%method, path, route, status, ms, "answered");
    }
}

/// Returns the label of a method. Clients may invent methods, but metrics need a bounded number of
/// labels.
fn known(method: &Method) -> &'static str {
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

/// Adds the matched route to the response, for [`report`].
pub(crate) async fn remember_route(path: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(Route(path));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_known_by_its_header() {
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
