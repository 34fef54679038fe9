//! `PUT /workspace`

use axum::response::Response;
use galley_api_types::workspace_member::WorkspaceBody;
use galley_application::VersionPrecondition;
use galley_application::operations::workspace::{self, BillingUpdate, WorkspaceUpdate};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::workspace::WorkspaceName;

use super::{schema, sees_billing};
use crate::extract::actor::{Actor, WriteWorkspace};
use crate::extract::body::JsonBody;
use crate::extract::fields::text;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::response;

/// Change the token's workspace
///
/// Absent fields stay unchanged. Only the operator can change the billing.
#[utoipa::path(
    put,
    path = "/workspace",
    operation_id = "updateWorkspace",
    request_body = schema::WorkspaceChange,
    responses(
        (status = 200, body = WorkspaceBody<'_>),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteWorkspace>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let name = fields.replacement("name", text(WorkspaceName::parse));
    let description = fields.clearable("description", text(ShortText::parse));
    let logo = fields.clearable("logo", text(WebReference::parse));
    fields.finish()?;
    let update = WorkspaceUpdate { name, description, logo, billing: BillingUpdate::default() };
    let workspace = workspace::update(actor.caller(), update, expected).await?;
    let body = WorkspaceBody::new(&workspace, sees_billing(&actor));
    Ok(response::updated(prefer, workspace.version, &body))
}
