//! Errors as clients see them: problem details after RFC 9457.
//!
//! A [`Problem`] travels inside the response until the middleware writes it out, because the
//! request's id is known only there.

mod texts;

use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use galley_api_types::problem::ProblemBody;
use galley_application::{Error, Reason, Rejection, housekeeping};
use galley_runtime::Overloaded;
use galley_storage as storage;
pub(crate) use texts::{ReasonTexts, texts};

/// A rejection with the headers of its response.
#[derive(Debug, Clone)]
pub struct Problem {
    pub(crate) rejection: Box<Rejection>,
    pub(crate) headers: HeaderMap,
}

impl Problem {
    /// Creates the problem of a rejection without issues.
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Rejection::new(reason, detail).into()
    }

    /// Adds a header to the response.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        texts(self.rejection.reason).status
    }

    /// Returns the body of the response.
    pub(crate) fn to_json(&self, request_id: &str) -> String {
        let Rejection { reason, detail, issues, sequence, duplicates, .. } = &*self.rejection;
        let texts = texts(*reason);
        let body = ProblemBody {
            r#type: format!("/problems/{}", reason.as_str()),
            title: texts.title,
            status: texts.status.as_u16(),
            detail,
            code: &code(texts.status),
            message: detail,
            reason: reason.as_str(),
            issues,
            sequence: *sequence,
            duplicates,
            request_id,
        };
        serde_json::to_string(&body).expect("texts and numbers are JSON")
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let mut headers = HeaderMap::new();
        if rejection.reason == Reason::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = rejection.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        Self { rejection: Box::new(rejection), headers }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Rejected(rejection) => (*rejection).into(),
            Error::Storage(error) => storage_failure(&error).into(),
        }
    }
}

impl From<storage::Error> for Problem {
    fn from(error: storage::Error) -> Self {
        storage_failure(&error).into()
    }
}

impl From<Overloaded> for Problem {
    fn from(overloaded: Overloaded) -> Self {
        storage::Error::from(overloaded).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Logs a failure of the store, and returns its rejection without the cause.
fn storage_failure(error: &storage::Error) -> Rejection {
    use storage::Error as E;
    let (reason, detail, retry_after) = match error {
        E::StorageFull => (
            Reason::StorageFull,
            "nothing was changed; the operator must free disk space",
            Some(60),
        ),
        E::Detached(_) => {
            housekeeping::measure_files(false);
            (
                Reason::DatabaseUnavailable,
                "the database's files were deleted or replaced on the server; writes are rejected \
                 until it is restarted",
                Some(60),
            )
        }
        E::Unavailable(_) => (
            Reason::DatabaseUnavailable,
            "the database can't be reached; a change that was being committed may have been made \
             or not",
            Some(5),
        ),
        E::Overloaded | E::KeySpaceExhausted(..) | E::TimedOut | E::Conflict | E::Taken(_) => {
            (Reason::Overloaded, "nothing was changed; try again", Some(1))
        }
        E::Panicked
        | E::AwaitedElsewhere(_)
        | E::Corrupt(_)
        | E::Schema(_)
        | E::Settings(_)
        | E::Locked(_)
        | E::Engine(_) => {
            (Reason::Internal, "the log contains the cause under this request's id", None)
        }
    };
    if reason == Reason::Overloaded {
        tracing::warn!(%error, "the storage layer rejected an operation");
    } else {
        tracing::error!(%error, "a storage operation failed");
    }
    Rejection { retry_after, ..Rejection::new(reason, detail) }
}

/// Returns the status in words, for existing clients of this API.
fn code(status: StatusCode) -> String {
    match (status, status.canonical_reason()) {
        (StatusCode::UNPROCESSABLE_ENTITY, _) => "UNPROCESSABLE_CONTENT".to_owned(),
        (_, reason) => reason.unwrap_or("Internal Server Error").to_uppercase().replace(' ', "_"),
    }
}
