//! The route and the method of a response, for metrics, the log and traces.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

/// The route of a response, in its extensions.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// The router has matched it.
    Matched(MatchedPath),
    /// The response comes from a cache, before the router.
    Cached(&'static str),
}

/// Adds the route to the response's extensions.
pub(crate) async fn record(path: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(Route::Matched(path));
    response
}

/// Returns the path of a response's route, if a route has matched.
pub(crate) fn route_of(response: &Response) -> Option<&str> {
    response.extensions().get::<Route>().map(|route| match route {
        Route::Matched(path) => path.as_str(),
        Route::Cached(path) => path,
    })
}

/// Returns the label of a method for metrics and traces. Unknown methods share one, as clients may
/// invent any.
pub(crate) fn method_label(method: &Method) -> &'static str {
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
