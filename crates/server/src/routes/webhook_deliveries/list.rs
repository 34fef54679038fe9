//! `GET /webhooks/deliveries`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::delivery::DeliveryBody;
use galley_application::Error;
use galley_domain::delivery::DeliveryStatus;
use galley_domain::{DeliveryId, EventId, WebhookId};
use galley_storage::delivery_queue::{self, ListQuery};
use galley_storage::{Tx, webhooks};

use super::schema;
use crate::app::App;
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
    params(IdPageParams, schema::ListParameters),
    responses(
        (status = 200, body = [DeliveryBody<'_>]),
        (status = 404, description = "not_found"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
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
    let scope = actor.scope();
    let offset = page.offset(before.is_some());
    let read = async move |tx: &Tx<'_>| {
        let within = scope.content_groups.clone();
        if let Some(webhook) = webhook {
            let found = webhooks::find(tx, scope.workspace, webhook, within.as_deref()).await?;
            found.ok_or_else(Error::not_found)?;
        }
        let list = ListQuery {
            webhook,
            status,
            // A malformed identifier matches no event.
            event: match event {
                Some(None) => return Ok(Vec::new()),
                Some(event) => event,
                None => None,
            },
            within,
            before: before.clone(),
            limit: page.limit(),
            offset,
        };
        Ok::<_, Error>(delivery_queue::list(tx, scope.workspace, &list).await?)
    };
    let mut found = overload::uncounted(app.database().read_long("deliveries.list", read)).await?;
    Ok(page_links::list_by_id(page, &query, &mut found, |delivery| delivery.id, DeliveryBody::from))
}
