//! `POST /tags`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::tag::TagBody;
use galley_application::operations::tags;
use galley_domain::tag::TagLabel;
use galley_storage::WriteTx;

use super::{PATH, color, schema};
use crate::http::actor::{Actor, WriteTags};
use crate::http::app::App;
use crate::http::body::JsonBody;
use crate::http::fields::text;
use crate::http::idempotency::{self, IdempotencyKey};
use crate::http::prefer::Prefer;
use crate::http::response::Made;
use crate::problem::Problem;

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
        Ok(Made::new(prefer, tag.id, tag.version, &TagBody::from(&tag)).at(PATH, tag.id))
    };
    idempotency::make(&app, "tags.create", &actor, key, &bytes, create).await
}
