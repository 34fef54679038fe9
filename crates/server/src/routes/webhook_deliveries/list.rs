//! `GET /webhooks/deliveries`

use axum::response::Response;
use galley_api_types::delivery::DeliveryBody;
use galley_application::operations::deliveries::{self, DeliveryListRequest};
use galley_domain::delivery::DeliveryStatus;
use galley_domain::{DeliveryId, EventId, WebhookId};

use super::schema;
use crate::extract::actor::{Actor, ReadWebhooks};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::{Query, RequestedId};
use crate::problem::Problem;
use crate::resources::overload;
use crate::respond::page_links;

/// The maximum of `perPage`. It is low, as each delivery may contain the responses of up to 20
/// attempts.
const PER_PAGE_MAX: i64 = 100;

/// List deliveries
///
/// Returns the deliveries with the results of their attempts, newest first. Deliveries are kept for
/// 30 days.
#[utoipa::path(
    get,
    path = "/webhooks/deliveries",
    operation_id = "listDeliveries",
    params(IdPageParams, schema::DeliveryListParameters),
    responses(
        (status = 200, body = [DeliveryBody<'_>]),
        (status = 404, description = "not_found"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<ReadWebhooks>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, PER_PAGE_MAX);
    let before = pagination::after_id::<DeliveryId>(&mut query);
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
            let (event, page) = (event.flatten(), page.after(before));
            let request = DeliveryListRequest { webhook, status, event, page };
            overload::uncounted(deliveries::list(actor.caller(), request)).await?
        }
    };
    Ok(page_links::list_by_id(page, &query, &mut found, |delivery| delivery.id, DeliveryBody::from))
}
