//! `POST /webhooks/deliveries/retry`

use axum::response::Response;
use galley_application::Respond;
use galley_application::operations::deliveries;
use galley_domain::DeliveryId;

use super::schema;
use crate::extract::actor::{Actor, WriteWebhooks};
use crate::extract::body::JsonBody;
use crate::extract::fields::reference;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::created;
use crate::routes::webhooks::schema::Accepted;

/// Retry a delivery
///
/// The delivery is attempted at once, whatever its status, and then by the retry schedule. If its
/// webhook is disabled, the delivery is sent after the webhook is enabled.
#[utoipa::path(
    post,
    path = "/webhooks/deliveries/retry",
    operation_id = "retryDelivery",
    request_body = schema::DeliveryToRetry,
    responses(
        (status = 202, body = Accepted),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteWebhooks>,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<DeliveryId>).flatten());
    fields.finish()?;
    let id = id.get()?;
    let respond = Respond::new(|delivery: &DeliveryId| created::accepted(delivery));
    let key = key.for_body(&bytes);
    let response = deliveries::retry(actor.caller(), id, key, respond).await?;
    Ok(created::respond(response))
}
