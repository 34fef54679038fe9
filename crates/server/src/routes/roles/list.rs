//! `GET /roles/list`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_application::Error;
use galley_domain::RoleId;
use galley_storage::{Tx, roles};

use crate::app::App;
use crate::extract::actor::{Actor, ReadRoles};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;

/// List the roles
///
/// Returns the roles in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/roles/list",
    operation_id = "listRoles",
    params(IdPageParams),
    responses(
        (status = 200, body = [RoleBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadRoles>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<RoleId>(&mut query);
    query.finish()?;
    let workspace = actor.workspace;
    let offset = page.offset(after.is_some());
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(roles::list(tx, workspace, after.as_deref(), page.limit(), offset).await?)
    };
    let mut roles = app.database().read("roles.list", read).await?;
    Ok(page_links::list_by_id(page, &query, &mut roles, |role| role.id, RoleBody::from))
}
