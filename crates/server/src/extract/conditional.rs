//! `If-Match` (RFC 9110, section 13.1.1): the version precondition of a change.

use axum::extract::FromRequestParts;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;
use galley_application::VersionPrecondition;

use crate::app::App;
use crate::describe::arguments;
use crate::problem::Problem;
use crate::respond::entity_tag::tags;

impl FromRequestParts<App> for VersionPrecondition {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        if !parts.headers.contains_key(IF_MATCH) {
            return Ok(Self::Any);
        }
        if tags(&parts.headers, &IF_MATCH).any(|tag| tag == "*") {
            return Ok(Self::Any);
        }
        // A tag that Galley never issued matches no version.
        Ok(Self::OneOf(tags(&parts.headers, &IF_MATCH).filter_map(version).collect()))
    }
}

arguments! { VersionPrecondition: if_match; }

/// Returns the version in a strong tag.
fn version(tag: &str) -> Option<i64> {
    let (version, _) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
    version.parse().ok()
}
