//! `GET /webhooks/list`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::webhook::WebhookBody;
use galley_application::Error;
use galley_domain::WebhookId;
use galley_storage::Tx;
use galley_storage::webhooks::{self, ListQuery};

use super::schema;
use crate::app::App;
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
    params(IdPageParams, schema::ListParameters),
    responses(
        (status = 200, body = [WebhookBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadWebhooks>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<WebhookId>(&mut query);
    let extension_only = query.boolean("extensionOnly");
    query.finish()?;
    let (scope, extension) = (actor.scope(), actor.extension.clone());
    let offset = page.offset(after.is_some());
    let read = async move |tx: &Tx<'_>| {
        let list = ListQuery {
            extension: extension_only.then_some(extension.as_deref()),
            within: scope.content_groups.as_deref(),
            after: after.as_deref(),
            limit: page.limit(),
            offset,
        };
        Ok::<_, Error>(webhooks::list(tx, scope.workspace, &list).await?)
    };
    let mut webhooks = app.database().read("webhooks.list", read).await?;
    Ok(page_links::list_by_id(page, &query, &mut webhooks, |webhook| webhook.id, WebhookBody::from))
}
