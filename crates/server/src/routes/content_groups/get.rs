//! `GET /content-groups?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_group::ContentGroupBody;
use galley_api_types::schemas;
use galley_application::StalenessBound;
use galley_application::operations::content_groups;
use galley_domain::ContentGroupId;

use crate::app::App;
use crate::extract::actor::{Actor, ReadContentGroups};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::large_response;

/// Get a content group
#[utoipa::path(
    get,
    path = "/content-groups",
    operation_id = "getContentGroup",
    params(
        ("id" = schemas::ContentGroupId, Query),
        ("subtree" = Option<bool>, Query, description = "Include the whole subtree of the group"),
    ),
    responses((status = 200, body = ContentGroupBody<'_>)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentGroups>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentGroupId>();
    let subtree = query.boolean("subtree");
    query.finish()?;
    let workspace = actor.workspace;
    let view = content_groups::get(&actor.stale_caller(staleness), id.get()?, subtree).await?;
    large_response::resource(&app, workspace, view.group.version, &view.body(), "subtree")
}
