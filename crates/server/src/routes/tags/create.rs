//! `POST /tags`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::tag::TagBody;
use galley_application::operations::tags;
use galley_domain::tag::TagLabel;
use galley_storage::WriteTx;

use super::{PATH, color, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteTags};
use crate::extract::body::JsonBody;
use crate::extract::fields::text;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::idempotent;
use crate::respond::response::CreatedResponse;

/// Create a tag
#[utoipa::path(
    post,
    path = "/tags",
    operation_id = "createTag",
    request_body = schema::NewTag,
    responses((status = 201, body = TagBody<'_>)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteTags>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let label = fields.required("label", text(TagLabel::parse));
    let color = fields.optional("color", text(color)).unwrap_or_default();
    fields.finish()?;
    let label = label.expect("there, as nothing was refused");
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let create = async move |tx: &WriteTx<'_>| {
        let tag = tags::create(tx, &environment, &scope, &label, color).await?;
        Ok(CreatedResponse::new(prefer, tag.id, tag.version, &TagBody::from(&tag))
            .with_location(PATH, tag.id))
    };
    idempotent::create(&app, "tags.create", &actor, key, &bytes, create).await
}
