//! `DELETE /variants?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::variants;
use galley_domain::VariantId;

use crate::extract::actor::{Actor, WriteVariants};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete a variant
///
/// The overrides of all pieces in this variant are deleted, too.
#[utoipa::path(
    delete,
    path = "/variants",
    operation_id = "deleteVariant",
    params(("id" = schemas::VariantId, Query)),
)]
pub(crate) async fn handle(
    actor: Actor<WriteVariants>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<VariantId>();
    query.finish()?;
    variants::delete(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
