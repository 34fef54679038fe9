//! The other side of webhooks: receiving callbacks and verifying them, to try them out.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use galley_delivery::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, is_signed};
use galley_domain::Timestamp;
use galley_domain::webhook::WebhookSecret;
use tokio::net::TcpListener;

/// How far a callback's time may be off, in seconds: older ones may be somebody's who has overheard them.
const OFF_MAX: i64 = 5 * 60;

/// The most bytes of a callback.
const BODY_MAX: usize = 16 * 1024 * 1024;

/// A callback as it came.
#[derive(Debug, Clone)]
pub struct Callback {
    /// The fields of its head.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// What its signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is from whoever has the secret, and new.
    Signed,
    /// It has no signature.
    Unsigned,
    /// It has one, and there is no secret to verify it with.
    NotVerified,
    /// Its signature is not by this secret, or of something else.
    Wrong,
    /// Its time is too far off.
    Old,
}

impl Callback {
    /// The event's identifier, or nothing.
    pub fn id(&self) -> &str {
        self.field(ID_HEADER)
    }

    fn field(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Looks at the signature.
    pub fn verify(&self, secret: Option<&WebhookSecret>, now: Timestamp) -> Verdict {
        let signatures = self.field(SIGNATURE_HEADER);
        if signatures.is_empty() {
            return Verdict::Unsigned;
        }
        let Some(secret) = secret else { return Verdict::NotVerified };
        let Ok(time) = self.field(TIMESTAMP_HEADER).parse::<i64>() else { return Verdict::Wrong };
        if !is_signed(&secret.key(), self.id(), time, &self.body, signatures) {
            Verdict::Wrong
        } else if (now.ms() / 1_000).abs_diff(time) > OFF_MAX.unsigned_abs() {
            Verdict::Old
        } else {
            Verdict::Signed
        }
    }
}

/// Hands each request that comes to `take`, and answers it with `status`.
pub async fn receive(
    listener: TcpListener,
    status: u16,
    take: impl Fn(Callback) + Send + Sync + 'static,
) -> std::io::Result<()> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NO_CONTENT);
    let take = Arc::new(take);
    let handle = async move |headers: HeaderMap, body: Bytes| {
        take(Callback { headers, body });
        status
    };
    let router = Router::new().fallback(handle).layer(DefaultBodyLimit::max(BODY_MAX));
    axum::serve(listener, router).await
}
