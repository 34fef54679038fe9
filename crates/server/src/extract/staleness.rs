//! The staleness bound of a request, as an argument of handlers.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use galley_application::StalenessBound;

use crate::app::App;
use crate::describe::arguments;

impl FromRequestParts<App> for StalenessBound {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

arguments! { StalenessBound: allows_stale; }
