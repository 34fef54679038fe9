//! `DELETE /tags?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::tags;
use galley_domain::TagId;

use crate::extract::actor::{Actor, WriteTags};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete a tag
///
/// The tag is removed from all pieces.
#[utoipa::path(
    delete,
    path = "/tags",
    operation_id = "deleteTag",
    params(("id" = schemas::TagId, Query)),
)]
pub(crate) async fn handle(
    actor: Actor<WriteTags>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<TagId>();
    query.finish()?;
    tags::delete(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
