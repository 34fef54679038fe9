//! `DELETE /webhooks?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::webhooks;
use galley_domain::WebhookId;

use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete a webhook
///
/// Its undelivered events are discarded.
#[utoipa::path(
    delete,
    path = "/webhooks",
    operation_id = "deleteWebhook",
    params(("id" = schemas::WebhookId, Query)),
)]
pub(crate) async fn handle(
    actor: Actor<WriteWebhooks>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<WebhookId>();
    query.finish()?;
    webhooks::delete(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
