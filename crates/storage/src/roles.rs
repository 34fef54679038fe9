//! Roles: named sets of permissions.

use galley_domain::role::BuiltinRole;
use galley_domain::{RoleId, Timestamp, WorkspaceId};

use crate::error::Result;
use crate::tx::WriteTx;
use crate::value::params;

/// Keeps one of the roles that every workspace starts with.
pub async fn insert_builtin(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: RoleId,
    role: &BuiltinRole,
    now: Timestamp,
) -> Result<()> {
    tx.execute(
        "INSERT INTO roles (workspace_id, id, name, description, permissions, base_type, version,
            created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7)",
        params![
            workspace,
            id,
            role.name,
            role.description,
            role.permissions,
            role.base_type.map(galley_domain::role::BaseType::as_str),
            now
        ],
    )
    .await?;
    Ok(())
}
