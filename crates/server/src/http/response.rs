//! Answers that say yes.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// 200 with a resource or a list.
pub(crate) fn ok<T: Serialize>(body: &T) -> Response {
    json(StatusCode::OK, body)
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

/// 204 after an update or a deletion.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("resources are JSON");
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
