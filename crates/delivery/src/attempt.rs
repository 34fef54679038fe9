//! The request of a delivery attempt, and its result.

use std::time::Duration;

use bytes::Bytes;
use galley_domain::delivery::AttemptOutcome;
use galley_domain::webhook::WebhookSecret;

/// The request of an attempt.
#[derive(Debug, Clone)]
pub struct DeliveryRequest {
    /// The receiver's URL.
    pub url: String,
    /// The event's identifier.
    pub id: String,
    /// The time of the attempt in Unix seconds.
    pub timestamp: i64,
    /// The request body.
    pub body: Bytes,
    /// The secrets that sign the request, each with a signature of its own.
    pub secrets: Vec<WebhookSecret>,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptReport {
    /// The time that the attempt took.
    pub duration: Duration,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// The error, if there was no response.
    pub error: Option<AttemptError>,
    /// The beginning of the response body, with the secret masked. No body is stored from an
    /// address that is allowed by exception.
    pub response_body: Option<String>,
    /// The delay that the receiver requested by `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl AttemptReport {
    /// Returns the outcome of the attempt for its delivery.
    pub fn outcome(&self) -> AttemptOutcome {
        match self.status {
            Some(status) => AttemptOutcome::of_status(status, self.retry_after),
            None => AttemptOutcome::Failed { retry_after: None },
        }
    }

    /// Creates the result of an attempt that got no response.
    pub fn failed(error: AttemptError, duration: Duration) -> Self {
        Self { duration, status: None, error: Some(error), response_body: None, retry_after: None }
    }
}

/// The reason for a missing response. Its text reveals nothing of the network of the service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The address policy rejects the address.
    #[error(
        "requests to this address are blocked: {0}; the setting webhooks-allow \
         (GALLEY_WEBHOOKS_ALLOW) can allow its network"
    )]
    AddressRejected(String),
    /// The host name has no address.
    #[error("the receiver's host name could not be resolved")]
    NameNotResolved,
    /// No address of the receiver accepts connections, or none is reachable.
    #[error("the connection failed")]
    ConnectFailed,
    /// The connection timed out.
    #[error("the connection timed out")]
    ConnectTimedOut,
    /// The certificate is not trusted, or the receiver doesn't support TLS.
    #[error("the TLS connection failed: {0}")]
    TlsFailed(String),
    /// The response timed out.
    #[error("the response timed out")]
    TimedOut,
    /// The connection closed before the response.
    #[error("the connection was closed without a response")]
    ConnectionLost,
    /// The response is not valid HTTP.
    #[error("the response is not valid HTTP")]
    InvalidResponse,
    /// The webhook's secret can't be decrypted. The request isn't sent, as it would be unsigned.
    #[error("the webhook's secret can't be decrypted with this key")]
    SecretUnreadable,
    /// The event was deleted before it could be sent.
    #[error("the event is too old to be sent")]
    EventDeleted,
    /// The URL of the webhook can't be used.
    #[error("the webhook's URL is not valid")]
    InvalidUrl,
}

impl AttemptError {
    /// Returns the error's code in the API.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::AddressRejected(_) => "address_refused",
            Self::NameNotResolved => "name_not_resolved",
            Self::ConnectFailed => "connect_failed",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::TlsFailed(_) => "tls_failed",
            Self::TimedOut => "timed_out",
            Self::ConnectionLost => "connection_lost",
            Self::InvalidResponse => "bad_answer",
            Self::SecretUnreadable => "secret_unreadable",
            Self::EventDeleted => "event_forgotten",
            Self::InvalidUrl => "invalid_url",
        }
    }
}
