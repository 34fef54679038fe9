//! The header `Idempotency-Key`.

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use galley_application::{IdempotentRequest, Rejection};
use galley_domain::Invalid;

use crate::describe::arguments;
use crate::problem::Problem;

const HEADER: &str = "idempotency-key";

/// The idempotency key of a request, and its path.
#[derive(Debug, Clone)]
pub(crate) struct IdempotencyKey {
    pub(crate) key: Option<String>,
    pub(crate) path: String,
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let path = parts.uri.path().to_owned();
        let mut values = parts.headers.get_all(HEADER).iter();
        let key = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => {
                let text = value.to_str().ok().filter(|text| (1..=255).contains(&text.len()));
                Some(text.ok_or_else(rejected)?.to_owned())
            }
            _ => return Err(rejected()),
        };
        Ok(Self { key, path })
    }
}

impl IdempotencyKey {
    /// Returns the identity of a request with this body.
    pub(crate) fn for_body(self, body: &Bytes) -> IdempotentRequest {
        IdempotentRequest { key: self.key, path: self.path, body: body.clone() }
    }

    /// Returns the key alone, for a request without a token.
    pub(crate) fn into_text(self) -> Option<String> {
        self.key
    }
}

arguments! { IdempotencyKey: idempotent; }

fn rejected() -> Problem {
    let invalid =
        Invalid::new("invalid_string", "must be sent once and have 1 to 255 ASCII characters");
    Rejection::of_field("Idempotency-Key", &invalid).into()
}
