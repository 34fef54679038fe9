//! What is kept of a delivery's attempts.

use galley_delivery::{Attempt, AttemptError};
use galley_domain::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::openapi::schemas;

/// The last attempts that are kept of a delivery that somebody has sent again and again.
const KEPT_MAX: usize = 20;

/// An attempt, as it is kept and shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryAttempt)]
pub(crate) struct AttemptBody<'a> {
    #[schema(value_type = schemas::Time)]
    started_at: Timestamp,
    /// Milliseconds from its start to the end of the answer.
    #[schema(example = 84)]
    duration_ms: u64,
    /// The status of the answer, if there was one.
    #[schema(example = 503)]
    status: Option<u16>,
    /// What went wrong, if there was no answer: `address_refused`, `name_not_resolved`,
    /// `connect_failed`, `connect_timed_out`, `tls_failed`, `timed_out`, `connection_lost`,
    /// `bad_answer`, `secret_unreadable`, `event_forgotten` or `invalid_url`.
    #[schema(example = "timed_out")]
    error: Option<&'a str>,
    /// The same in words.
    #[schema(example = "no answer came in time")]
    detail: Option<String>,
    /// The first 4 KiB of the answer, with the secret masked. Nothing is kept of what comes from an
    /// address that may be called by exception only.
    #[schema(example = "Service Unavailable")]
    answer: Option<&'a str>,
}

/// The log with one more attempt.
pub(super) fn with(log: Option<&str>, started_at: Timestamp, attempt: &Attempt) -> String {
    let entry = AttemptBody {
        started_at,
        duration_ms: u64::try_from(attempt.duration.as_millis()).unwrap_or(u64::MAX),
        status: attempt.status,
        error: attempt.error.as_ref().map(AttemptError::code),
        detail: attempt.error.as_ref().map(ToString::to_string),
        answer: attempt.answer.as_deref(),
    };
    let entry = serde_json::value::to_raw_value(&entry).expect("an attempt is JSON");
    let Some(log) = log else { return format!("[{entry}]") };
    let mut entries: Vec<Box<RawValue>> = serde_json::from_str(log).unwrap_or_default();
    entries.push(entry);
    let first = entries.len().saturating_sub(KEPT_MAX);
    serde_json::to_string(&entries[first..]).expect("attempts are JSON")
}
