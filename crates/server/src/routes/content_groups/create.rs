//! `POST /content-groups`

use axum::response::Response;
use galley_api_types::content_group::ContentGroupBody;
use galley_application::Respond;
use galley_application::operations::content_groups::{self, GroupView};
use galley_domain::ContentGroupId;
use galley_domain::content_group::ContentGroupName;

use super::{PATH, schema};
use crate::extract::actor::{Actor, WriteContentGroups};
use crate::extract::body::JsonBody;
use crate::extract::fields::{known_reference, text};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::created;

/// Create a content group
#[utoipa::path(
    post,
    path = "/content-groups",
    operation_id = "createContentGroup",
    request_body = schema::NewContentGroup,
    responses(
        (status = 201, body = ContentGroupBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteContentGroups>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let name = fields.required("name", text(ContentGroupName::parse));
    let ancestor = fields.optional("ancestor", known_reference::<ContentGroupId>("content group"));
    let named = references::group(&["ancestor"], ancestor);
    let name = references::finish(actor.caller(), fields, named, name).await?;
    let respond = Respond::new(move |view: &GroupView| {
        created::created(prefer, view.group.id, view.group.version, &view.body())
            .with_location(PATH, view.group.id)
    });
    let key = key.for_body(&bytes);
    let response = content_groups::create(actor.caller(), name, ancestor, key, respond).await?;
    Ok(created::respond(response))
}
