//! `DELETE /roles?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::roles;
use galley_domain::RoleId;
use galley_storage::WriteTx;

use crate::app::App;
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
    State(app): State<App>,
    actor: Actor<WriteRoles>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<RoleId>();
    query.finish()?;
    let (id, environment) = (id.get()?, app.environment().clone());
    let caller = actor.into_authentication();
    let write =
        async move |tx: &WriteTx<'_>| roles::delete(tx, &environment, &caller, id, &expected).await;
    app.database().write("roles.delete", write).await?;
    Ok(response::no_content())
}
