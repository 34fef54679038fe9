//! `GET /openapi.json`

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;

use crate::app::App;
use crate::describe::{HandlerArgument, HandlerFacts};
use crate::respond::response::{self, StaticFile};

/// The OpenAPI document, which the router provides.
pub(crate) struct OpenapiDocument(&'static StaticFile);

impl FromRequestParts<App> for OpenapiDocument {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self(app.openapi_document()))
    }
}

impl HandlerArgument for OpenapiDocument {
    fn add_facts(_: &mut HandlerFacts) {}
}

/// Get the OpenAPI document
///
/// Returns an OpenAPI 3.1 document of this API.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "getOpenapi",
    responses((status = 200, body = Object, example = json!({
        "openapi": "3.1.0", "info": {"title": "Galley", "version": "0.1.0"}, "paths": {}
    }))),
)]
pub(crate) async fn handle(OpenapiDocument(document): OpenapiDocument) -> Response {
    response::file(document)
}
