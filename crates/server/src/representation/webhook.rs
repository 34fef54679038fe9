//! A webhook in JSON, its secret aside.

use galley_domain::webhook::{DisabledReason, Webhook};
use galley_domain::{ContentGroupId, Timestamp, WebhookId};
use serde::Serialize;

/// A webhook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookBody<'a> {
    id: WebhookId,
    url: &'a str,
    name: &'a str,
    description: Option<&'a str>,
    metadata: MetadataBody,
    event: &'static str,
    extension: bool,
    enabled: bool,
    disabled_reason: Option<&'static str>,
    failing_since: Option<Timestamp>,
}

/// What the webhook's event is connected with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MetadataBody {
    content_group_id: Option<ContentGroupId>,
}

impl<'a> From<&'a Webhook> for WebhookBody<'a> {
    fn from(webhook: &'a Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url.as_str(),
            name: webhook.name.as_str(),
            description: webhook.description.as_ref().map(|text| text.as_str()),
            metadata: MetadataBody { content_group_id: webhook.content_group_id },
            event: webhook.event.as_str(),
            extension: webhook.extension.is_some(),
            enabled: webhook.enabled,
            disabled_reason: webhook.disabled_reason.map(DisabledReason::as_str),
            failing_since: webhook.failing_since,
        }
    }
}
