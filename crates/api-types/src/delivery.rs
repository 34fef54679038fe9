//! The JSON representation of a delivery.

use galley_domain::delivery::DeliveryStatus;
use galley_domain::{DeliveryId, EventId, Timestamp, WebhookId};
use galley_storage::delivery_queue::Delivery;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::request::body;
use crate::schemas;

/// The delivery of an event to a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub struct DeliveryBody<'a> {
    #[schema(value_type = schemas::DeliveryId)]
    id: DeliveryId,
    #[schema(value_type = schemas::WebhookId)]
    webhook_id: WebhookId,
    #[schema(value_type = schemas::EventId)]
    event_id: EventId,
    /// The event type as the webhook receives it.
    #[schema(value_type = schemas::Event)]
    event: &'a str,
    /// The event's sequence number. Null for a sample.
    #[schema(example = 1042)]
    sequence: Option<i64>,
    /// True for a sample that a client requested.
    #[schema(example = false)]
    test: bool,
    #[schema(value_type = schemas::DeliveryStatus)]
    status: &'static str,
    #[schema(value_type = schemas::Time)]
    created_at: Timestamp,
    /// The earliest time of the next attempt. Null if no attempt follows, or none before the
    /// webhook is enabled.
    #[schema(value_type = Option<schemas::Time>)]
    next_attempt_at: Option<Timestamp>,
    /// The last 20 attempts, oldest first.
    #[schema(value_type = Vec<AttemptBody<'_>>)]
    attempts: &'a RawValue,
}

impl<'a> From<&'a Delivery> for DeliveryBody<'a> {
    fn from(delivery: &'a Delivery) -> Self {
        let log = delivery.log.as_deref().unwrap_or("[]");
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook,
            event_id: delivery.event,
            event: &delivery.event_type,
            sequence: delivery.sequence,
            test: delivery.sequence.is_none(),
            status: DeliveryStatus::as_str(delivery.status),
            created_at: delivery.created_at,
            next_attempt_at: delivery.next_attempt_at,
            attempts: serde_json::from_str(log).unwrap_or(RawValue::NULL),
        }
    }
}

/// An attempt, as it is stored and shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryAttempt)]
pub struct AttemptBody<'a> {
    #[schema(value_type = schemas::Time)]
    pub started_at: Timestamp,
    /// The milliseconds from the start to the end of the response.
    #[schema(example = 84)]
    pub duration_ms: u64,
    /// The status of the response, if there was one.
    #[schema(example = 503)]
    pub status: Option<u16>,
    /// The cause, if there was no response: `address_refused`, `name_not_resolved`,
    /// `connect_failed`, `connect_timed_out`, `tls_failed`, `timed_out`, `connection_lost`,
    /// `bad_answer`, `secret_unreadable`, `event_forgotten` or `invalid_url`.
    #[schema(example = "timed_out")]
    pub error: Option<&'a str>,
    /// A description of the cause.
    #[schema(example = "the response timed out")]
    pub detail: Option<String>,
    /// The first 4 KiB of the response, with the secret masked. Null for addresses that may only be
    /// called by an exception.
    #[schema(example = "Service Unavailable")]
    pub answer: Option<&'a str>,
}

body! {
    /// The delivery to retry.
    change DeliveryToRetry of DeliveryId {}
}
