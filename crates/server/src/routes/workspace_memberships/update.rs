//! `PUT /workspace-memberships`

use axum::response::Response;
use galley_api_types::workspace_member::WorkspaceMemberBody;
use galley_application::VersionPrecondition;
use galley_application::operations::members;
use galley_domain::{RoleId, WorkspaceMemberId};

use super::schema;
use crate::extract::actor::{Actor, WriteWorkspaceMemberships};
use crate::extract::body::JsonBody;
use crate::extract::fields::{known_reference, reference};
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::response;

/// Change a member's role
#[utoipa::path(
    put,
    path = "/workspace-memberships",
    operation_id = "updateWorkspaceMember",
    request_body = schema::MemberChange,
    responses(
        (status = 200, body = WorkspaceMemberBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "last_admin"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteWorkspaceMemberships>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<WorkspaceMemberId>).flatten());
    let role = fields.required("roleId", known_reference::<RoleId>("role"));
    let named = references::role("roleId", role);
    let role = references::finish(actor.caller(), fields, named, role).await?;
    let id = id.get()?;
    let member = members::change_role(actor.caller(), id, role, expected).await?;
    Ok(response::updated(prefer, member.version, &WorkspaceMemberBody::from(&member)))
}
