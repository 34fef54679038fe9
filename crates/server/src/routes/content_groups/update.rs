//! `PUT /content-groups`

use axum::response::Response;
use galley_api_types::content_group::ContentGroupBody;
use galley_application::VersionPrecondition;
use galley_application::operations::content_groups::{self, ContentGroupUpdate};
use galley_domain::ContentGroupId;
use galley_domain::content_group::ContentGroupName;

use super::schema;
use crate::extract::actor::{Actor, WriteContentGroups};
use crate::extract::body::JsonBody;
use crate::extract::fields::{known_reference, reference, text};
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::response;

/// Change a content group
///
/// Absent fields stay unchanged. A new `ancestor` moves the group with its whole subtree.
#[utoipa::path(
    put,
    path = "/content-groups",
    operation_id = "updateContentGroup",
    request_body = schema::ContentGroupChange,
    responses(
        (status = 200, body = ContentGroupBody<'_>),
        (status = 400, description = "unknown_reference, circle"),
        (status = 403, description = "outside_group_limit"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteContentGroups>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<ContentGroupId>).flatten());
    let name = fields.replacement("name", text(ContentGroupName::parse));
    let ancestor = fields.clearable("ancestor", known_reference::<ContentGroupId>("content group"));
    let named = references::group(&["ancestor"], ancestor.flatten());
    references::finish(actor.caller(), fields, named, ()).await?;
    let update = ContentGroupUpdate { id: id.get()?, name, ancestor };
    let view = content_groups::update(actor.caller(), update, expected).await?;
    Ok(response::updated(prefer, view.group.version, &view.body()))
}
