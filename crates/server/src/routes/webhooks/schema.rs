//! Schemas of the requests to `/webhooks`.

#![expect(dead_code, reason = "bodies are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::{IntoParams, ToSchema};

/// The query parameters of the list, besides those of paging.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct WebhookListParameters {
    /// List only the webhooks that an extension's token created. For the token of an extension,
    /// list only those of this extension.
    #[param(default = false, example = true)]
    extension_only: Option<bool>,
}

/// The scope of the event.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewWebhookMetadata {
    /// The group to watch, with all groups below it. Required for events of pieces.
    #[schema(value_type = Option<schemas::ContentGroupId>)]
    content_group_id: Option<String>,
}

/// A new webhook.
#[derive(ToSchema)]
#[schema(as = NewWebhook)]
pub(super) struct NewWebhookSchema {
    /// The receiver of the event: an absolute http or https URL without user and password.
    #[schema(value_type = schemas::WebhookUrl)]
    url: String,
    /// The name, without control characters.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Rebuild the site"
    )]
    name: String,
    /// A short description.
    #[schema(max_length = 1024, example = "Starts a build when a post appears.")]
    description: Option<String>,
    #[schema(value_type = schemas::Event)]
    event: String,
    metadata: Option<NewWebhookMetadata>,
    /// The secret that signs the payloads: 1 to 255 bytes, or `whsec_` and the Base64 of 16 to 64
    /// bytes. It is never shown.
    #[schema(max_length = 255, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: Option<String>,
    /// True if events are sent.
    #[schema(default = true, example = true)]
    enabled: Option<bool>,
}

/// A change of a webhook.
#[derive(ToSchema)]
pub(super) struct WebhookChange {
    #[schema(value_type = schemas::WebhookId)]
    id: String,
    /// The receiver of the event: an absolute http or https URL without user and password.
    #[schema(
        required = false,
        value_type = schemas::WebhookUrl)]
    url: String,
    /// The name, without control characters.
    #[schema(
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "Rebuild the site"
    )]
    name: String,
    /// A short description.
    #[schema(max_length = 1024, example = "Starts a build when a post appears.")]
    description: Option<String>,
    #[schema(required = false, value_type = schemas::Event)]
    event: String,
    metadata: Option<NewWebhookMetadata>,
    /// True if events are sent.
    #[schema(required = false, example = true)]
    enabled: bool,
}

/// The webhook that gets the sample.
#[derive(ToSchema)]
pub(super) struct WebhookToTest {
    #[schema(value_type = schemas::WebhookId)]
    id: String,
}

/// The webhook whose failed deliveries are retried.
#[derive(ToSchema)]
pub(super) struct WebhookToRecover {
    #[schema(value_type = schemas::WebhookId)]
    id: String,
    /// The start of the period to recover: an ISO 8601 date or date-time.
    #[schema(inline, value_type = schemas::GivenTime)]
    since: String,
}

/// The response to a request that is carried out asynchronously.
#[derive(ToSchema)]
pub(crate) struct Accepted {
    /// The identifier of the delivery or, for a recovery, of the webhook.
    #[schema(example = "dlv_01kah3v9k8d4x7w2m5n6p8q9rs")]
    id: String,
}
