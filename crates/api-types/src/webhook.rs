//! The JSON representation of a webhook, without its secret.

use galley_domain::event::{EventType, EventTypes};
use galley_domain::publication::ContentView;
use galley_domain::text::ShortText;
use galley_domain::webhook::{DisabledReason, Webhook, WebhookName, WebhookSecret, WebhookUrl};
use galley_domain::{ContentGroupId, Timestamp, WebhookId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::{WebhookMetadata, body};
use crate::schemas;

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the JSON")]
pub struct WebhookBody<'a> {
    #[schema(value_type = schemas::WebhookId)]
    id: WebhookId,
    /// The URL to which the event is sent.
    #[schema(example = "https://example.org/hooks/galley")]
    url: &'a str,
    #[schema(example = "Rebuild the site")]
    name: &'a str,
    #[schema(example = "Starts a build when a post appears.")]
    description: Option<&'a str>,
    metadata: MetadataBody,
    #[schema(value_type = schemas::Event)]
    event: &'static str,
    /// All events that are sent, including `event`.
    #[schema(value_type = Vec<schemas::Event>)]
    events: Vec<&'static str>,
    /// The view whose changes of pieces are sent.
    #[schema(value_type = schemas::View)]
    view: &'static str,
    /// True if no group limits the events.
    #[schema(example = false)]
    whole_workspace: bool,
    /// True if events are sent without the e-mail addresses of members and the names of authors.
    #[schema(example = false)]
    hides_emails: bool,
    /// True if an extension's token created the webhook.
    #[schema(example = false)]
    extension: bool,
    /// True if events are sent.
    #[schema(example = true)]
    enabled: bool,
    /// The reason why the webhook is disabled.
    #[schema(value_type = Option<schemas::DisabledReason>)]
    disabled_reason: Option<&'static str>,
    /// The time since which no delivery has succeeded.
    #[schema(value_type = Option<schemas::Time>)]
    failing_since: Option<Timestamp>,
    /// The number of deliveries that were dropped while the webhook was disabled: beyond 100,000,
    /// or older than 30 days.
    #[schema(example = 0)]
    dropped_deliveries: i64,
    /// The reason why the current settings don't allow `url` to be called, and the setting that
    /// would. Present only in the response to a request that set `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        value_type = String, required = false,
        example = "requests to this address are blocked: 127.0.0.1 is a loopback address"
    )]
    warning: Option<&'a str>,
}

/// The scope of the webhook's event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookMetadata)]
struct MetadataBody {
    /// The watched group, with all groups below it.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    content_group_id: Option<ContentGroupId>,
}

impl<'a> WebhookBody<'a> {
    /// Creates the representation with a warning about the URL.
    pub fn with_warning(webhook: &'a Webhook, warning: Option<&'a str>) -> Self {
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
            events: webhook.events.as_slice().iter().map(|event| event.as_str()).collect(),
            view: webhook.view.as_str(),
            whole_workspace: webhook.content_group_id.is_none(),
            hides_emails: webhook.hides_emails,
            extension: webhook.extension.is_some(),
            enabled: webhook.enabled,
            disabled_reason: webhook.disabled_reason.map(DisabledReason::as_str),
            failing_since: webhook.failing_since,
            dropped_deliveries: webhook.dropped,
            warning: None,
        }
    }
}

body! {
    /// A new webhook.
    new NewWebhook {
        /// The receiver of the event: an absolute http or https URL without user and password.
        url: required WebhookUrl,
        /// The name, without control characters.
        name: required WebhookName = "Rebuild the site",
        event: required EventType,
        /// A short description.
        description: optional ShortText = "Starts a build when a post appears.",
        /// The secret that signs the payloads: 1 to 255 bytes, or `whsec_` and the Base64 of 16 to
        /// 64 bytes. It is never shown.
        secret: optional WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        metadata: optional WebhookMetadata,
        /// Further events to send, besides `event`.
        events: optional EventTypes,
        /// The view whose changes of pieces are sent. It can't be changed later. The default is the
        /// view of the requesting token.
        view: optional ContentView = "published",
        /// True if no group limits the events. Events of pieces require this or a group.
        whole_workspace: optional bool = false,
        /// True if events are sent without the e-mail addresses of members and the names of
        /// authors. The default is false for tokens with `workspaceMemberships:read`, which false
        /// requires.
        hides_emails: optional bool = false,
        /// True if events are sent.
        enabled: defaulted bool = true,
    }
}

body! {
    /// A change of a webhook.
    change WebhookChange of WebhookId {
        /// The receiver of the event: an absolute http or https URL without user and password.
        url: required WebhookUrl,
        /// The name, without control characters.
        name: required WebhookName = "Rebuild the site",
        event: required EventType,
        /// A short description.
        description: optional ShortText = "Starts a build when a post appears.",
        metadata: optional WebhookMetadata,
        /// All events to send. If the present `event` is not among them, the first of them takes
        /// its place. A change of `event` alone makes it the only one.
        events: required EventTypes,
        /// The view, which can't be changed.
        view: required ContentView = "current",
        /// True removes the group, so that the events of the whole workspace are sent.
        whole_workspace: required bool = false,
        /// True if events are sent without the e-mail addresses of members and the names of
        /// authors. Only tokens with `workspaceMemberships:read` can make it false.
        hides_emails: required bool = false,
        /// True if events are sent.
        enabled: required bool = true,
    }
}

body! {
    /// The webhook that gets the sample.
    change WebhookToTest of WebhookId {}
}

body! {
    /// The new secret of a webhook.
    new WebhookSecretRotation of WebhookId {
        /// The secret that signs the payloads from now on: 1 to 255 bytes, or `whsec_` and the
        /// Base64 of 16 to 64 bytes. It is never shown.
        secret: required WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    }
}

body! {
    /// The webhook whose failed deliveries are retried.
    new WebhookToRecover of WebhookId {
        /// The start of the period to recover: an ISO 8601 date or date-time.
        since: required Timestamp = "2026-11-20T10:30:00+01:00",
    }
}

impl WebhookChange {
    /// Returns the new group, if the change names one or none.
    pub fn content_group_id(&self) -> Option<Option<ContentGroupId>> {
        match self.metadata {
            None => None,
            Some(None) => Some(None),
            Some(Some(metadata)) => metadata.content_group_id,
        }
    }
}
