//! `/content-groups`.

pub(crate) mod schema;

use galley_api_types::content_group::{ContentGroupBody, ContentGroupChange, NewContentGroup};
use galley_application::operations::content_groups::{self, GroupListRequest, GroupView};
use galley_application::operations::trash;
use galley_domain::ContentGroupId;

use crate::extract::actor::{ReadContentGroups, WriteContentGroups};
use crate::extract::pagination::{self, PageRequest};
use crate::respond::{large_response, page_links};
use crate::routes::content_pieces::PermanentParameter;
use crate::routes::prelude::*;

const PATH: &str = "/content-groups";

/// Get a content group
#[utoipa::path(
    get, path = "/content-groups", operation_id = "getContentGroup",
    params(
        ("id" = schemas::ContentGroupId, Query),
        ("subtree" = Option<bool>, Query, description = "Include the whole subtree of the group"),
    ),
    responses((status = 200, body = ContentGroupBody<'_>)),
)]
pub(crate) async fn get(
    State(app): State<App>,
    actor: Actor<ReadContentGroups>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentGroupId>();
    let subtree = query.boolean("subtree");
    query.finish()?;
    let workspace = actor.workspace;
    let view = content_groups::get(&actor.stale_caller(staleness), id.get()?, subtree).await?;
    large_response::resource(&app, workspace, view.group.version, &view.body(), "subtree")
}

/// List the content groups of a level
///
/// Returns the top-level groups or the direct children of `ancestor`, oldest first. For a token
/// that is limited to groups, those groups are the top level.
#[utoipa::path(
    get, path = "/content-groups/list", operation_id = "listContentGroups",
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
pub(crate) async fn list(
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

/// Create a content group
#[utoipa::path(
    post, path = "/content-groups", operation_id = "createContentGroup",
    request_body = NewContentGroup,
    responses(
        (status = 201, body = ContentGroupBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn create(
    actor: Actor<WriteContentGroups>,
    request: CreateRequest<NewContentGroup>,
) -> Result<Response, Problem> {
    let (prefer, new, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(move |view: &GroupView| {
        created::created(prefer, view.group.id, view.group.version, &view.body())
            .with_location(PATH, view.group.id)
    });
    Ok(created::respond(content_groups::create(actor.caller(), new, request, respond).await?))
}

/// Change a content group
///
/// Absent fields stay unchanged. A new `ancestor` moves the group with its whole subtree. With
/// `uniqueSlugs` true, the slugs of the pieces in the group and its descendants must be unique, in
/// each variant.
#[utoipa::path(
    put, path = "/content-groups", operation_id = "updateContentGroup",
    request_body = ContentGroupChange,
    responses(
        (status = 200, body = ContentGroupBody<'_>),
        (status = 400, description = "unknown_reference, circle"),
        (status = 403, description = "outside_group_limit"),
        (status = 409, description = "slug_taken, too_large"),
    ),
)]
pub(crate) async fn update(
    actor: Actor<WriteContentGroups>,
    request: ChangeRequest<ContentGroupChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let view = content_groups::update(actor.caller(), id, change, expected).await?;
    Ok(response::updated(prefer, view.group.version, &view.body()))
}

/// Delete a content group
///
/// A group that contains groups or pieces is deleted only with `recursive=true`, together with its
/// contents. A deletion of more than 10,000 pieces is rejected. The group moves into the trash with
/// everything in it, unless the server is configured without one.
#[utoipa::path(
    delete, path = "/content-groups", operation_id = "deleteContentGroup",
    params(
        ("id" = schemas::ContentGroupId, Query),
        ("recursive" = Option<bool>, Query, description = "Delete also its contents"),
        PermanentParameter,
    ),
    responses((status = 409, description = "not_empty, too_large")),
)]
pub(crate) async fn delete(
    actor: Actor<WriteContentGroups>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentGroupId>();
    let recursive = query.boolean("recursive");
    let permanent = query.boolean("permanent");
    query.finish()?;
    if permanent {
        trash::delete_group(actor.caller(), id.get()?, recursive, expected).await?;
    } else {
        content_groups::delete(actor.caller(), id.get()?, recursive, expected).await?;
    }
    Ok(response::no_content())
}
