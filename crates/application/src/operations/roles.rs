//! Creation, update and deletion of roles. They emit no events.

use galley_domain::permission::Resource;
use galley_domain::role::{Role, RoleName};
use galley_domain::text::ShortText;
use galley_domain::{Permission, PermissionSet, RoleId};
use galley_storage::tokens::Authentication;
use galley_storage::{Error as StorageError, UniqueKey, WriteTx, roles};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::authority::Authority;
use crate::operations::members;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};

/// A role to create.
#[derive(Debug, Clone)]
pub struct NewRole {
    /// Its name.
    pub name: RoleName,
    /// The description, one sentence.
    pub description: Option<ShortText>,
    /// The permissions.
    pub permissions: PermissionSet,
}

/// An update of a role.
#[derive(Debug, Clone)]
pub struct RoleUpdate {
    /// The role.
    pub id: RoleId,
    /// The name.
    pub name: Option<RoleName>,
    /// The description, one sentence.
    pub description: Option<Option<ShortText>>,
    /// The permissions.
    pub permissions: Option<PermissionSet>,
}

async fn authority(
    tx: &WriteTx<'_>,
    environment: &Environment,
    actor: &Authentication,
) -> Result<Authority, Error> {
    let needed = Permission::write(Resource::Roles);
    let authority = Authority::with_permission(tx, environment, actor, needed).await?;
    // A member with the role may see all content.
    authority.require_all_groups()?;
    Ok(authority)
}

/// Creates a role.
pub async fn create(
    tx: &WriteTx<'_>,
    environment: &Environment,
    actor: &Authentication,
    new: &NewRole,
) -> Result<Role, Error> {
    let authority = authority(tx, environment, actor).await?;
    authority.require_permissions(new.permissions)?;
    authority.require_no_expiry()?;
    let role = Role {
        id: RoleId::new(environment.new_id()),
        name: new.name.clone(),
        description: new.description.clone(),
        permissions: new.permissions,
        base_type: None,
        version: 1,
    };
    let inserted = roles::insert(tx, actor.workspace, &role, environment.now()).await;
    inserted.map_err(name_taken)?;
    Ok(role)
}

/// Updates a role. The update applies to every later request of its members.
pub async fn update(
    tx: &WriteTx<'_>,
    environment: &Environment,
    actor: &Authentication,
    update: &RoleUpdate,
    expected: &VersionPrecondition,
) -> Result<Role, Error> {
    let authority = authority(tx, environment, actor).await?;
    let before = find(tx, actor, update.id).await?;
    expected.check_version(before.version)?;
    let mut role = before.clone();
    role.name = update.name.clone().unwrap_or(role.name);
    role.description = update.description.clone().unwrap_or(role.description);
    role.permissions = update.permissions.unwrap_or(role.permissions);
    if role == before {
        return Ok(before);
    }
    check_not_builtin(&before)?;
    authority.require_permissions(before.permissions)?;
    authority.require_permissions(role.permissions)?;
    if !before.permissions.includes(role.permissions) {
        authority.require_no_expiry()?;
    }
    role.version += 1;
    roles::update(tx, actor.workspace, &role).await.map_err(name_taken)?;
    if !role.includes(&before) {
        members::void_invites_of_role(tx, actor.workspace, role.id, environment.now()).await?;
    }
    Ok(role)
}

/// Deletes a role that no member or invite has.
pub async fn delete(
    tx: &WriteTx<'_>,
    environment: &Environment,
    actor: &Authentication,
    id: RoleId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let authority = authority(tx, environment, actor).await?;
    let role = find(tx, actor, id).await?;
    expected.check_version(role.version)?;
    authority.require_permissions(role.permissions)?;
    check_not_builtin(&role)?;
    if roles::is_in_use(tx, actor.workspace, id).await? {
        let detail = "members or invites have this role: assign another one to them first";
        return Err(Rejection::new(Reason::RoleInUse, detail).into());
    }
    roles::delete(tx, actor.workspace, id).await?;
    Ok(())
}

async fn find(tx: &WriteTx<'_>, actor: &Authentication, id: RoleId) -> Result<Role, Error> {
    roles::find(tx, actor.workspace, id).await?.ok_or_else(Error::not_found)
}

fn check_not_builtin(role: &Role) -> Result<(), Error> {
    if !role.is_admin() {
        return Ok(());
    }
    let detail = "the role Admin can't be changed or deleted";
    Err(Rejection::new(Reason::BuiltinRole, detail).into())
}

fn name_taken(error: StorageError) -> Error {
    match error {
        StorageError::Taken(UniqueKey::RoleName) => {
            Rejection::new(Reason::NameTaken, "another role of the workspace has this name").into()
        }
        other => other.into(),
    }
}
