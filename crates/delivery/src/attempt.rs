//! What is sent, and what comes of it.

use std::time::Duration;

use bytes::Bytes;
use galley_domain::delivery::Outcome;
use galley_domain::webhook::WebhookSecret;

/// An attempt to make.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where to.
    pub url: String,
    /// The event's identifier.
    pub id: String,
    /// The time of the attempt in Unix seconds.
    pub timestamp: i64,
    /// What is sent.
    pub body: Bytes,
    /// What signs it.
    pub secret: Option<WebhookSecret>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// How long it took.
    pub duration: Duration,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What went wrong, if there was none.
    pub error: Option<AttemptError>,
    /// The beginning of the answer, with the secret masked. Nothing is kept of an answer from an
    /// address that is allowed by exception.
    pub answer: Option<String>,
    /// How long the receiver asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl Attempt {
    /// What it means for the delivery.
    pub fn outcome(&self) -> Outcome {
        match self.status {
            Some(status) => Outcome::of_status(status, self.retry_after),
            None => Outcome::Failed { retry_after: None },
        }
    }

    /// An attempt that ended before anything was sent.
    pub fn failed(error: AttemptError, duration: Duration) -> Self {
        Self { duration, status: None, error: Some(error), answer: None, retry_after: None }
    }
}

/// Why there was no answer. What it says shows nothing of the network that the service is in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The address is none that may be called.
    #[error(
        "nothing is sent there: {0}; the setting webhooks-allow (GALLEY_WEBHOOKS_ALLOW) names \
         networks that may be called all the same"
    )]
    AddressRefused(String),
    /// The name leads nowhere.
    #[error("the name of the receiver could not be resolved")]
    NameNotResolved,
    /// Nothing listens there, or nothing can be reached.
    #[error("no connection could be made")]
    ConnectFailed,
    /// Connecting took too long.
    #[error("no connection was made in time")]
    ConnectTimedOut,
    /// There is no trust in who answers, or no TLS at all.
    #[error("no secure connection could be made: {0}")]
    TlsFailed(String),
    /// No answer came in time.
    #[error("no answer came in time")]
    TimedOut,
    /// The connection ended before there was an answer.
    #[error("the connection was closed without an answer")]
    ConnectionLost,
    /// What came is no answer in HTTP.
    #[error("the answer is not valid HTTP")]
    BadAnswer,
    /// The webhook's secret can't be decrypted, and nothing is sent unsigned for that.
    #[error("the webhook's secret can't be decrypted with this key")]
    SecretUnreadable,
    /// The event was forgotten before it could be sent.
    #[error("the event is too old to be sent")]
    EventForgotten,
    /// The address of the webhook can't be used.
    #[error("the address of the webhook is not valid")]
    InvalidUrl,
}

impl AttemptError {
    /// Its name in the interface.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::AddressRefused(_) => "address_refused",
            Self::NameNotResolved => "name_not_resolved",
            Self::ConnectFailed => "connect_failed",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::TlsFailed(_) => "tls_failed",
            Self::TimedOut => "timed_out",
            Self::ConnectionLost => "connection_lost",
            Self::BadAnswer => "bad_answer",
            Self::SecretUnreadable => "secret_unreadable",
            Self::EventForgotten => "event_forgotten",
            Self::InvalidUrl => "invalid_url",
        }
    }
}
