//! `POST /tags`

use axum::response::Response;
use galley_api_types::tag::TagBody;
use galley_application::Respond;
use galley_application::operations::tags;
use galley_domain::tag::{Tag, TagLabel};

use super::{PATH, color, schema};
use crate::extract::actor::{Actor, WriteTags};
use crate::extract::body::JsonBody;
use crate::extract::fields::text;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::created;

/// Create a tag
#[utoipa::path(
    post,
    path = "/tags",
    operation_id = "createTag",
    request_body = schema::NewTag,
    responses((status = 201, body = TagBody<'_>)),
)]
pub(crate) async fn handle(
    actor: Actor<WriteTags>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let label = fields.required("label", text(TagLabel::parse));
    let color = fields.optional("color", text(color)).unwrap_or_default();
    let label = fields.finish_with(label)?;
    let respond = Respond::new(move |tag: &Tag| {
        created::created(prefer, tag.id, tag.version, &TagBody::from(tag))
            .with_location(PATH, tag.id)
    });
    let request = key.for_body(&bytes);
    let response = tags::create(actor.caller(), label, color, request, respond).await?;
    Ok(created::respond(response))
}
