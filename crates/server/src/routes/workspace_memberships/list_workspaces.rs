//! `GET /workspace-memberships/list-workspaces`

use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::workspace_member::MembershipBody;
use galley_application::operations::members;
use galley_domain::WorkspaceId;
use galley_storage::members::Membership;

use crate::extract::actor::{Actor, AnyToken};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::page_links;
use crate::routes::workspace::sees_billing;

/// List the workspaces of the token's user
///
/// Returns the user's memberships, sorted by the identifier of the workspace; `lastId` is such an
/// identifier. Pending invites are left out. The billing fields are null except in the token's own
/// workspace, with the permission `workspace:write`.
#[utoipa::path(
    get,
    path = "/workspace-memberships/list-workspaces",
    operation_id = "listWorkspaces",
    params(
        IdPageParams,
        (
            "lastId" = Option<schemas::WorkspaceId>, Query,
            description = "The identifier of a workspace: the list continues after it, even if it \
                           was deleted."
        ),
    ),
    responses(
        (status = 200, body = [MembershipBody<'_>]),
    ),
)]
pub(crate) async fn handle(actor: Actor<AnyToken>, mut query: Query) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<WorkspaceId>(&mut query);
    query.finish()?;
    let mut memberships = members::list_workspaces(actor.caller(), page.after(after)).await?;
    let id = |membership: &Membership| membership.workspace.id;
    Ok(page_links::list_by_id(page, &query, &mut memberships, id, |membership| {
        let own = membership.workspace.id == actor.workspace;
        MembershipBody::new(membership, own && sees_billing(&actor))
    }))
}
