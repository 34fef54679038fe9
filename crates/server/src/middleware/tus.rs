//! The parts of the protocol tus 1.0 that concern each request to resumable uploads.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;

use crate::extract::tus::{RESUMABLE, VERSION};
use crate::routes::assets::uploads::PATH;

const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");

/// Adds the version of the protocol to responses. A POST may state another method in a header, as
/// some proxies reject PATCH.
pub(crate) async fn apply(
    mut request: Request,
    next: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    if request.uri().path() != PATH {
        return next(request).await;
    }
    if let Some(method) = stated_method(&request) {
        *request.method_mut() = method;
    }
    let mut response = next(request).await;
    response.headers_mut().insert(RESUMABLE, HeaderValue::from_static(VERSION));
    response
}

fn stated_method(request: &Request) -> Option<Method> {
    let stated = request.headers().get(METHOD_OVERRIDE)?.as_bytes();
    let methods = [Method::HEAD, Method::PATCH, Method::DELETE];
    let stated = methods.into_iter().find(|method| method.as_str().as_bytes() == stated);
    stated.filter(|_| request.method() == Method::POST)
}
