//! Responses to creates.

use axum::http::header::{CACHE_CONTROL, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use galley_application::{CreatedResponse, CreatedStatus};
use serde::Serialize;

use crate::extract::prefer::Prefer;
use crate::respond::entity_tag::entity_tag;
use crate::respond::response::{
    CONVERSION_WARNINGS, MinimalBody, no_content, with_json, with_preference_applied,
};

/// The header of a replayed response.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Returns 201 with the new resource's id, or with the whole resource if preferred.
pub(crate) fn created<T: Serialize>(
    prefer: Prefer,
    id: impl ToString,
    version: i64,
    whole: &T,
) -> CreatedResponse {
    let body = MinimalBody { id: id.to_string(), warning: None, token: None };
    created_with_body(prefer, &body, version, whole)
}

/// Returns 201 with `body`, or with the whole resource if preferred.
pub(crate) fn created_with_body<T: Serialize>(
    prefer: Prefer,
    body: &MinimalBody<'_>,
    version: i64,
    whole: &T,
) -> CreatedResponse {
    match prefer {
        Prefer::Minimal => CreatedResponse::new(json(body), None),
        Prefer::Representation => {
            let whole = json(whole);
            let tag = entity_tag(version, whole.as_bytes());
            CreatedResponse::new(whole, tag.to_str().ok().map(ToOwned::to_owned))
        }
    }
}

/// Adds the number of conversion warnings. A whole resource becomes `whole`, which includes them.
pub(crate) fn with_conversion_warnings<T: Serialize>(
    created: CreatedResponse,
    count: usize,
    whole: &T,
) -> CreatedResponse {
    let body = if created.etag.is_some() { json(whole) } else { created.body };
    CreatedResponse { body, conversion_warnings: Some(count), ..created }
}

/// Returns 201 for the creation of several resources with this number of conversion warnings.
pub(crate) fn created_several<T: Serialize>(body: &T, warnings: usize) -> CreatedResponse {
    CreatedResponse {
        conversion_warnings: Some(warnings),
        ..CreatedResponse::new(json(body), None)
    }
}

/// Returns 204 after a change, or 200 with the changed resource if preferred.
pub(crate) fn changed<T: Serialize>(prefer: Prefer, version: i64, whole: &T) -> CreatedResponse {
    let whole = json(whole);
    let tag = entity_tag(version, whole.as_bytes()).to_str().ok().map(ToOwned::to_owned);
    let body = match prefer {
        Prefer::Minimal => String::new(),
        Prefer::Representation => whole,
    };
    CreatedResponse { body, etag: tag, ..CreatedResponse::completed() }
}

/// Returns 202 with the identifier of the work in the background.
pub(crate) fn accepted(id: impl ToString) -> CreatedResponse {
    CreatedResponse::accepted(json(&MinimalBody { id: id.to_string(), warning: None, token: None }))
}

/// Builds the HTTP response.
pub(crate) fn respond(created: CreatedResponse) -> Response {
    let is_whole = created.etag.is_some() && !created.body.is_empty();
    let body = created.body.into_bytes().into();
    let mut response = match created.status {
        CreatedStatus::Created => with_json(StatusCode::CREATED, body),
        CreatedStatus::Accepted => with_json(StatusCode::ACCEPTED, body),
        CreatedStatus::Completed if is_whole => with_json(StatusCode::OK, body),
        CreatedStatus::Completed => no_content(),
    };
    if is_whole {
        response = with_preference_applied(response);
    }
    let headers = response.headers_mut();
    if created.is_secret {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    for (name, text) in [(ETAG, created.etag), (LOCATION, created.location)] {
        let value = text.and_then(|text| HeaderValue::try_from(text).ok());
        headers.extend(value.map(|value| (name, value)));
    }
    if let Some(count) = created.conversion_warnings {
        headers.insert(CONVERSION_WARNINGS, count.into());
    }
    if created.is_replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn json(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("resources are JSON")
}
