//! A webhook in JSON, its secret aside.

use galley_domain::webhook::{DisabledReason, Webhook};
use galley_domain::{ContentGroupId, Timestamp, WebhookId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::schemas;

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
pub struct WebhookBody<'a> {
    #[schema(value_type = schemas::WebhookId)]
    id: WebhookId,
    /// Where the event is sent to.
    #[schema(example = "https://example.org/hooks/galley")]
    url: &'a str,
    #[schema(example = "Rebuild the site")]
    name: &'a str,
    #[schema(example = "Starts a build when a post appears.")]
    description: Option<&'a str>,
    metadata: MetadataBody,
    #[schema(value_type = schemas::Event)]
    event: &'static str,
    /// Whether an extension's token made it.
    #[schema(example = false)]
    extension: bool,
    /// Whether anything is sent.
    #[schema(example = true)]
    enabled: bool,
    /// Why nothing is sent.
    #[schema(value_type = Option<schemas::DisabledReason>)]
    disabled_reason: Option<&'static str>,
    /// Since when nothing has come through.
    #[schema(value_type = Option<schemas::Time>)]
    failing_since: Option<Timestamp>,
    /// How many deliveries it lost while it was disabled: more than 100,000 or older than 30 days.
    #[schema(example = 0)]
    dropped_deliveries: i64,
    /// Why nothing could be sent to `url` as things stand, and which setting would allow it. Only
    /// where the address was just given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "nothing is sent there: 127.0.0.1 is a loopback address")]
    warning: Option<&'a str>,
}

/// What the webhook's event is connected with.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookMetadata)]
struct MetadataBody {
    /// The group that is watched, with all groups under it.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    content_group_id: Option<ContentGroupId>,
}

impl<'a> WebhookBody<'a> {
    /// With what is to be said about its address.
    pub fn warning(webhook: &'a Webhook, warning: Option<&'a str>) -> Self {
        Self { warning, ..Self::from(webhook) }
    }
}

impl<'a> From<&'a Webhook> for WebhookBody<'a> {
    fn from(webhook: &'a Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url.as_str(),
            name: webhook.name.as_str(),
            description: webhook.description.as_ref().map(galley_domain::text::ShortText::as_str),
            metadata: MetadataBody { content_group_id: webhook.content_group_id },
            event: webhook.event.as_str(),
            extension: webhook.extension.is_some(),
            enabled: webhook.enabled,
            disabled_reason: webhook.disabled_reason.map(DisabledReason::as_str),
            failing_since: webhook.failing_since,
            dropped_deliveries: webhook.dropped,
            warning: None,
        }
    }
}
