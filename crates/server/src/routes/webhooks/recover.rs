//! `POST /webhooks/recover`

use axum::extract::State;
use axum::response::Response;
use galley_application::operations::deliveries;
use galley_domain::WebhookId;
use galley_storage::WriteTx;

use super::schema;
use crate::app::App;
use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::body::JsonBody;
use crate::extract::fields::{reference, text, time};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::idempotent;
use crate::respond::response::CreatedResponse;

/// Recover a webhook's deliveries
///
/// Retries all deliveries that were created since a point in time and failed, or wait for their
/// next attempt. They begin their retry schedule again, a few at a time. The recovery continues
/// after a restart of the service. Another request starts it again.
#[utoipa::path(
    post,
    path = "/webhooks/recover",
    operation_id = "recoverWebhook",
    request_body = schema::WebhookToRecover,
    responses(
        (status = 202, body = schema::Accepted),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteWebhooks>,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<WebhookId>).flatten());
    let since = fields.required("since", text(time));
    fields.finish()?;
    let (id, since) = (id.get()?, since.expect("there, as nothing was refused"));
    let (authentication, environment) = (actor.into_authentication(), app.environment().clone());
    let caller = authentication.clone();
    let accept = async move |tx: &WriteTx<'_>| {
        deliveries::recover(tx, &environment, &caller, id, since).await?;
        Ok(CreatedResponse::accepted(id))
    };
    idempotent::create(&app, "webhooks.recover", &authentication, key, &bytes, accept).await
}
