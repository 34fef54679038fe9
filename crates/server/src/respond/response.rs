//! Successful responses.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::extract::prefer::{APPLIED, Prefer};
use crate::respond::entity_tag::entity_tag;

/// The mark of a response whose body has a memory reservation, or needs none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasReservation;

/// Returns 200 with a list, or with a resource without a version.
pub(crate) fn ok<T: Serialize>(body: &T) -> Response {
    resource(0, body)
}

/// Returns 200 with a resource of this version.
pub(crate) fn resource<T: Serialize>(version: i64, body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("resources are JSON");
    resource_of(version, bytes.into())
}

/// Like [`resource`], for JSON that has its memory reservation already.
pub(crate) fn reserved_resource(version: i64, bytes: Bytes) -> Response {
    let mut response = resource_of(version, bytes);
    response.extensions_mut().insert(HasReservation);
    response
}

fn resource_of(version: i64, bytes: Bytes) -> Response {
    let tag = entity_tag(version, &bytes);
    let mut response = with_json(StatusCode::OK, bytes);
    response.headers_mut().insert(ETAG, tag);
    response
}

/// The response to a create, in a form that can be stored and replayed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CreatedResponse {
    #[serde(default)]
    status: CreatedStatus,
    body: String,
    etag: Option<String>,
    location: Option<String>,
    /// True if it shows a secret, so that it must not be replayed.
    #[serde(skip)]
    secret: bool,
}

/// The status: created, or accepted for processing in the background.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
enum CreatedStatus {
    #[default]
    Created,
    Accepted,
}

/// The body of the response to a create, unless the client prefers the whole resource.
#[derive(Serialize)]
pub(crate) struct MinimalBody<'a> {
    pub(crate) id: String,
    /// A warning about a request that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<&'a str>,
    /// A secret, which is shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<&'a str>,
}

impl CreatedResponse {
    /// Creates a 201 response with the new resource's id, or with the whole resource if preferred.
    pub(crate) fn new<T: Serialize>(
        prefer: Prefer,
        id: impl ToString,
        version: i64,
        whole: &T,
    ) -> Self {
        let created = MinimalBody { id: id.to_string(), warning: None, token: None };
        Self::with_body(prefer, &created, version, whole)
    }

    /// Creates a 201 response with `created`, or with the whole resource if preferred.
    pub(crate) fn with_body<T: Serialize>(
        prefer: Prefer,
        created: &MinimalBody<'_>,
        version: i64,
        whole: &T,
    ) -> Self {
        let (body, etag) = match prefer {
            Prefer::Minimal => (serde_json::to_string(created), None),
            Prefer::Representation => (serde_json::to_string(whole), Some(version)),
        };
        let body = body.expect("resources are JSON");
        let tag = etag.map(|version| entity_tag(version, body.as_bytes()));
        let etag = tag.and_then(|tag| tag.to_str().ok().map(ToOwned::to_owned));
        Self { status: CreatedStatus::Created, body, etag, location: None, secret: false }
    }

    /// Creates a 201 response to the creation of several resources.
    pub(crate) fn for_several<T: Serialize>(body: &T) -> Self {
        let body = serde_json::to_string(body).expect("identifiers are JSON");
        Self { status: CreatedStatus::Created, body, etag: None, location: None, secret: false }
    }

    /// Creates a 202 response with the identifier of the work in the background.
    pub(crate) fn accepted(id: impl ToString) -> Self {
        let created = MinimalBody { id: id.to_string(), warning: None, token: None };
        let minimal = Self::with_body(Prefer::Minimal, &created, 0, &());
        Self { status: CreatedStatus::Accepted, ..minimal }
    }

    /// Adds the location of the resource.
    pub(crate) fn with_location(self, path: &str, id: impl ToString) -> Self {
        Self { location: Some(format!("{path}?id={}", id.to_string())), ..self }
    }

    /// Marks the response as secret: it is never replayed.
    pub(crate) fn not_replayable(self) -> Self {
        Self { secret: true, ..self }
    }

    /// Returns true if the response must not be replayed.
    pub(crate) fn is_secret(&self) -> bool {
        self.secret
    }

    /// Builds the HTTP response. `replayed` is true if it was sent before.
    pub(crate) fn into_response(self, replayed: bool) -> Response {
        let status = match self.status {
            CreatedStatus::Created => StatusCode::CREATED,
            CreatedStatus::Accepted => StatusCode::ACCEPTED,
        };
        let mut response = with_json(status, self.body.into_bytes().into());
        if self.etag.is_some() {
            response = with_preference_applied(response);
        }
        let headers = response.headers_mut();
        if self.secret {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let texts = [(ETAG, self.etag), (LOCATION, self.location)];
        for (name, text) in texts {
            let value = text.and_then(|text| HeaderValue::try_from(text).ok());
            headers.extend(value.map(|value| (name, value)));
        }
        if replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

/// The header of a replayed response.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Returns 204 after an update, or 200 with the resource if preferred, with its new entity tag.
pub(crate) fn updated<T: Serialize>(prefer: Prefer, version: i64, body: &T) -> Response {
    let whole = resource(version, body);
    if prefer == Prefer::Representation {
        return with_preference_applied(whole);
    }
    let mut response = no_content();
    response.headers_mut().extend(whole.headers().get(ETAG).map(|tag| (ETAG, tag.clone())));
    response
}

/// A static file with its entity tag, the same for every client.
#[derive(Debug)]
pub(crate) struct StaticFile {
    content_type: HeaderValue,
    bytes: Bytes,
    tag: HeaderValue,
}

impl StaticFile {
    pub(crate) fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let (content_type, bytes) = (HeaderValue::from_static(content_type), bytes.into());
        let tag = entity_tag(0, &bytes);
        Self { content_type, bytes, tag }
    }
}

/// Returns 200 with a file.
pub(crate) fn file(file: &StaticFile) -> Response {
    let mut response = Response::new(Body::from(file.bytes.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, file.content_type.clone());
    headers.insert(ETAG, file.tag.clone());
    response.extensions_mut().insert(HasReservation);
    response
}

/// Reduces the response to a change to its minimal form, if the client preferred the whole
/// resource. Returns true if it did.
pub(crate) async fn leave_out_representation(response: &mut Response) -> bool {
    #[derive(Deserialize)]
    struct Whole {
        id: String,
    }
    if response.headers_mut().remove(APPLIED).is_none() {
        return false;
    }
    let whole = to_bytes(std::mem::take(response.body_mut()), usize::MAX).await;
    let whole = whole.expect("its bytes are there already");
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NO_CONTENT;
        for body_header in [CONTENT_TYPE, CONTENT_LENGTH] {
            response.headers_mut().remove(body_header);
        }
        return true;
    }
    let created = serde_json::from_slice(&whole).map(|Whole { id }| {
        serde_json::to_vec(&MinimalBody { id, warning: None, token: None }).expect("texts are JSON")
    });
    match created {
        Ok(created) => {
            response.headers_mut().remove(ETAG);
            response.headers_mut().remove(CONTENT_LENGTH);
            *response.body_mut() = Body::from(created);
            true
        }
        Err(_) => {
            *response.body_mut() = Body::from(whole);
            false
        }
    }
}

/// Adds the header that confirms the applied preference.
fn with_preference_applied(mut response: Response) -> Response {
    let done = HeaderValue::from_static("return=representation");
    response.headers_mut().insert(APPLIED, done);
    response
}

/// Returns 204 after a deletion.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

fn with_json(status: StatusCode, bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
