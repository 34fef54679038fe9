//! Cross-origin requests (CORS). By default, no other origin is allowed.

use std::time::Duration;

use axum::http::header::{
    AGE, AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LINK,
    LOCATION, RETRY_AFTER,
};
use axum::http::{HeaderName, HeaderValue, Method};
use galley_domain::text::WebOrigin;
use tower_http::cors::CorsLayer;

use crate::extract::prefer::APPLIED;
use crate::extract::tus;
use crate::respond::created::REPLAYED;
use crate::respond::response::{CONVERSION_WARNINGS, SEARCH_SEQUENCE, TOTAL_COUNT};

/// The time for which a browser may cache the response to a preflight request.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_hours(1);

/// Allows scripts of these origins, which send a token of their own. Cookies are not allowed.
pub(crate) fn layer(origins: &[WebOrigin]) -> CorsLayer {
    let [prefer, idempotency_key, last_event_id, rate, rate_policy, request_id] = [
        "prefer",
        "idempotency-key",
        "last-event-id",
        "ratelimit",
        "ratelimit-policy",
        "x-request-id",
    ]
    .map(HeaderName::from_static);
    let [content_digest, repr_digest, method_override] =
        ["content-digest", "repr-digest", "x-http-method-override"].map(HeaderName::from_static);
    let header = |origin: &WebOrigin| HeaderValue::try_from(origin.as_str()).ok();
    let origins: Vec<HeaderValue> = origins.iter().filter_map(header).collect();
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_DISPOSITION,
            CONTENT_TYPE,
            IF_MATCH,
            IF_NONE_MATCH,
            prefer,
            idempotency_key,
            last_event_id,
            request_id.clone(),
            content_digest,
            repr_digest,
            method_override,
            tus::RESUMABLE,
            tus::LENGTH,
            tus::METADATA,
            tus::OFFSET,
        ])
        .expose_headers([
            AGE,
            ETAG,
            LINK,
            LOCATION,
            RETRY_AFTER,
            APPLIED,
            CONVERSION_WARNINGS,
            REPLAYED,
            SEARCH_SEQUENCE,
            TOTAL_COUNT,
            rate,
            rate_policy,
            request_id,
            tus::RESUMABLE,
            tus::SUPPORTED_VERSIONS,
            tus::SUPPORTED_EXTENSIONS,
            tus::MAX_SIZE,
            tus::EXPIRES,
            tus::LENGTH,
            tus::METADATA,
            tus::OFFSET,
        ])
        .max_age(PREFLIGHT_MAX_AGE)
}
