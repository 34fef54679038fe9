//! `GET /workspace`

use axum::response::Response;
use galley_api_types::workspace_member::WorkspaceBody;
use galley_application::operations::workspace;

use super::sees_billing;
use crate::extract::actor::{Actor, ReadWorkspace};
use crate::problem::Problem;
use crate::respond::response;

/// Get the token's workspace
///
/// The billing fields are null without the permission `workspace:write`.
#[utoipa::path(
    get,
    path = "/workspace",
    operation_id = "getWorkspace",
    responses(
        (status = 200, body = WorkspaceBody<'_>),
    ),
)]
pub(crate) async fn handle(actor: Actor<ReadWorkspace>) -> Result<Response, Problem> {
    let workspace = workspace::get(actor.caller()).await?;
    let body = WorkspaceBody::new(&workspace, sees_billing(&actor));
    Ok(response::resource(workspace.version, &body))
}
