//! An axum server with constant responses: the cost of an HTTP request without any work.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};

/// The largest response in bytes.
const SIZE_MAX: usize = 4 * 1024 * 1024;

pub(crate) fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let bytes = Bytes::from(vec![b'x'; SIZE_MAX]);
    let router = Router::new()
        .route("/not-modified", get(not_modified))
        .route("/webhook", post(async || StatusCode::NO_CONTENT))
        .route("/{size}", get(constant))
        .with_state(bytes);
    super::serve(address, router)
}

async fn constant(State(bytes): State<Bytes>, Path(size): Path<usize>) -> Response {
    let mut response = Response::new(Body::from(bytes.slice(..size.min(SIZE_MAX))));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

async fn not_modified() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(ETAG, HeaderValue::from_static("\"constant\""));
    response
}
