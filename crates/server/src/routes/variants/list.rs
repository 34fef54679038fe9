//! `GET /variants/list`

use axum::response::Response;
use galley_api_types::variant::VariantBody;
use galley_application::StalenessBound;
use galley_application::operations::variants;
use galley_domain::VariantId;

use crate::extract::actor::{Actor, ReadVariants};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;

/// List the variants
///
/// Returns the variants in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/variants/list",
    operation_id = "listVariants",
    params(IdPageParams),
    responses(
        (status = 200, body = [VariantBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<ReadVariants>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<VariantId>(&mut query);
    query.finish()?;
    let mut variants = variants::list(&actor.stale_caller(staleness), page.after(after)).await?;
    Ok(page_links::list_by_id(page, &query, &mut variants, |variant| variant.id, VariantBody::from))
}
