//! Entity tags (RFC 9110, section 8.8.3).
//!
//! An entity tag is `"<version>.<hash>"`: the version of the resource, which every change of it
//! raises, and a hash of the representation. `If-None-Match` compares the whole tag, `If-Match` the
//! version.

use axum::http::header::IF_NONE_MATCH;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use xxhash_rust::xxh3::xxh3_128;

/// The bytes of the hash in a tag: 96 bits make collisions by chance negligible. A writer could
/// construct a collision, which only makes readers keep the older of two texts of this writer. A
/// cryptographic hash takes half of the time of an uncached list on processors without SHA
/// instructions.
const HASH_BYTES: usize = 12;

/// Returns the entity tag of a representation.
pub(crate) fn entity_tag(version: i64, representation: &[u8]) -> HeaderValue {
    let hash = xxh3_128(representation).to_be_bytes();
    let hash = URL_SAFE_NO_PAD.encode(&hash[..HASH_BYTES]);
    HeaderValue::try_from(format!("\"{version}.{hash}\"")).expect("digits and base 64 are ASCII")
}

/// Returns true if `If-None-Match` lists the tag, so that the client has the representation.
pub(crate) fn is_listed(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let Ok(own) = tag.to_str() else { return false };
    // Reads compare weakly (RFC 9110, section 13.1.2).
    let same = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == own;
    tags(request, &IF_NONE_MATCH).any(same)
}

/// Returns the tags of all headers of this name. Galley's tags contain no commas.
pub(crate) fn tags<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|tag| !tag.is_empty())
}
