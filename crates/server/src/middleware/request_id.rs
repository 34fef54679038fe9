//! Request ids: the client's `X-Request-Id`, or a new one.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use galley_application::Environment;

/// The header of requests and responses.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request: 1 to 128 visible ASCII characters.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(String);

impl RequestId {
    /// Returns the client's id if it is valid, or a new one.
    pub(crate) fn of(headers: &HeaderMap, environment: &Environment) -> Self {
        let sent = headers.get(&X_REQUEST_ID).and_then(|value| value.to_str().ok());
        let is_valid = |id: &&str| {
            (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let new = || format!("{:032x}", environment.new_id());
        Self(sent.filter(is_valid).map_or_else(new, str::to_owned))
    }

    /// Returns its text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds it to a response.
    pub(crate) fn write(&self, response: &mut Response) {
        if let Ok(id) = HeaderValue::try_from(&self.0) {
            response.headers_mut().insert(X_REQUEST_ID, id);
        }
    }
}
