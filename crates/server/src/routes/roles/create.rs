//! `POST /roles`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_application::operations::roles::{self, NewRole};
use galley_domain::role::RoleName;
use galley_domain::text::ShortText;
use galley_storage::WriteTx;

use super::{PATH, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteRoles};
use crate::extract::body::JsonBody;
use crate::extract::fields::{permissions, text};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::idempotent;
use crate::respond::response::CreatedResponse;

/// Create a role
///
/// The role can have only permissions that the token has.
#[utoipa::path(
    post,
    path = "/roles",
    operation_id = "createRole",
    request_body = schema::NewRole,
    responses(
        (status = 201, body = RoleBody<'_>),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "name_taken"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteRoles>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let name = fields.required("name", text(RoleName::parse));
    let description = fields.optional("description", text(ShortText::parse));
    let permissions = fields.required("permissions", permissions).unwrap_or_default();
    fields.finish()?;
    let name = name.expect("there, as nothing was refused");
    let new = NewRole { name, description, permissions };
    let (authentication, environment) = (actor.into_authentication(), app.environment().clone());
    let caller = authentication.clone();
    let create = async move |tx: &WriteTx<'_>| {
        let role = roles::create(tx, &environment, &caller, &new).await?;
        Ok(CreatedResponse::new(prefer, role.id, role.version, &RoleBody::from(&role))
            .with_location(PATH, role.id))
    };
    idempotent::create(&app, "roles.create", &authentication, key, &bytes, create).await
}
