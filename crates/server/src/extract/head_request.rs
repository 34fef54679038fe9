//! The difference between HEAD and GET.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;

use crate::app::App;
use crate::describe::arguments;

/// The mark of a request by HEAD, which is routed as GET.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsHead;

/// True for HEAD.
#[derive(Debug)]
pub(crate) struct HeadRequest(pub(crate) bool);

arguments! { HeadRequest: ; }

impl FromRequestParts<App> for HeadRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        // A header may have stated the method, too.
        let is_head = parts.method == Method::HEAD || parts.extensions.get::<IsHead>().is_some();
        Ok(Self(is_head))
    }
}
