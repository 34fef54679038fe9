//! `POST /content-groups`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_group::ContentGroupBody;
use galley_application::operations::content_groups;
use galley_domain::ContentGroupId;
use galley_domain::content_group::ContentGroupName;
use galley_storage::WriteTx;

use super::{PATH, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteContentGroups};
use crate::extract::body::JsonBody;
use crate::extract::fields::{known_reference, text};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::{created, idempotent};

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
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let caller = actor.caller().clone();
    let name = fields.required("name", text(ContentGroupName::parse));
    let ancestor = fields.optional("ancestor", known_reference::<ContentGroupId>("content group"));
    let named = references::group(&["ancestor"], ancestor);
    references::refuse_all(&app, actor.scope(), fields, named).await?;
    let name = name.expect("there, as nothing was refused");
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let create = async move |tx: &WriteTx<'_>| {
        let group = content_groups::create(tx, &environment, &scope, &name, ancestor).await?;
        let view = content_groups::get(tx, &scope, group.id, false).await?;
        Ok(created::created(prefer, group.id, view.group.version, &view.body())
            .with_location(PATH, group.id))
    };
    idempotent::create(&caller, "content_groups.create", key, &bytes, create).await
}
