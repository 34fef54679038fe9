//! `GET /tags/list`

use axum::response::Response;
use galley_api_types::tag::TagBody;
use galley_application::StalenessBound;
use galley_application::operations::tags;
use galley_domain::TagId;

use crate::extract::actor::{Actor, ReadTags};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;

/// List the tags
///
/// Returns the tags in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/tags/list",
    operation_id = "listTags",
    params(IdPageParams),
    responses((status = 200, body = [TagBody<'_>])),
)]
pub(crate) async fn handle(
    actor: Actor<ReadTags>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<TagId>(&mut query);
    query.finish()?;
    let mut tags = tags::list(&actor.stale_caller(staleness), page.after(after)).await?;
    Ok(page_links::list_by_id(page, &query, &mut tags, |tag| tag.id, TagBody::from))
}
