//! What a webhook gets, and what the feed shows.

use std::sync::LazyLock;

use galley_domain::event::EventType;
use galley_domain::{Timestamp, WebhookId, WorkspaceId};
use galley_storage::delivery_queue::ClaimedDelivery;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::openapi;

/// An event for somebody.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Envelope<'a> {
    #[serde(rename = "type")]
    pub(crate) event_type: &'a str,
    pub(crate) timestamp: Timestamp,
    pub(crate) sequence: i64,
    pub(crate) workspace_id: WorkspaceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_id: Option<WebhookId>,
    /// The resource as its GET gives it.
    pub(crate) data: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) test: bool,
}

impl<'a> Envelope<'a> {
    /// A delivery's; nothing, where its event isn't kept any more.
    pub(super) fn of(leased: &'a ClaimedDelivery) -> Option<Self> {
        Some(Self {
            event_type: leased.event_type.as_str(),
            timestamp: leased.happened_at,
            sequence: leased.sequence.unwrap_or_default(),
            workspace_id: leased.workspace,
            webhook_id: Some(leased.webhook),
            data: serde_json::from_str(leased.data.as_deref()?).ok()?,
            test: leased.is_test,
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an envelope is JSON")
    }
}

/// What a sample of an event holds: the example that stands in the interface's description.
pub(crate) fn test_data(event: EventType) -> String {
    static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| openapi::document()["webhooks"].take());
    let body = &DESCRIPTION[event.as_str()]["post"]["requestBody"]["content"]["application/json"];
    body["example"]["data"].to_string()
}
