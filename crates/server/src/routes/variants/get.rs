//! `GET /variants?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::variant::VariantBody;
use galley_application::StalenessBound;
use galley_application::operations::variants;
use galley_domain::VariantId;

use crate::extract::actor::{Actor, ReadVariants};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Get a variant
#[utoipa::path(
    get,
    path = "/variants",
    operation_id = "getVariant",
    params(("id" = schemas::VariantId, Query)),
    responses(
        (status = 200, body = VariantBody<'_>),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<ReadVariants>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<VariantId>();
    query.finish()?;
    let variant = variants::get(&actor.stale_caller(staleness), id.get()?).await?;
    Ok(response::resource(variant.version, &VariantBody::from(&variant)))
}
