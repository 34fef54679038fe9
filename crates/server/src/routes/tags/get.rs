//! `GET /tags?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::tag::TagBody;
use galley_application::StalenessBound;
use galley_application::operations::tags;
use galley_domain::TagId;

use crate::extract::actor::{Actor, ReadTags};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Get a tag
#[utoipa::path(
    get,
    path = "/tags",
    operation_id = "getTag",
    params(("id" = schemas::TagId, Query)),
    responses((status = 200, body = TagBody<'_>)),
)]
pub(crate) async fn handle(
    actor: Actor<ReadTags>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<TagId>();
    query.finish()?;
    let tag = tags::get(&actor.stale_caller(staleness), id.get()?).await?;
    Ok(response::resource(tag.version, &TagBody::from(&tag)))
}
