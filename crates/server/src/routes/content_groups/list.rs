//! `GET /content-groups/list`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_group::ContentGroupBody;
use galley_application::StalenessBound;
use galley_application::operations::content_groups::{self, GroupListRequest};
use galley_domain::ContentGroupId;

use crate::app::App;
use crate::extract::actor::{Actor, ReadContentGroups};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::{large_response, page_links, response};

/// List the content groups of a level
///
/// Returns the top-level groups or the direct children of `ancestor`, oldest first. For a token
/// that is limited to groups, those groups are the top level.
#[utoipa::path(
    get,
    path = "/content-groups/list",
    operation_id = "listContentGroups",
    params(
        (
            "ancestor" = Option<String>, Query,
            description = "The parent of the listed groups; a nonexistent one has no children"
        ),
        ("subtree" = Option<bool>, Query, description = "Include the whole subtree of each group"),
        IdPageParams,
    ),
    responses((status = 200, body = [ContentGroupBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentGroups>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let subtree = query.boolean("subtree");
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<ContentGroupId>(&mut query);
    let ancestor = query.text("ancestor");
    query.finish()?;
    let ancestor = match ancestor.map(|text| text.parse::<ContentGroupId>()) {
        // A malformed identifier matches no group, so the list is empty.
        Some(Err(_)) => return Ok(response::ok(&[(); 0])),
        Some(Ok(id)) => Some(id),
        None => None,
    };
    let workspace = actor.workspace;
    let (offset, per_page) = (page.offset(after.is_some()), page.per_page());
    let request = GroupListRequest { ancestor, subtree, after, offset, per_page };
    let list = content_groups::list(&actor.stale_caller(staleness), request).await?;
    let mut response = large_response::resource(&app, workspace, 0, &list.bodies(), "subtree")?;
    let next = list.last().filter(|_| list.has_more).map(pagination::id_cursor);
    page_links::link_next(&mut response, &query, next.as_deref());
    Ok(response)
}
