//! Conditional requests (RFC 9110, section 13): entity tags, `If-None-Match` and `If-Match`.
//!
//! An entity tag is `"<version>.<hash>"`: the version of the resource, which every change of it
//! raises, and a hash of the representation. A reader compares all of it, a writer the version.

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

/// How many bytes of the hash are told: chance doesn't meet twice in so many.
const HASH_BYTES: usize = 12;

/// The entity tag of a representation.
pub(crate) fn entity_tag(version: i64, representation: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(representation);
    let hash = URL_SAFE_NO_PAD.encode(&hash[..HASH_BYTES]);
    HeaderValue::try_from(format!("\"{version}.{hash}\"")).expect("digits and base 64 are ASCII")
}

/// The tags of what the client has, to be looked at when there is an answer.
pub(crate) fn known_tags(request: &HeaderMap) -> HeaderMap {
    request.get_all(IF_NONE_MATCH).iter().map(|value| (IF_NONE_MATCH, value.clone())).collect()
}

/// Whether the client has what `response` would give it, by what [`known_tags`] gave.
pub(crate) fn is_known(request: &HeaderMap, response: &Response) -> bool {
    let own = response.headers().get(ETAG);
    response.status() == StatusCode::OK && own.is_some_and(|own| names(request, own))
}

/// Whether a request names the tag `own` among those that its client has.
pub(crate) fn names(request: &HeaderMap, own: &HeaderValue) -> bool {
    let Ok(own) = own.to_str() else { return false };
    // For reading a weak tag is as good as a strong one.
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
        // What is no tag of ours is of no version.
        Ok(Self::OneOf(tags(&parts.headers, &IF_MATCH).filter_map(version).collect()))
    }
}

impl Argument for Expected {
    fn tell(facts: &mut Facts) {
        facts.if_match = true;
    }
}

/// The version in a strong tag.
fn version(tag: &str) -> Option<i64> {
    let (version, _) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('.')?;
    version.parse().ok()
}

/// The tags of all headers of this name. Ours hold no commas.
fn tags<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|tag| !tag.is_empty())
}
