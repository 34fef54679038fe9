//! `Prefer: return=representation` (RFC 7240): the resource in the answer to its change.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::http::app::App;
use crate::openapi::endpoint::{Argument, Facts};

/// What a client wants to get back of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// As little as there is to say.
    Minimal,
    /// The whole resource.
    Representation,
}

impl FromRequestParts<App> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let values = parts.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let preferences = values.flat_map(|value| value.split([',', ';'])).map(str::trim);
        // Of two, the first counts.
        let wanted = preferences
            .filter_map(|preference| preference.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("return"));
        Ok(match wanted {
            Some((_, value)) if value.trim().trim_matches('"') == "representation" => {
                Self::Representation
            }
            _ => Self::Minimal,
        })
    }
}

impl Argument for Prefer {
    fn tell(facts: &mut Facts) {
        facts.prefer = true;
    }
}
