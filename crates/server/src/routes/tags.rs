//! `/tags`.

use galley_api_types::tag::{NewTag, TagBody, TagChange};
use galley_application::operations::tags;
use galley_domain::TagId;
use galley_domain::tag::Tag;

use crate::extract::actor::{ReadTags, WriteTags};
use crate::routes::prelude::*;

const PATH: &str = "/tags";

/// Get a tag
#[utoipa::path(
    get, path = "/tags", operation_id = "getTag", params(("id" = schemas::TagId, Query)),
    responses((status = 200, body = TagBody<'_>)),
)]
pub(crate) async fn get(
    actor: Actor<ReadTags>,
    staleness: StalenessBound,
    IdQuery(id): IdQuery<TagId>,
) -> Result<Response, Problem> {
    let tag = tags::get(&actor.stale_caller(staleness), id).await?;
    Ok(response::resource(tag.version, &TagBody::from(&tag)))
}

/// List the tags
///
/// Returns the tags in the order of their creation, oldest first.
#[utoipa::path(
    get, path = "/tags/list", operation_id = "listTags", params(IdPageParams),
    responses((status = 200, body = [TagBody<'_>])),
)]
pub(crate) async fn list(
    actor: Actor<ReadTags>,
    staleness: StalenessBound,
    list: IdListQuery<TagId>,
) -> Result<Response, Problem> {
    let mut tags = tags::list(&actor.stale_caller(staleness), list.page()).await?;
    Ok(list.respond(&mut tags, |tag| tag.id, TagBody::from))
}

/// Create a tag
#[utoipa::path(
    post, path = "/tags", operation_id = "createTag", request_body = NewTag,
    responses((status = 201, body = TagBody<'_>)),
)]
pub(crate) async fn create(
    actor: Actor<WriteTags>,
    request: CreateRequest<NewTag>,
) -> Result<Response, Problem> {
    let (prefer, new, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(move |tag: &Tag| {
        created::created(prefer, tag.id, tag.version, &TagBody::from(tag))
            .with_location(PATH, tag.id)
    });
    Ok(created::respond(tags::create(actor.caller(), new, request, respond).await?))
}

/// Change a tag
///
/// Absent fields stay unchanged.
#[utoipa::path(
    put, path = "/tags", operation_id = "updateTag", request_body = TagChange,
    responses((status = 200, body = TagBody<'_>)),
)]
pub(crate) async fn update(
    actor: Actor<WriteTags>,
    request: ChangeRequest<TagChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let tag = tags::update(actor.caller(), id, change, expected).await?;
    Ok(response::updated(prefer, tag.version, &TagBody::from(&tag)))
}

/// Delete a tag
///
/// The tag is removed from all pieces.
#[utoipa::path(
    delete, path = "/tags", operation_id = "deleteTag", params(("id" = schemas::TagId, Query)),
)]
pub(crate) async fn delete(
    actor: Actor<WriteTags>,
    expected: VersionPrecondition,
    IdQuery(id): IdQuery<TagId>,
) -> Result<Response, Problem> {
    tags::delete(actor.caller(), id, expected).await?;
    Ok(response::no_content())
}
