//! Answers that say yes.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::http::conditional::entity_tag;

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

/// 201 with the new resource's id, and where it can be retrieved.
pub(crate) fn created(path: &str, id: impl ToString) -> Response {
    #[derive(Serialize)]
    struct Created {
        id: String,
    }
    let id = id.to_string();
    let location = HeaderValue::try_from(format!("{path}?id={id}"));
    let mut response = json(StatusCode::CREATED, &Created { id });
    response.headers_mut().insert(LOCATION, location.expect("paths and ids are visible ASCII"));
    response
}

/// 204 after an update, with the entity tag that the resource now has.
pub(crate) fn updated<T: Serialize>(version: i64, body: &T) -> Response {
    let representation = serde_json::to_vec(body).expect("resources are JSON");
    let mut response = no_content();
    response.headers_mut().insert(ETAG, entity_tag(version, &representation));
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
