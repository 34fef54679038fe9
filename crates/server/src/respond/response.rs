//! Answers that say yes.

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

/// 200 with a list, or with what has no version.
pub(crate) fn ok<T: Serialize>(body: &T) -> Response {
    resource(0, body)
}

/// 200 with a resource of this version.
pub(crate) fn resource<T: Serialize>(version: i64, body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("resources are JSON");
    resource_of(version, bytes.into())
}

/// The same, of JSON that has its space already.
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

/// The answer to the making of something, in a form in which it can be kept and given again.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CreatedResponse {
    #[serde(default)]
    status: CreatedStatus,
    body: String,
    etag: Option<String>,
    location: Option<String>,
    /// Whether it may be given again.
    #[serde(skip)]
    secret: bool,
}

/// Whether it was made, or goes on now that it was asked for.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
enum CreatedStatus {
    #[default]
    Created,
    Accepted,
}

/// What is answered to a create, unless the whole resource is preferred.
#[derive(Serialize)]
pub(crate) struct Created<'a> {
    pub(crate) id: String,
    /// What should be looked at, though it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<&'a str>,
    /// What is shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<&'a str>,
}

impl CreatedResponse {
    /// 201 with the new resource's id, or whole where that is preferred.
    pub(crate) fn new<T: Serialize>(
        prefer: Prefer,
        id: impl ToString,
        version: i64,
        whole: &T,
    ) -> Self {
        let created = Created { id: id.to_string(), warning: None, token: None };
        Self::saying(prefer, &created, version, whole)
    }

    /// 201 with this, or the whole resource where that is preferred.
    pub(crate) fn saying<T: Serialize>(
        prefer: Prefer,
        created: &Created<'_>,
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

    /// 201 with what was made together.
    pub(crate) fn together<T: Serialize>(body: &T) -> Self {
        let body = serde_json::to_string(body).expect("identifiers are JSON");
        Self { status: CreatedStatus::Created, body, etag: None, location: None, secret: false }
    }

    /// 202 with the identifier of what goes on now that it was asked for.
    pub(crate) fn accepted(id: impl ToString) -> Self {
        let created = Created { id: id.to_string(), warning: None, token: None };
        let minimal = Self::saying(Prefer::Minimal, &created, 0, &());
        Self { status: CreatedStatus::Accepted, ..minimal }
    }

    /// Says where the resource can be retrieved.
    pub(crate) fn at(self, path: &str, id: impl ToString) -> Self {
        Self { location: Some(format!("{path}?id={}", id.to_string())), ..self }
    }

    /// Shown once: it can't be given again.
    pub(crate) fn once(self) -> Self {
        Self { secret: true, ..self }
    }

    /// Whether it is shown once only.
    pub(crate) fn is_secret(&self) -> bool {
        self.secret
    }

    /// The answer, said for the first time or again.
    pub(crate) fn into_response(self, replayed: bool) -> Response {
        let status = match self.status {
            CreatedStatus::Created => StatusCode::CREATED,
            CreatedStatus::Accepted => StatusCode::ACCEPTED,
        };
        let mut response = with_json(status, self.body.into_bytes().into());
        if self.etag.is_some() {
            response = applied(response);
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

/// Says that an answer was given before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// 204 after an update, or 200 with the resource where that is preferred, with the entity tag that
/// it now has.
pub(crate) fn updated<T: Serialize>(prefer: Prefer, version: i64, body: &T) -> Response {
    let whole = resource(version, body);
    if prefer == Prefer::Representation {
        return applied(whole);
    }
    let mut response = no_content();
    response.headers_mut().extend(whole.headers().get(ETAG).map(|tag| (ETAG, tag.clone())));
    response
}

/// What is the same for everybody, with its entity tag.
#[derive(Debug)]
pub(crate) struct File {
    content_type: HeaderValue,
    bytes: Bytes,
    tag: HeaderValue,
}

impl File {
    pub(crate) fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let (content_type, bytes) = (HeaderValue::from_static(content_type), bytes.into());
        let tag = entity_tag(0, &bytes);
        Self { content_type, bytes, tag }
    }
}

/// 200 with a file.
pub(crate) fn file(file: &File) -> Response {
    let mut response = Response::new(Body::from(file.bytes.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, file.content_type.clone());
    headers.insert(ETAG, file.tag.clone());
    response.extensions_mut().insert(HasReservation);
    response
}

/// Answers a change as if the whole resource were not preferred, if it was, and says whether.
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
        for about_the_body in [CONTENT_TYPE, CONTENT_LENGTH] {
            response.headers_mut().remove(about_the_body);
        }
        return true;
    }
    let created = serde_json::from_slice(&whole).map(|Whole { id }| {
        serde_json::to_vec(&Created { id, warning: None, token: None }).expect("texts are JSON")
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

/// Says that what was preferred was done.
fn applied(mut response: Response) -> Response {
    let done = HeaderValue::from_static("return=representation");
    response.headers_mut().insert(APPLIED, done);
    response
}

/// 204 after a deletion.
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
