//! `GET /webhooks/list`

use axum::response::Response;
use galley_api_types::webhook::WebhookBody;
use galley_application::operations::webhooks;
use galley_domain::WebhookId;

use super::schema;
use crate::extract::actor::{Actor, ReadWebhooks};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;

/// List the webhooks
///
/// Returns the webhooks in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/webhooks/list",
    operation_id = "listWebhooks",
    params(IdPageParams, schema::WebhookListParameters),
    responses(
        (status = 200, body = [WebhookBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<ReadWebhooks>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<WebhookId>(&mut query);
    let extension_only = query.boolean("extensionOnly");
    query.finish()?;
    let page_after = page.after(after);
    let mut webhooks = webhooks::list(actor.caller(), extension_only, page_after).await?;
    Ok(page_links::list_by_id(page, &query, &mut webhooks, |webhook| webhook.id, WebhookBody::from))
}
