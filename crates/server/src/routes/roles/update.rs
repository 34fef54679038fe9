//! `PUT /roles`

use axum::response::Response;
use galley_api_types::role::RoleBody;
use galley_application::VersionPrecondition;
use galley_application::operations::roles::{self, RoleUpdate};
use galley_domain::RoleId;
use galley_domain::role::RoleName;
use galley_domain::text::ShortText;

use super::schema;
use crate::extract::actor::{Actor, WriteRoles};
use crate::extract::body::JsonBody;
use crate::extract::fields::{permissions, reference, text};
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::response;

/// Change a role
///
/// Absent fields stay unchanged. The change applies to all later requests of the role's members.
#[utoipa::path(
    put,
    path = "/roles",
    operation_id = "updateRole",
    request_body = schema::RoleChange,
    responses(
        (status = 200, body = RoleBody<'_>),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "name_taken, builtin_role"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteRoles>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<RoleId>).flatten());
    let name = fields.replacement("name", text(RoleName::parse));
    let description = fields.clearable("description", text(ShortText::parse));
    let permissions = fields.replacement("permissions", permissions);
    fields.finish()?;
    let update = RoleUpdate { id: id.get()?, name, description, permissions };
    let role = roles::update(actor.caller(), update, expected).await?;
    Ok(response::updated(prefer, role.version, &RoleBody::from(&role)))
}
