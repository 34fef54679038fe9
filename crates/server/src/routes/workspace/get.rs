//! `GET /workspace`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::workspace_member::WorkspaceBody;
use galley_application::Error;
use galley_storage::{Tx, workspaces};

use super::sees_billing;
use crate::app::App;
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
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadWorkspace>,
) -> Result<Response, Problem> {
    let id = actor.workspace;
    let read = async move |tx: &Tx<'_>| Ok::<_, Error>(workspaces::find(tx, id).await?);
    let workspace =
        app.database().read("workspace.get", read).await?.ok_or_else(Error::not_found)?;
    let body = WorkspaceBody::new(&workspace, sees_billing(&actor));
    Ok(response::resource(workspace.version, &body))
}
