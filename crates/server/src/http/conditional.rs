//! Conditional requests (RFC 9110, section 13): entity tags, `If-None-Match` and `If-Match`.
//!
//! An entity tag is `"<version>.<hash>"`: the version of the resource, which every change of it
//! raises, and a hash of the representation. `If-None-Match` compares both, `If-Match` only the
//! version.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use galley_application::Expected;
use sha2::{Digest, Sha256};

use crate::http::app::App;
use crate::openapi::endpoint::{Argument, Facts};
use crate::problem::Problem;

/// The bytes of the hash in an entity tag: enough that collisions by chance don't occur.
const HASH_BYTES: usize = 12;

/// Returns the entity tag of a representation.
pub(crate) fn entity_tag(version: i64, representation: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(representation);
    let hash = URL_SAFE_NO_PAD.encode(&hash[..HASH_BYTES]);
    HeaderValue::try_from(format!("\"{version}.{hash}\"")).expect("digits and base 64 are ASCII")
}

/// Copies the `If-None-Match` headers of a request, for a comparison with its response.
pub(crate) fn known_tags(request: &HeaderMap) -> HeaderMap {
    request.get_all(IF_NONE_MATCH).iter().map(|value| (IF_NONE_MATCH, value.clone())).collect()
}

/// Returns true if the client has the representation in `response`. `request` is the result of
/// [`known_tags`].
pub(crate) fn is_known(request: &HeaderMap, response: &Response) -> bool {
    let own = response.headers().get(ETAG);
    response.status() == StatusCode::OK && own.is_some_and(|own| names(request, own))
}

/// Returns true if the `If-None-Match` of a request matches the tag `own`.
pub(crate) fn names(request: &HeaderMap, own: &HeaderValue) -> bool {
    let Ok(own) = own.to_str() else { return false };
    // `If-None-Match` uses the weak comparison (RFC 9110, section 13.1.2).
    let same = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == own;
    tags(request, &IF_NONE_MATCH).any(same)
}

impl FromRequestParts<App> for Expected {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        if !parts.headers.contains_key(IF_MATCH) {
            return Ok(Self::Any);
        }
        if tags(&parts.headers, &IF_MATCH).any(|tag| tag == "*") {
            return Ok(Self::Any);
        }
        // A tag in another format matches no version.
        Ok(Self::OneOf(tags(&parts.headers, &IF_MATCH).filter_map(version).collect()))
    }
}

impl Argument for Expected {
    fn tell(facts: &mut Facts) {
        facts.if_match = true;
    }
}

/// Returns the version in a strong tag.
fn version(tag: &str) -> Option<i64> {
    let (version, _) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
    version.parse().ok()
}

/// Returns the tags of all headers of this name. Tags of this service contain no commas.
fn tags<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|tag| !tag.is_empty())
}
