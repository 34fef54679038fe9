//! `POST /content-groups`

use axum::extract::State;
use axum::response::Response;
use galley_domain::ContentGroupId;
use galley_domain::content_group::ContentGroupName;
use galley_storage::WriteTx;

use super::get::show;
use super::{PATH, schema};
use crate::http::actor::{Actor, WriteContentGroups};
use crate::http::app::App;
use crate::http::body::JsonBody;
use crate::http::error::Error;
use crate::http::fields::{known_reference, text};
use crate::http::prefer::Prefer;
use crate::http::response;
use crate::operations::content_groups;
use crate::representation::content_group::ContentGroupBody;

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
    State(app): State<App>,
    actor: Actor<WriteContentGroups>,
    prefer: Prefer,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Error> {
    let name = fields.required("name", text(ContentGroupName::parse));
    let ancestor = fields.optional("ancestor", known_reference::<ContentGroupId>("content group"));
    fields.finish()?;
    let name = name.expect("there, as nothing was refused");
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        let group = content_groups::create(tx, &environment, &scope, &name, ancestor).await?;
        let answer = move |version, body: &ContentGroupBody<'_>| {
            response::created(prefer, PATH, group.id, version, body)
        };
        show(tx, &scope, group.id, false, answer).await
    };
    app.database().write("content_groups.create", write).await
}
