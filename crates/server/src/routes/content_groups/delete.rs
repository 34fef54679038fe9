//! `DELETE /content-groups?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::content_groups;
use galley_domain::ContentGroupId;

use crate::app::App;
use crate::extract::actor::{Actor, WriteContentGroups};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete a content group
///
/// A group that contains groups or pieces is deleted only with `recursive=true`, together with its
/// contents. A deletion of more than 10,000 pieces is rejected.
#[utoipa::path(
    delete,
    path = "/content-groups",
    operation_id = "deleteContentGroup",
    params(
        ("id" = schemas::ContentGroupId, Query),
        ("recursive" = Option<bool>, Query, description = "Delete also its contents"),
    ),
    responses((status = 409, description = "not_empty, too_large")),
)]
pub(crate) async fn handle(
    _: State<App>,
    actor: Actor<WriteContentGroups>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentGroupId>();
    let recursive = query.boolean("recursive");
    query.finish()?;
    content_groups::delete(actor.caller(), id.get()?, recursive, expected).await?;
    Ok(response::no_content())
}
