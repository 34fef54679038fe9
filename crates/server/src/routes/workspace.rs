//! `/workspace`: the token's workspace.

use galley_api_types::workspace_member::{WorkspaceBody, WorkspaceChange};
use galley_application::operations::workspace::{self, BillingUpdate, WorkspaceUpdate};
use galley_domain::Permission;
use galley_domain::permission::Resource;
use galley_storage::authentication::Authentication;

use crate::extract::actor::{ReadWorkspace, WriteWorkspace};
use crate::routes::prelude::*;

/// Returns true if the token may read the workspace's billing.
pub(crate) fn sees_billing(actor: &Authentication) -> bool {
    actor.permissions.allows(Permission::write(Resource::Workspace))
}

/// Get the token's workspace
///
/// The billing fields are null without the permission `workspace:write`.
#[utoipa::path(
    get, path = "/workspace", operation_id = "getWorkspace",
    responses((status = 200, body = WorkspaceBody<'_>)),
)]
pub(crate) async fn get(actor: Actor<ReadWorkspace>) -> Result<Response, Problem> {
    let workspace = workspace::get(actor.caller()).await?;
    let body = WorkspaceBody::new(&workspace, sees_billing(&actor));
    Ok(response::resource(workspace.version, &body))
}

/// Change the token's workspace
///
/// Absent fields stay unchanged. Only the operator can change the billing.
#[utoipa::path(
    put, path = "/workspace", operation_id = "updateWorkspace", request_body = WorkspaceChange,
    responses((status = 200, body = WorkspaceBody<'_>)),
)]
pub(crate) async fn update(
    actor: Actor<WriteWorkspace>,
    request: ChangeRequest<WorkspaceChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, change, .. } = request.parse(actor.caller()).await?;
    let WorkspaceChange { name, description, logo, language } = change;
    let update =
        WorkspaceUpdate { name, description, logo, language, billing: BillingUpdate::default() };
    let workspace = workspace::update(actor.caller(), update, expected).await?;
    let body = WorkspaceBody::new(&workspace, sees_billing(&actor));
    Ok(response::updated(prefer, workspace.version, &body))
}
