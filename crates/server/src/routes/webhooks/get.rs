//! `GET /webhooks?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::webhook::WebhookBody;
use galley_application::Error;
use galley_domain::WebhookId;
use galley_storage::{Tx, webhooks};

use crate::app::App;
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
    State(app): State<App>,
    actor: Actor<ReadWebhooks>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<WebhookId>();
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let read = async move |tx: &Tx<'_>| {
        let within = scope.content_groups.as_deref();
        Ok::<_, Error>(webhooks::find(tx, scope.workspace, id, within).await?)
    };
    let webhook = app.database().read("webhooks.get", read).await?.ok_or_else(Error::not_found)?;
    Ok(response::resource(webhook.version, &WebhookBody::from(&webhook)))
}
