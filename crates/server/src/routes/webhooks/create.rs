//! `POST /webhooks`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::webhook::WebhookBody;
use galley_application::Respond;
use galley_application::operations::webhooks::{self, NewWebhook};
use galley_domain::text::ShortText;
use galley_domain::webhook::{Webhook, WebhookName, WebhookSecret, WebhookUrl};

use super::warning::warning;
use super::{PATH, content_group_id, event, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::body::JsonBody;
use crate::extract::fields::{boolean, text};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::created;
use crate::respond::response::MinimalBody;

/// Create a webhook
///
/// A URL that the current settings don't allow to be called is accepted, with a `warning` in the
/// response. The token also needs the permission to read the event's data.
#[utoipa::path(
    post,
    path = "/webhooks",
    operation_id = "createWebhook",
    request_body = schema::NewWebhookSchema,
    responses(
        (status = 201, body = WebhookBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteWebhooks>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    fields.drop_empty("secret");
    let url = fields.required("url", text(WebhookUrl::parse));
    let name = fields.required("name", text(WebhookName::parse));
    let event = fields.required("event", text(event));
    let description = fields.optional("description", text(ShortText::parse));
    let secret = fields.optional("secret", text(WebhookSecret::parse));
    let content_group_id = content_group_id(&mut fields).flatten();
    let enabled = fields.optional("enabled", boolean).unwrap_or(true);
    let named = references::group(&["metadata", "contentGroupId"], content_group_id);
    let required = (url, name, event);
    let (url, name, event) = references::finish(actor.caller(), fields, named, required).await?;
    let new = NewWebhook { url, name, description, event, content_group_id, secret, enabled };
    let warning = warning(&app, &new.url).await;
    let respond = Respond::new(move |webhook: &Webhook| {
        let warning = warning.as_deref();
        let created = MinimalBody { id: webhook.id.to_string(), warning, token: None };
        let body = WebhookBody::with_warning(webhook, warning);
        created::created_with_body(prefer, &created, webhook.version, &body)
            .with_location(PATH, webhook.id)
    });
    let key = key.for_body(&bytes);
    let response = webhooks::create(actor.caller(), new, key, respond).await?;
    Ok(created::respond(response))
}
