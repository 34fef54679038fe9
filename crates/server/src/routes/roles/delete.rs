//! `DELETE /roles?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::roles;
use galley_domain::RoleId;

use crate::extract::actor::{Actor, WriteRoles};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete an unused role
#[utoipa::path(
    delete,
    path = "/roles",
    operation_id = "deleteRole",
    params(("id" = schemas::RoleId, Query)),
    responses(
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "role_in_use, builtin_role"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteRoles>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<RoleId>();
    query.finish()?;
    roles::delete(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
