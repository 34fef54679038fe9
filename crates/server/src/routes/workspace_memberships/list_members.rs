//! `GET /workspace-memberships/list-members`

use axum::response::Response;
use galley_api_types::workspace_member::WorkspaceMemberBody;
use galley_application::operations::members;
use galley_domain::WorkspaceMemberId;

use crate::extract::actor::{Actor, ReadWorkspaceMemberships};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;

/// List the members of the workspace
///
/// Returns the members and the pending invites, oldest first.
#[utoipa::path(
    get,
    path = "/workspace-memberships/list-members",
    operation_id = "listWorkspaceMembers",
    params(IdPageParams),
    responses(
        (status = 200, body = [WorkspaceMemberBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<ReadWorkspaceMemberships>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<WorkspaceMemberId>(&mut query);
    query.finish()?;
    let mut members = members::list(actor.caller(), page.after(after)).await?;
    Ok(page_links::list_by_id(
        page,
        &query,
        &mut members,
        |member| member.id,
        WorkspaceMemberBody::from,
    ))
}
