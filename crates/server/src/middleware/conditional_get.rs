//! `If-None-Match` (RFC 9110, section 13.1.2): 304 for a client that has the representation.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;

use crate::respond::entity_tag;

/// Replaces a response by 304 if the request lists its entity tag.
pub(crate) async fn respond(
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    if *request.method() != Method::GET || !request.headers().contains_key(IF_NONE_MATCH) {
        return next(request).await;
    }
    let listed = request.headers().get_all(IF_NONE_MATCH).iter();
    let listed: HeaderMap = listed.map(|value| (IF_NONE_MATCH, value.clone())).collect();
    let response = next(request).await;
    let tag = response.headers().get(ETAG);
    let is_listed = response.status() == StatusCode::OK
        && tag.is_some_and(|tag| entity_tag::is_listed(&listed, tag));
    if is_listed { not_modified(response) } else { response }
}

/// Removes the body and the headers that describe it, and sets the status 304.
pub(crate) fn not_modified(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    *response.body_mut() = Body::empty();
    for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING] {
        response.headers_mut().remove(name);
    }
    response
}
