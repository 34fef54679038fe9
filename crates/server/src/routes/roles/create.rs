//! `POST /roles`

use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_application::Respond;
use galley_application::operations::roles::{self, NewRole};
use galley_domain::role::{Role, RoleName};
use galley_domain::text::ShortText;

use super::{PATH, schema};
use crate::extract::actor::{Actor, WriteRoles};
use crate::extract::body::JsonBody;
use crate::extract::fields::{permissions, text};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::created;

/// Create a role
///
/// The role can have only permissions that the token has.
#[utoipa::path(
    post,
    path = "/roles",
    operation_id = "createRole",
    request_body = schema::NewRoleSchema,
    responses(
        (status = 201, body = RoleBody<'_>),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "name_taken"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteRoles>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let name = fields.required("name", text(RoleName::parse));
    let description = fields.optional("description", text(ShortText::parse));
    let permissions = fields.required("permissions", permissions).unwrap_or_default();
    let name = fields.finish_with(name)?;
    let new = NewRole { name, description, permissions };
    let respond = Respond::new(move |role: &Role| {
        created::created(prefer, role.id, role.version, &RoleBody::from(role))
            .with_location(PATH, role.id)
    });
    let response = roles::create(actor.caller(), new, key.for_body(&bytes), respond).await?;
    Ok(created::respond(response))
}
