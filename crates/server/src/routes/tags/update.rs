//! `PUT /tags`

use axum::response::Response;
use galley_api_types::tag::TagBody;
use galley_application::VersionPrecondition;
use galley_application::operations::tags::{self, TagUpdate};
use galley_domain::TagId;
use galley_domain::tag::TagLabel;

use super::{color, schema};
use crate::extract::actor::{Actor, WriteTags};
use crate::extract::body::JsonBody;
use crate::extract::fields::{reference, text};
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::response;

/// Change a tag
///
/// Absent fields stay unchanged.
#[utoipa::path(
    put,
    path = "/tags",
    operation_id = "updateTag",
    request_body = schema::TagChange,
    responses((status = 200, body = TagBody<'_>)),
)]
pub(crate) async fn handle(
    actor: Actor<WriteTags>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<TagId>).flatten());
    let label = fields.replacement("label", text(TagLabel::parse));
    let color = fields.replacement("color", text(color));
    fields.finish()?;
    let update = TagUpdate { id: id.get()?, label, color };
    let tag = tags::update(actor.caller(), update, expected).await?;
    Ok(response::updated(prefer, tag.version, &TagBody::from(&tag)))
}
