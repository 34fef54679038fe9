//! A receiver of webhook callbacks that verifies their signatures, to try webhooks out.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use galley_delivery::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, is_signed};
use galley_domain::Timestamp;
use galley_domain::webhook::WebhookSecret;
use tokio::net::TcpListener;

/// The greatest difference between a callback's timestamp and the clock, in seconds. It bounds
/// replays of intercepted callbacks.
const TIMESTAMP_TOLERANCE_SECONDS: i64 = 5 * 60;

/// The size limit of a callback, in bytes.
const CALLBACK_SIZE_LIMIT: usize = 16 * 1024 * 1024;

/// A received callback.
#[derive(Debug, Clone)]
pub struct Callback {
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The result of a signature check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureStatus {
    /// Signed with the secret, within the time limit.
    Valid,
    /// Without a signature.
    Unsigned,
    /// Signed, but there is no secret to verify the signature with.
    Unverified,
    /// Signed with another secret or over other data, or with a malformed timestamp.
    Wrong,
    /// Signed with the secret, but the timestamp is too far off.
    Expired,
}

impl Callback {
    /// Returns the event's identifier, or an empty text if there is none.
    pub fn id(&self) -> &str {
        self.header(ID_HEADER)
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Verifies the signature and the timestamp.
    pub fn verify(&self, secret: Option<&WebhookSecret>, now: Timestamp) -> SignatureStatus {
        let signatures = self.header(SIGNATURE_HEADER);
        if signatures.is_empty() {
            return SignatureStatus::Unsigned;
        }
        let Some(secret) = secret else { return SignatureStatus::Unverified };
        let Ok(time) = self.header(TIMESTAMP_HEADER).parse::<i64>() else {
            return SignatureStatus::Wrong;
        };
        if !is_signed(&secret.key(), self.id(), time, &self.body, signatures) {
            SignatureStatus::Wrong
        } else if (now.ms() / 1_000).abs_diff(time) > TIMESTAMP_TOLERANCE_SECONDS.unsigned_abs() {
            SignatureStatus::Expired
        } else {
            SignatureStatus::Valid
        }
    }
}

/// Passes each request to `take`, and responds with `status`.
pub async fn receive(
    listener: TcpListener,
    status: u16,
    take: impl Fn(Callback) + Send + Sync + 'static,
) -> std::io::Result<()> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NO_CONTENT);
    let handle_callback = Arc::new(take);
    let handle = async move |headers: HeaderMap, body: Bytes| {
        handle_callback(Callback { headers, body });
        status
    };
    let router = Router::new().fallback(handle).layer(DefaultBodyLimit::max(CALLBACK_SIZE_LIMIT));
    axum::serve(listener, router).await
}
