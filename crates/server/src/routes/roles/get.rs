//! `GET /roles?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_api_types::schemas;
use galley_application::Error;
use galley_domain::RoleId;
use galley_storage::{Tx, roles};

use crate::app::App;
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
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadRoles>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<RoleId>();
    query.finish()?;
    let (id, workspace) = (id.get()?, actor.workspace);
    let read = async move |tx: &Tx<'_>| Ok::<_, Error>(roles::find(tx, workspace, id).await?);
    let role = app.database().read("roles.get", read).await?.ok_or_else(Error::not_found)?;
    Ok(response::resource(role.version, &RoleBody::from(&role)))
}
