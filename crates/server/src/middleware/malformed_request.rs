//! The rejection of requests that other HTTP parsers may read differently (request smuggling).

use axum::extract::Request;
use axum::http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use axum::http::{HeaderValue, Version};
use axum::response::{IntoResponse, Response};
use galley_api_types::problem::{Issue, Step};
use galley_application::Rejection;
use galley_domain::Invalid;

use crate::problem::Problem;

/// Rejects a malformed request and closes its connection, as the next bytes may be misread.
pub(crate) async fn reject(
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    match malformed_header(&request) {
        None => next(request).await,
        Some(issue) => Problem::from(Rejection::of_issues(vec![issue]))
            .with_header(CONNECTION, HeaderValue::from_static("close"))
            .into_response(),
    }
}

/// Returns the issue of a `Host` that is missing or repeated, or of an unknown transfer coding.
/// Proxies that see two hosts may each choose another one.
pub(crate) fn malformed_header(request: &Request) -> Option<Issue> {
    let issue = |name: &str, code, message| {
        Some(Issue::new(vec![Step::Field(name.to_owned())], &Invalid::new(code, message)))
    };
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts != 1 && (hosts > 0 || request.version() >= Version::HTTP_11) {
        return issue("Host", "required", "must be sent once (RFC 9112, section 3.2)");
    }
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => None,
        (Some(coding), None) if is_chunked(coding) => None,
        _ => issue(
            "Transfer-Encoding",
            "unsupported",
            "must be sent once, as chunked (RFC 9112, section 6.1)",
        ),
    }
}
