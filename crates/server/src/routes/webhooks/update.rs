//! `PUT /webhooks`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::webhook::WebhookBody;
use galley_application::VersionPrecondition;
use galley_application::operations::webhooks::{self, WebhookUpdate, WebhookUpdateResult};
use galley_domain::text::ShortText;
use galley_domain::webhook::{WebhookName, WebhookUrl};
use galley_domain::{Invalid, WebhookId};

use super::warning::warning;
use super::{content_group_id, event, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::body::JsonBody;
use crate::extract::fields::{boolean, reference, text};
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::response;

/// Change a webhook
///
/// Absent fields stay unchanged. The secret can't be changed.
#[utoipa::path(
    put,
    path = "/webhooks",
    operation_id = "updateWebhook",
    request_body = schema::WebhookChange,
    responses(
        (status = 200, body = WebhookBody<'_>),
        (status = 400, description = "unknown_reference, immutable_field"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteWebhooks>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    fields.drop_empty("secret");
    if fields.contains("secret") {
        let message = "can't be changed: create a new webhook";
        fields.add_issue("secret", &Invalid::new("immutable_field", message));
    }
    let id = RequestedId::new(fields.required("id", reference::<WebhookId>).flatten());
    let url = fields.replacement("url", text(WebhookUrl::parse));
    let name = fields.replacement("name", text(WebhookName::parse));
    let event = fields.replacement("event", text(event));
    let description = fields.clearable("description", text(ShortText::parse));
    let content_group_id = content_group_id(&mut fields);
    let enabled = fields.replacement("enabled", boolean);
    let named = references::group(&["metadata", "contentGroupId"], content_group_id.flatten());
    references::finish(actor.caller(), fields, named, ()).await?;
    let id = id.get()?;
    let update = WebhookUpdate { id, url, name, description, event, content_group_id, enabled };
    let warning = match &update.url {
        Some(url) => warning(&app, url).await,
        None => None,
    };
    let WebhookUpdateResult { webhook, has_new_url } =
        webhooks::update(actor.caller(), update, expected).await?;
    Ok(response::updated(
        prefer,
        webhook.version,
        &WebhookBody::with_warning(&webhook, warning.as_deref().filter(|_| has_new_url)),
    ))
}
