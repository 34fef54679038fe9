//! `POST /content-groups`

use axum::extract::State;
use axum::response::Response;
use galley_domain::ContentGroupId;
use galley_domain::content_group::ContentGroupName;
use galley_storage::WriteTx;

use super::PATH;
use crate::http::actor::{Actor, WriteContentGroups};
use crate::http::app::App;
use crate::http::body::JsonBody;
use crate::http::error::Error;
use crate::http::fields::{known_reference, text};
use crate::http::response;
use crate::operations::content_groups;

pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteContentGroups>,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Error> {
    let name = fields.required("name", text(ContentGroupName::parse));
    let ancestor = fields.optional("ancestor", known_reference::<ContentGroupId>("content group"));
    fields.finish()?;
    let name = name.expect("there, as nothing was refused");
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        content_groups::create(tx, &environment, &scope, &name, ancestor).await
    };
    let group = app.database().write("content_groups.create", write).await?;
    Ok(response::created(PATH, group.id))
}
