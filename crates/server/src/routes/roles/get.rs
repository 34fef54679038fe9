//! `GET /roles?id=`

use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_api_types::schemas;
use galley_application::operations::roles;
use galley_domain::RoleId;

use crate::extract::actor::{Actor, ReadRoles};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Get a role
#[utoipa::path(
    get,
    path = "/roles",
    operation_id = "getRole",
    params(("id" = schemas::RoleId, Query)),
    responses(
        (status = 200, body = RoleBody<'_>),
    ),
)]
pub(crate) async fn handle(actor: Actor<ReadRoles>, mut query: Query) -> Result<Response, Problem> {
    let id = query.id::<RoleId>();
    query.finish()?;
    let role = roles::get(actor.caller(), id.get()?).await?;
    Ok(response::resource(role.version, &RoleBody::from(&role)))
}
