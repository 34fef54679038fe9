//! `POST /webhooks/recover`

use axum::response::Response;
use galley_application::Respond;
use galley_application::operations::deliveries;
use galley_domain::WebhookId;

use super::schema;
use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::body::JsonBody;
use crate::extract::fields::{reference, text, time};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::created;

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
    actor: Actor<WriteWebhooks>,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<WebhookId>).flatten());
    let since = fields.required("since", text(time));
    let since = fields.finish_with(since)?;
    let respond = Respond::new(|webhook: &WebhookId| created::accepted(webhook));
    let key = key.for_body(&bytes);
    let response = deliveries::recover(actor.caller(), id.get()?, since, key, respond).await?;
    Ok(created::respond(response))
}
