//! The log of a delivery's attempts.

use galley_api_types::delivery::AttemptBody;
use galley_delivery::{AttemptError, AttemptReport};
use galley_domain::Timestamp;
use serde_json::value::RawValue;

/// The limit on attempts in the log of a delivery, which may be redelivered many times.
const LOGGED_ATTEMPTS_MAX: usize = 20;

/// Returns the log with one more attempt.
pub(super) fn with_attempt(
    log: Option<&str>,
    started_at: Timestamp,
    attempt: &AttemptReport,
) -> String {
    let entry = AttemptBody {
        started_at,
        duration_ms: u64::try_from(attempt.duration.as_millis()).unwrap_or(u64::MAX),
        status: attempt.status,
        error: attempt.error.as_ref().map(AttemptError::code),
        detail: attempt.error.as_ref().map(ToString::to_string),
        answer: attempt.response_body.as_deref(),
    };
    let entry = serde_json::value::to_raw_value(&entry).expect("an attempt is JSON");
    let Some(log) = log else { return format!("[{entry}]") };
    let mut entries: Vec<Box<RawValue>> = serde_json::from_str(log).unwrap_or_default();
    entries.push(entry);
    let first = entries.len().saturating_sub(LOGGED_ATTEMPTS_MAX);
    serde_json::to_string(&entries[first..]).expect("attempts are JSON")
}
