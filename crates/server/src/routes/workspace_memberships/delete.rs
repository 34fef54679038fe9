//! `DELETE /workspace-memberships?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_application::operations::members;
use galley_application::{Rejection, VersionPrecondition};
use galley_domain::WorkspaceMemberId;
use galley_domain::permission::{Permission, Resource};

use crate::extract::actor::{Actor, AnyToken};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Remove a member or an invite
///
/// Requires the permission `workspaceMemberships:write`. Without it, a token can remove its own
/// member if it has all permissions of its role, and no limit to groups or an extension. The
/// member's tokens of this workspace are revoked, and pieces no longer list the member.
#[utoipa::path(
    delete,
    path = "/workspace-memberships",
    operation_id = "removeWorkspaceMember",
    params(("id" = schemas::WorkspaceMemberId, Query)),
    responses(
        (status = 403, description = "insufficient_permissions, beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "last_admin"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<AnyToken>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<WorkspaceMemberId>();
    // Members can remove themselves without the permission that the removal of others needs.
    let leaves = id.is(actor.member) && actor.is_unlimited();
    let needed = Permission::write(Resource::WorkspaceMemberships);
    if !leaves && !actor.permissions.allows(needed) {
        return Err(Rejection::insufficient_permissions(needed).into());
    }
    query.finish()?;
    members::remove(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
