//! `PUT /tags`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::tag::TagBody;
use galley_application::VersionPrecondition;
use galley_application::operations::tags;
use galley_domain::TagId;
use galley_domain::tag::TagLabel;
use galley_storage::WriteTx;

use super::{color, schema};
use crate::app::App;
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
    State(app): State<App>,
    actor: Actor<WriteTags>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<TagId>).flatten());
    let label = fields.replacement("label", text(TagLabel::parse));
    let color = fields.replacement("color", text(color));
    fields.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let write = async move |tx: &WriteTx<'_>| {
        tags::update(tx, &scope, id, label.as_ref(), color, &expected).await
    };
    let tag = app.database().write("tags.update", write).await?;
    Ok(response::updated(prefer, tag.version, &TagBody::from(&tag)))
}
