//! The request pipeline: the order of the middleware.

use std::convert::Infallible;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use tower::util::BoxCloneSyncService;
use tower::{ServiceBuilder, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::normalize_path::NormalizePathLayer;

use crate::app::App;
use crate::middleware::{
    cached_response, completion, compression, conditional_get, error_response, malformed_request,
    request_context, response_memory,
};

/// The middleware around the router. Clones share it.
#[derive(Clone)]
pub(crate) struct Pipeline {
    app: App,
    layers: BoxCloneSyncService<Request, Response, Infallible>,
}

impl Pipeline {
    /// Creates the pipeline around `router`.
    pub(crate) fn new(app: App, router: Router) -> Self {
        // The first layer sees the request first and the response last.
        let layers = ServiceBuilder::new()
            .layer(from_fn_with_state(app.clone(), request_context::provide))
            .layer(from_fn(conditional_get::respond))
            .layer(from_fn_with_state(app.clone(), cached_response::store))
            .layer(from_fn(compression::compress))
            .layer(from_fn_with_state(app.clone(), response_memory::reserve))
            .layer(from_fn(error_response::write))
            .layer(from_fn(malformed_request::reject))
            .layer(from_fn(completion::run))
            .layer(CatchPanicLayer::custom(completion::panicked))
            .layer(NormalizePathLayer::trim_trailing_slash())
            .service(router);
        Self { app, layers: BoxCloneSyncService::new(layers) }
    }

    /// Returns the response to a request.
    ///
    /// Cached responses and rejections under overload skip the layers: a response from the cache
    /// takes about 8 µs, and the layers would add a tenth.
    pub(crate) async fn handle(&self, mut request: Request) -> Response {
        if let Some(response) = cached_response::look_up(&self.app, &mut request).await {
            return response;
        }
        if self.app.overload().should_reject(request.uri()) {
            return error_response::overloaded(&request, self.app.environment());
        }
        let Ok(response) = self.layers.clone().oneshot(request).await;
        response
    }
}
