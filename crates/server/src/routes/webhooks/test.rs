//! `POST /webhooks/test`

use axum::extract::State;
use axum::response::Response;
use galley_application::operations::deliveries;
use galley_domain::WebhookId;
use galley_storage::WriteTx;

use super::schema;
use crate::app::App;
use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::body::JsonBody;
use crate::extract::fields::reference;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::idempotent;
use crate::respond::response::CreatedResponse;

/// Test a webhook
///
/// Sends a sample of the webhook's event at once and without retries, even if the webhook is
/// disabled. The sample has `test: true`. The list of deliveries shows the result.
#[utoipa::path(
    post,
    path = "/webhooks/test",
    operation_id = "testWebhook",
    request_body = schema::WebhookToTest,
    responses((status = 202, body = schema::Accepted)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteWebhooks>,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<WebhookId>).flatten());
    fields.finish()?;
    let id = id.get()?;
    let (authentication, environment) = (actor.into_authentication(), app.environment().clone());
    let caller = authentication.clone();
    let accept = async move |tx: &WriteTx<'_>| {
        let delivery = deliveries::send_test(tx, &environment, &caller, id).await?;
        Ok(CreatedResponse::accepted(delivery))
    };
    idempotent::create(&app, "webhooks.test", &authentication, key, &bytes, accept).await
}
