//! Roles. Their changes emit no events.

use galley_api_types::role::{NewRole, RoleBody, RoleChange};
use galley_domain::audit::AuditAction;
use galley_domain::permission::Resource;
use galley_domain::role::Role;
use galley_domain::{Permission, RoleId, WorkspaceId};
use galley_storage::{Error as StorageError, IdPage, Tx, UniqueKey, WriteTx, roles};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::authority::Authority;
use crate::operations::invite_revocation;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};

async fn authority(tx: &WriteTx<'_>, caller: &Caller) -> Result<Authority, Error> {
    let needed = Permission::write(Resource::Roles);
    let authority =
        Authority::with_permission(tx, caller.environment(), caller.token(), needed).await?;
    // A member with the role may see all content.
    authority.require_all_content()?;
    Ok(authority)
}

/// Returns a role.
pub async fn get(caller: &Caller, id: RoleId) -> Result<Role, Error> {
    let workspace = caller.workspace();
    caller.read("roles.get", async move |tx: &Tx<'_>| find(tx, workspace, id).await).await
}

/// Lists the roles of the workspace.
pub async fn list(caller: &Caller, page: IdPage) -> Result<Vec<Role>, Error> {
    let workspace = caller.workspace();
    let read = async move |tx: &Tx<'_>| Ok(roles::list(tx, workspace, &page).await?);
    caller.read("roles.list", read).await
}

/// Creates a role.
pub async fn create(
    caller: &Caller,
    new: NewRole,
    request: IdempotentRequest,
    respond: Respond<Role>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let create = async move |tx: &WriteTx<'_>| {
        let authority = authority(tx, &own).await?;
        authority.require_permissions(new.permissions)?;
        authority.require_no_expiry()?;
        let role = Role {
            id: RoleId::new(own.environment().new_id()),
            name: new.name.clone(),
            description: new.description.clone(),
            permissions: new.permissions,
            base_type: None,
            version: 1,
        };
        let inserted = roles::insert(tx, own.workspace(), &role, own.environment().now()).await;
        inserted.map_err(name_taken)?;
        let changes = AuditChanges::created(RoleBody::from(&role));
        own.record(tx, AuditAction::RoleCreate, role.id, changes);
        Ok(role)
    };
    idempotency::create(caller, "roles.create", request, None, create, respond).await
}

/// Updates a role. The update applies to every later request of its members.
pub async fn update(
    caller: &Caller,
    id: RoleId,
    change: RoleChange,
    expected: VersionPrecondition,
) -> Result<Role, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| update_in(tx, &own, id, &change, &expected).await;
    caller.write("roles.update", write).await
}

async fn update_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: RoleId,
    change: &RoleChange,
    expected: &VersionPrecondition,
) -> Result<Role, Error> {
    let authority = authority(tx, caller).await?;
    let workspace = caller.workspace();
    let before = find(tx, workspace, id).await?;
    expected.check_version(before.version)?;
    let mut role = before.clone();
    role.name = change.name.clone().unwrap_or(role.name);
    role.description = change.description.clone().unwrap_or(role.description);
    role.permissions = change.permissions.unwrap_or(role.permissions);
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
    roles::update(tx, workspace, &role).await.map_err(name_taken)?;
    let changes = AuditChanges::updated(RoleBody::from(&before), RoleBody::from(&role));
    caller.record(tx, AuditAction::RoleUpdate, id, changes);
    if !role.includes(&before) {
        invite_revocation::revoke_invites_of_role(
            tx,
            workspace,
            role.id,
            caller.environment().now(),
        )
        .await?;
    }
    Ok(role)
}

/// Deletes a role that no member or invite has.
pub async fn delete(
    caller: &Caller,
    id: RoleId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let authority = authority(tx, &own).await?;
        let workspace = own.workspace();
        let role = find(tx, workspace, id).await?;
        expected.check_version(role.version)?;
        authority.require_permissions(role.permissions)?;
        check_not_builtin(&role)?;
        if roles::is_in_use(tx, workspace, id).await? {
            let detail = "members or invites have this role: assign another one to them first";
            return Err(Rejection::new(Reason::RoleInUse, detail).into());
        }
        roles::delete(tx, workspace, id).await?;
        own.record(tx, AuditAction::RoleDelete, id, AuditChanges::deleted(RoleBody::from(&role)));
        Ok(())
    };
    caller.write("roles.delete", write).await
}

async fn find(tx: &Tx<'_>, workspace: WorkspaceId, id: RoleId) -> Result<Role, Error> {
    roles::find(tx, workspace, id).await?.ok_or_else(Error::not_found)
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
