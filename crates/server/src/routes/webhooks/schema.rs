//! What requests for webhooks hold.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::{IntoParams, ToSchema};

/// The parameters of the list, beside the page's.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct ListParameters {
    /// Only those made by an extension's token: for an extension's own token, by that extension's.
    #[param(default = false, example = true)]
    extension_only: Option<bool>,
}

/// What the event is connected with.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewWebhookMetadata {
    /// The group to watch, with all groups under it: needed where the event is about pieces.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    content_group_id: Option<String>,
}

/// A new webhook.
#[derive(ToSchema)]
pub(super) struct NewWebhook {
    /// Where the event is sent to: an absolute http or https URL without user and password.
    #[schema(value_type = schemas::WebhookUrl)]
    url: String,
    /// What people call it, without control characters.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Rebuild the site"
    )]
    name: String,
    /// One sentence for people.
    #[schema(max_length = 1024, example = "Starts a build when a post appears.")]
    description: Option<String>,
    #[schema(value_type = schemas::Event)]
    event: String,
    metadata: Option<NewWebhookMetadata>,
    /// What signs the payloads: 1 to 255 bytes, or `whsec_` and the base 64 of 16 to 64. It is never shown.
    #[schema(max_length = 255, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: Option<String>,
    /// Whether anything is sent.
    #[schema(default = true, example = true)]
    enabled: Option<bool>,
}

/// A change of a webhook.
#[derive(ToSchema)]
pub(super) struct WebhookChange {
    #[schema(value_type = schemas::WebhookId)]
    id: String,
    /// Where the event is sent to: an absolute http or https URL without user and password.
    #[schema(
        required = false,
        value_type = schemas::WebhookUrl)]
    url: String,
    /// What people call it, without control characters.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Rebuild the site"
    )]
    name: String,
    /// One sentence for people.
    #[schema(max_length = 1024, example = "Starts a build when a post appears.")]
    description: Option<String>,
    #[schema(required = false, value_type = schemas::Event)]
    event: String,
    metadata: Option<NewWebhookMetadata>,
    /// Whether anything is sent.
    #[schema(required = false, example = true)]
    enabled: bool,
}

/// The webhook to send a sample to.
#[derive(ToSchema)]
pub(super) struct WebhookToTest {
    #[schema(value_type = schemas::WebhookId)]
    id: String,
}

/// The webhook whose failed deliveries are to be sent again.
#[derive(ToSchema)]
pub(super) struct WebhookToRecover {
    #[schema(value_type = schemas::WebhookId)]
    id: String,
    /// From when on: an ISO 8601 date or date-time.
    #[schema(inline, value_type = schemas::GivenTime)]
    since: String,
}

/// What is done now that it was asked for.
#[derive(ToSchema)]
pub(crate) struct Accepted {
    /// The identifier of the delivery or, of a recovery, of the webhook.
    #[schema(example = "dlv_01kah3v9k8d4x7w2m5n6p8q9rs")]
    id: String,
}
