//! Compression of responses by `gzip` and `br`, as `Accept-Encoding` allows.

use std::convert::Infallible;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG};
use axum::response::Response;
use tower::{ServiceExt, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::respond::response::UncompressedSize;

/// The size from which a body is compressed, in bytes.
const MIN_SIZE: u16 = 1_024;

/// The compression level. Higher levels take far longer for little gain.
const LEVEL: i32 = 4;

/// Compresses the response to a client that accepts a coding.
pub(crate) async fn compress(
    request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let accepted = request.headers().get(ACCEPT_ENCODING).cloned();
    let response = next(request).await;
    match accepted {
        Some(accepted) => encode(accepted, response).await,
        None => response,
    }
}

/// Compresses a body while it is sent, and gives the coding an entity tag of its own.
async fn encode(accepted: HeaderValue, response: Response) -> Response {
    let size = response.body().size_hint().exact();
    if size.is_some_and(|size| size < u64::from(MIN_SIZE)) {
        return response;
    }
    let mut accept_request = axum::http::Request::new(());
    accept_request.headers_mut().insert(ACCEPT_ENCODING, accepted);
    let mut response = Some(response);
    let inner = service_fn(|_: axum::http::Request<()>| {
        let response = response.take().expect("it is asked once");
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let is_compressible = SizeAbove::new(MIN_SIZE)
        .and(NotForContentType::SSE)
        .and(NotForContentType::IMAGES)
        .and(NotForContentType::const_new("font/"))
        // Most media and archives are compressed already.
        .and(NotForContentType::const_new("audio/"))
        .and(NotForContentType::const_new("video/"))
        .and(NotForContentType::const_new("application/zip"));
    let service = Compression::new(inner)
        .quality(CompressionLevel::Precise(LEVEL))
        .compress_when(is_compressible);
    let Ok(compressed) = service.oneshot(accept_request).await;
    let mut response = compressed.map(Body::new);
    if let Some(size) = size {
        response.extensions_mut().insert(UncompressedSize(size));
    }
    let coding = response.headers().get(CONTENT_ENCODING).and_then(|coding| coding.to_str().ok());
    let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
    // Two content codings of a representation differ in their bytes, so they need different tags.
    if let (Some(coding), Some(tag)) = (coding, tag.and_then(|tag| tag.strip_suffix('"')))
        && let Ok(tag) = HeaderValue::try_from(format!("{tag}-{coding}\""))
    {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}
