//! `POST /tags`

use axum::extract::State;
use axum::response::Response;
use galley_domain::tag::TagLabel;
use galley_storage::WriteTx;

use super::{PATH, color, schema};
use crate::http::actor::{Actor, WriteTags};
use crate::http::app::App;
use crate::http::body::JsonBody;
use crate::http::error::Error;
use crate::http::fields::text;
use crate::http::prefer::Prefer;
use crate::http::response;
use crate::operations::tags;
use crate::representation::tag::TagBody;

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
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Error> {
    let label = fields.required("label", text(TagLabel::parse));
    let color = fields.optional("color", text(color)).unwrap_or_default();
    fields.finish()?;
    let label = label.expect("there, as nothing was refused");
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let write =
        async move |tx: &WriteTx<'_>| tags::create(tx, &environment, &scope, &label, color).await;
    let tag = app.database().write("tags.create", write).await?;
    Ok(response::created(prefer, PATH, tag.id, tag.version, &TagBody::from(&tag)))
}
