//! `GET /roles/list`

use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_application::operations::roles;
use galley_domain::RoleId;

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
pub(crate) async fn handle(actor: Actor<ReadRoles>, mut query: Query) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<RoleId>(&mut query);
    query.finish()?;
    let mut roles = roles::list(actor.caller(), page.after(after)).await?;
    Ok(page_links::list_by_id(page, &query, &mut roles, |role| role.id, RoleBody::from))
}
