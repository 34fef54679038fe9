//! `POST /webhooks/test`

use axum::response::Response;
use galley_application::Respond;
use galley_application::operations::deliveries;
use galley_domain::{DeliveryId, WebhookId};

use super::schema;
use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::body::JsonBody;
use crate::extract::fields::reference;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::created;

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
    actor: Actor<WriteWebhooks>,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<WebhookId>).flatten());
    fields.finish()?;
    let id = id.get()?;
    let respond = Respond::new(|delivery: &DeliveryId| created::accepted(delivery));
    let key = key.for_body(&bytes);
    let response = deliveries::send_test(actor.caller(), id, key, respond).await?;
    Ok(created::respond(response))
}
