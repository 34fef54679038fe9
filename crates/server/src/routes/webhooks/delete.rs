//! `DELETE /webhooks?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::webhooks;
use galley_domain::WebhookId;
use galley_storage::WriteTx;

use crate::app::App;
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
    State(app): State<App>,
    actor: Actor<WriteWebhooks>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<WebhookId>();
    query.finish()?;
    let (id, caller) = (id.get()?, actor.into_authentication());
    let environment = app.environment().clone();
    let write = async move |tx: &WriteTx<'_>| {
        webhooks::delete(tx, &environment, &caller, id, &expected).await
    };
    app.database().write("webhooks.delete", write).await?;
    Ok(response::no_content())
}
