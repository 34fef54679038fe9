//! Successful responses.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::extract::prefer::{APPLIED, Prefer};
use crate::respond::entity_tag::entity_tag;

/// The number of the last event that the search index has.
pub(crate) const SEARCH_SEQUENCE: HeaderName = HeaderName::from_static("search-sequence");

/// The header with the number of items on all pages of a list.
pub(crate) const TOTAL_COUNT: HeaderName = HeaderName::from_static("total-count");
/// The header with the number of conversion warnings.
pub(crate) const CONVERSION_WARNINGS: HeaderName = HeaderName::from_static("conversion-warnings");

/// The mark of a response whose body has a memory reservation, or needs none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasReservation;

/// The size of a body before its compression, as an extension of the response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UncompressedSize(pub(crate) u64);

/// Returns 200 with a list, or with a resource without a version.
pub(crate) fn ok<T: Serialize>(body: &T) -> Response {
    resource(0, body)
}

/// Returns 200 with a resource of this version.
pub(crate) fn resource<T: Serialize>(version: i64, body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("resources are JSON");
    resource_of(version, bytes.into())
}

/// Like [`resource`], for JSON that has its memory reservation already.
pub(crate) fn reserved_resource(version: i64, bytes: Bytes) -> Response {
    let mut response = resource_of(version, bytes);
    response.extensions_mut().insert(HasReservation);
    response
}

fn resource_of(version: i64, bytes: Bytes) -> Response {
    let tag = entity_tag(version, &bytes);
    let mut response = with_json(StatusCode::OK, bytes);
    response.headers_mut().insert(ETAG, tag);
    response
}

/// Returns 204 after an update, or 200 with the resource if preferred, with its new entity tag.
pub(crate) fn updated<T: Serialize>(prefer: Prefer, version: i64, body: &T) -> Response {
    let whole = resource(version, body);
    if prefer == Prefer::Representation {
        return with_preference_applied(whole);
    }
    let mut response = no_content();
    response.headers_mut().extend(whole.headers().get(ETAG).map(|tag| (ETAG, tag.clone())));
    response
}

/// Returns the response to an update that converted content. A whole resource in the body includes
/// the warnings, and its entity tag is that of its GET.
pub(crate) fn updated_with_warnings<T: Serialize>(
    prefer: Prefer,
    version: i64,
    whole: &T,
    warnings: usize,
    shown: &T,
) -> Response {
    let mut response = updated(prefer, version, whole);
    if prefer == Prefer::Representation {
        let bytes = serde_json::to_vec(shown).expect("resources are JSON");
        *response.body_mut() = Body::from(bytes);
    }
    response.headers_mut().insert(CONVERSION_WARNINGS, warnings.into());
    response
}

/// The body of the response to a create, unless the client prefers the whole resource.
#[derive(Serialize)]
pub(crate) struct MinimalBody<'a> {
    pub(crate) id: String,
    /// A warning about a request that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<&'a str>,
    /// A secret, which is shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<&'a str>,
}

/// A static file with its entity tag, the same for every client.
#[derive(Debug)]
pub(crate) struct StaticFile {
    content_type: HeaderValue,
    bytes: Bytes,
    tag: HeaderValue,
}

impl StaticFile {
    pub(crate) fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let (content_type, bytes) = (HeaderValue::from_static(content_type), bytes.into());
        let tag = entity_tag(0, &bytes);
        Self { content_type, bytes, tag }
    }
}

/// Returns 200 with a file.
pub(crate) fn file(file: &StaticFile) -> Response {
    let mut response = Response::new(Body::from(file.bytes.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, file.content_type.clone());
    headers.insert(ETAG, file.tag.clone());
    response.extensions_mut().insert(HasReservation);
    response
}

/// Reduces the response to a change to its minimal form, if the client preferred the whole
/// resource. Returns true if it did.
pub(crate) async fn leave_out_representation(response: &mut Response) -> bool {
    #[derive(serde::Deserialize)]
    struct Whole {
        id: String,
    }
    if response.headers_mut().remove(APPLIED).is_none() {
        return false;
    }
    let whole = to_bytes(std::mem::take(response.body_mut()), usize::MAX).await;
    let whole = whole.expect("its bytes are there already");
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NO_CONTENT;
        for body_header in [CONTENT_TYPE, CONTENT_LENGTH] {
            response.headers_mut().remove(body_header);
        }
        return true;
    }
    let created = serde_json::from_slice(&whole).map(|Whole { id }| {
        serde_json::to_vec(&MinimalBody { id, warning: None, token: None }).expect("texts are JSON")
    });
    match created {
        Ok(created) => {
            response.headers_mut().remove(ETAG);
            response.headers_mut().remove(CONTENT_LENGTH);
            *response.body_mut() = Body::from(created);
            true
        }
        Err(_) => {
            *response.body_mut() = Body::from(whole);
            false
        }
    }
}

/// Adds the header that confirms the applied preference.
pub(crate) fn with_preference_applied(mut response: Response) -> Response {
    let done = HeaderValue::from_static("return=representation");
    response.headers_mut().insert(APPLIED, done);
    response
}

/// Returns 202 with a body.
pub(crate) fn accepted<T: Serialize>(body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("resources are JSON");
    with_json(StatusCode::ACCEPTED, bytes.into())
}

/// Returns 204 after a deletion.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

pub(crate) fn with_json(status: StatusCode, bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
