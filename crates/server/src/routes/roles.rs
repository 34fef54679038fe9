//! `/roles`.

use galley_api_types::role::{NewRole, RoleBody, RoleChange};
use galley_application::operations::roles;
use galley_domain::RoleId;
use galley_domain::role::Role;

use crate::extract::actor::{ReadRoles, WriteRoles};
use crate::routes::prelude::*;

const PATH: &str = "/roles";

/// Get a role
#[utoipa::path(
    get, path = "/roles", operation_id = "getRole", params(("id" = schemas::RoleId, Query)),
    responses((status = 200, body = RoleBody<'_>)),
)]
pub(crate) async fn get(
    actor: Actor<ReadRoles>,
    IdQuery(id): IdQuery<RoleId>,
) -> Result<Response, Problem> {
    let role = roles::get(actor.caller(), id).await?;
    Ok(response::resource(role.version, &RoleBody::from(&role)))
}

/// List the roles
///
/// Returns the roles in the order of their creation, oldest first.
#[utoipa::path(
    get, path = "/roles/list", operation_id = "listRoles", params(IdPageParams),
    responses((status = 200, body = [RoleBody<'_>])),
)]
pub(crate) async fn list(
    actor: Actor<ReadRoles>,
    list: IdListQuery<RoleId>,
) -> Result<Response, Problem> {
    let mut roles = roles::list(actor.caller(), list.page()).await?;
    Ok(list.respond(&mut roles, |role| role.id, RoleBody::from))
}

/// Create a role
///
/// The role can have only permissions that the token has.
#[utoipa::path(
    post, path = "/roles", operation_id = "createRole", request_body = NewRole,
    responses(
        (status = 201, body = RoleBody<'_>),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "name_taken"),
    ),
)]
pub(crate) async fn create(
    actor: Actor<WriteRoles>,
    request: CreateRequest<NewRole>,
) -> Result<Response, Problem> {
    let (prefer, new, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(move |role: &Role| {
        created::created(prefer, role.id, role.version, &RoleBody::from(role))
            .with_location(PATH, role.id)
    });
    Ok(created::respond(roles::create(actor.caller(), new, request, respond).await?))
}

/// Change a role
///
/// Absent fields stay unchanged. The change applies to all later requests of the role's members.
#[utoipa::path(
    put, path = "/roles", operation_id = "updateRole", request_body = RoleChange,
    responses(
        (status = 200, body = RoleBody<'_>),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "name_taken, builtin_role"),
    ),
)]
pub(crate) async fn update(
    actor: Actor<WriteRoles>,
    request: ChangeRequest<RoleChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let role = roles::update(actor.caller(), id, change, expected).await?;
    Ok(response::updated(prefer, role.version, &RoleBody::from(&role)))
}

/// Delete an unused role
#[utoipa::path(
    delete, path = "/roles", operation_id = "deleteRole", params(("id" = schemas::RoleId, Query)),
    responses(
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "role_in_use, builtin_role"),
    ),
)]
pub(crate) async fn delete(
    actor: Actor<WriteRoles>,
    expected: VersionPrecondition,
    IdQuery(id): IdQuery<RoleId>,
) -> Result<Response, Problem> {
    roles::delete(actor.caller(), id, expected).await?;
    Ok(response::no_content())
}
