//! `/webhooks/deliveries`.

use galley_api_types::delivery::{DeliveryBody, DeliveryToRetry};
use galley_application::operations::deliveries::{self, DeliveryListRequest};
use galley_domain::delivery::DeliveryStatus;
use galley_domain::{DeliveryId, EventId, WebhookId};
use utoipa::IntoParams;

use crate::extract::actor::{ReadWebhooks, WriteWebhooks};
use crate::extract::query::RequestedId;
use crate::resources::overload;
use crate::routes::prelude::*;
use crate::routes::webhooks::Accepted;

/// The maximum of `perPage`. It is low, as each delivery may contain the responses of up to 20
/// attempts.
const PER_PAGE_MAX: i64 = 100;

/// The query parameters of the list, besides those of paging.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct DeliveryListParameters {
    /// The limit on items in a page.
    #[param(minimum = 1, maximum = 100, default = 20, example = 50)]
    per_page: Option<i64>,
    /// List only the deliveries to this webhook.
    webhook_id: Option<String>,
    /// List only the deliveries with this status.
    #[param(value_type = Option<schemas::DeliveryStatus>)]
    status: Option<String>,
    /// List only the deliveries of this event.
    event_id: Option<String>,
}

/// List deliveries
///
/// Returns the deliveries with the results of their attempts, newest first. Deliveries are kept for
/// 30 days.
#[utoipa::path(
    get, path = "/webhooks/deliveries", operation_id = "listDeliveries",
    params(IdPageParams, DeliveryListParameters),
    responses(
        (status = 200, body = [DeliveryBody<'_>]),
        (status = 404, description = "not_found"),
    ),
)]
pub(crate) async fn list(actor: Actor<ReadWebhooks>, query: Query) -> Result<Response, Problem> {
    let mut list = IdListQuery::<DeliveryId>::parse(query, PER_PAGE_MAX);
    let query = list.query();
    let webhook =
        query.text("webhookId").map(|text| RequestedId::<WebhookId>::new(text.parse().ok()));
    let event = query.text("eventId").map(|text| text.parse::<EventId>().ok());
    let statuses: Vec<_> =
        DeliveryStatus::ALL.iter().map(|&status| (status.as_str(), status)).collect();
    let status = query.choice("status", &statuses);
    query.finish()?;
    let webhook = webhook.map(RequestedId::get).transpose()?;
    // A malformed identifier matches no event.
    let mut found = match event {
        Some(None) => Vec::new(),
        event => {
            let (event, page) = (event.flatten(), list.page());
            let request = DeliveryListRequest { webhook, status, event, page };
            overload::uncounted(deliveries::list(actor.caller(), request)).await?
        }
    };
    Ok(list.respond(&mut found, |delivery| delivery.id, DeliveryBody::from))
}

/// Retry a delivery
///
/// The delivery is attempted at once, whatever its status, and then by the retry schedule. If its
/// webhook is disabled, the delivery is sent after the webhook is enabled.
#[utoipa::path(
    post, path = "/webhooks/deliveries/retry", operation_id = "retryDelivery",
    request_body = DeliveryToRetry,
    responses(
        (status = 202, body = Accepted),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn retry(
    actor: Actor<WriteWebhooks>,
    request: ActionRequest<DeliveryToRetry>,
) -> Result<Response, Problem> {
    let (id, _, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(|delivery: &DeliveryId| created::accepted(delivery));
    Ok(created::respond(deliveries::retry(actor.caller(), id, request, respond).await?))
}
