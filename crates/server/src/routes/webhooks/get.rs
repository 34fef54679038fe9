//! `GET /webhooks?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::webhook::WebhookBody;
use galley_application::operations::webhooks;
use galley_domain::WebhookId;

use crate::extract::actor::{Actor, ReadWebhooks};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Get a webhook
#[utoipa::path(
    get,
    path = "/webhooks",
    operation_id = "getWebhook",
    params(("id" = schemas::WebhookId, Query)),
    responses(
        (status = 200, body = WebhookBody<'_>),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<ReadWebhooks>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<WebhookId>();
    query.finish()?;
    let webhook = webhooks::get(actor.caller(), id.get()?).await?;
    Ok(response::resource(webhook.version, &WebhookBody::from(&webhook)))
}
