//! Answers that say yes.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::http::conditional::entity_tag;
use crate::http::prefer::Prefer;

/// 200 with a list, or with what has no version.
pub(crate) fn ok<T: Serialize>(body: &T) -> Response {
    resource(0, body)
}

/// 200 with a resource of this version.
pub(crate) fn resource<T: Serialize>(version: i64, body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("resources are JSON");
    let tag = entity_tag(version, &bytes);
    let mut response = with_json(StatusCode::OK, bytes);
    response.headers_mut().insert(ETAG, tag);
    response
}

/// 201 with the new resource's id, or whole where that is preferred, and where it can be retrieved.
pub(crate) fn created<T: Serialize>(
    prefer: Prefer,
    path: &str,
    id: impl ToString,
    version: i64,
    body: &T,
) -> Response {
    #[derive(Serialize)]
    struct Created<'i> {
        id: &'i str,
    }
    let id = id.to_string();
    let location = HeaderValue::try_from(format!("{path}?id={id}"));
    let mut response = match prefer {
        Prefer::Minimal => json(StatusCode::CREATED, &Created { id: &id }),
        Prefer::Representation => {
            let mut response = applied(resource(version, body));
            *response.status_mut() = StatusCode::CREATED;
            response
        }
    };
    response.headers_mut().insert(LOCATION, location.expect("paths and ids are visible ASCII"));
    response
}

/// 204 after an update, or 200 with the resource where that is preferred, with the entity tag that
/// it now has.
pub(crate) fn updated<T: Serialize>(prefer: Prefer, version: i64, body: &T) -> Response {
    let whole = resource(version, body);
    if prefer == Prefer::Representation {
        return applied(whole);
    }
    let mut response = no_content();
    response.headers_mut().extend(whole.headers().get(ETAG).map(|tag| (ETAG, tag.clone())));
    response
}

/// What is the same for everybody, with its entity tag.
#[derive(Debug)]
pub(crate) struct File {
    content_type: HeaderValue,
    bytes: Bytes,
    tag: HeaderValue,
}

impl File {
    pub(crate) fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let (content_type, bytes) = (HeaderValue::from_static(content_type), bytes.into());
        let tag = entity_tag(0, &bytes);
        Self { content_type, bytes, tag }
    }
}

/// 200 with a file.
pub(crate) fn file(file: &File) -> Response {
    let mut response = Response::new(Body::from(file.bytes.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, file.content_type.clone());
    headers.insert(ETAG, file.tag.clone());
    response
}

/// Says that what was preferred was done.
fn applied(mut response: Response) -> Response {
    let done = HeaderValue::from_static("return=representation");
    response.headers_mut().insert("preference-applied", done);
    response
}

/// 204 after a deletion.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    with_json(status, serde_json::to_vec(body).expect("resources are JSON"))
}

fn with_json(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
