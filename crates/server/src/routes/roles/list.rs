//! `GET /roles/list`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_application::Error;
use galley_domain::RoleId;
use galley_storage::{Tx, roles};

use crate::http::actor::{Actor, ReadRoles};
use crate::http::app::App;
use crate::http::page::{self, Page, PageById};
use crate::http::query::Query;
use crate::problem::Problem;

/// List the roles
///
/// Returns the roles in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/roles/list",
    operation_id = "listRoles",
    params(PageById),
    responses(
        (status = 200, body = [RoleBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadRoles>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = Page::read(&mut query, page::PER_PAGE_MAX);
    let after = page::after_id::<RoleId>(&mut query);
    query.finish()?;
    let workspace = actor.workspace;
    let offset = page.offset(after.is_some());
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(roles::list(tx, workspace, after.as_deref(), page.limit(), offset).await?)
    };
    let mut roles = app.database().read("roles.list", read).await?;
    Ok(page.show(&query, &mut roles, |role| role.id, RoleBody::from))
}
