//! The JSON of an event, as webhooks receive it and the feed returns it.

use std::borrow::Cow;

use galley_domain::event::EventType;
use galley_domain::permission::Resource;
use galley_domain::{Timestamp, WebhookId, WorkspaceId};
use galley_storage::delivery_queue::ClaimedDelivery;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An event with its metadata.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventJson<'a> {
    #[serde(rename = "type")]
    pub event_type: &'a str,
    pub timestamp: Timestamp,
    pub sequence: i64,
    pub workspace_id: WorkspaceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<WebhookId>,
    /// The resource as its GET returns it.
    pub data: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
}

galley_domain::named_enum! {
    /// The kind of a change that an event's `data.change` names.
    pub enum ChangeKind {
        /// The resource was created.
        Added = "added",
        /// Its fields were changed.
        Updated = "updated",
        /// It was deleted.
        Removed = "removed",
    }
}

/// The data of an event about any change of a resource.
#[derive(Debug, Serialize)]
pub struct ChangedResource<T> {
    #[serde(flatten)]
    resource: T,
    change: &'static str,
}

impl<T: Serialize> ChangedResource<T> {
    /// Returns the data as JSON.
    pub fn json(resource: T, change: ChangeKind) -> String {
        let data = Self { resource, change: change.as_str() };
        serde_json::to_string(&data).expect("resources are JSON")
    }
}

/// Returns the data of an event for readers that may not see the e-mail addresses of members and
/// the names of actors. Events of members themselves require the permission to see them.
pub fn without_emails(event_type: EventType, data: &str) -> Cow<'_, str> {
    if event_type.resource() != Resource::ContentPieces {
        return Cow::Borrowed(data);
    }
    let Ok(mut piece) = serde_json::from_str::<Value>(data) else { return Cow::Borrowed("null") };
    let members = piece["members"].as_array_mut();
    for profile in members.into_iter().flatten().map(|member| &mut member["profile"]) {
        if profile.is_object() {
            profile["email"] = Value::Null;
        }
    }
    for actor in ["/createdBy", "/updatedBy", "/publication/publishedBy"] {
        if let Some(actor) = piece.pointer_mut(actor).filter(|actor| actor.is_object()) {
            actor["name"] = Value::Null;
        }
    }
    Cow::Owned(piece.to_string())
}

impl<'a> EventJson<'a> {
    /// Creates the envelope of a delivery with this data. Returns `None` if the data is damaged.
    pub fn of_delivery(leased: &'a ClaimedDelivery, data: &'a str) -> Option<Self> {
        Some(Self {
            event_type: leased.event_type.as_str(),
            timestamp: leased.happened_at,
            sequence: leased.sequence.unwrap_or_default(),
            workspace_id: leased.workspace,
            webhook_id: Some(leased.webhook),
            data: serde_json::from_str(data).ok()?,
            test: leased.is_test,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an envelope is JSON")
    }
}
