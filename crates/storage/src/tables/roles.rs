//! Roles: named sets of permissions.

use galley_domain::role::Role;
use galley_domain::{RoleId, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, WriteTx, params, read_row};
use crate::tables::paging::IdPage;

/// The columns of the table `r` that [`read`] reads.
pub(crate) const COLUMNS: &str =
    "r.id, r.name, r.description, r.permissions, r.base_type, r.version";

/// Reads a role whose columns start at `first`.
pub(crate) fn read(row: &Row<'_>, first: usize) -> Result<Role> {
    Ok(read_row!(row, first => Role { id, name, description, permissions, base_type, version }))
}

/// Finds a role.
pub async fn find(tx: &Tx<'_>, workspace: WorkspaceId, id: RoleId) -> Result<Option<Role>> {
    let sql = format!("SELECT {COLUMNS} FROM roles r WHERE r.workspace_id = ?1 AND r.id = ?2");
    tx.find(&sql, params![workspace, id], |row| read(row, 0)).await
}

/// Lists roles by creation.
pub async fn list(tx: &Tx<'_>, workspace: WorkspaceId, page: &IdPage) -> Result<Vec<Role>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM roles r WHERE r.workspace_id = ?1 AND r.id > ?2
         ORDER BY r.id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &page.params(workspace), |row| read(row, 0)).await
}

/// Inserts a new role.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    role: &Role,
    now: Timestamp,
) -> Result<()> {
    let sql =
        "INSERT INTO roles (workspace_id, id, name, description, permissions, base_type, version,
            created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    tx.change(
        sql,
        params! {
            workspace, role.id, &role.name, &role.description, role.permissions, role.base_type,
            role.version, now
        },
        Affects::Access(workspace),
    )
    .await
}

/// Updates a role.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, role: &Role) -> Result<()> {
    let sql = "UPDATE roles SET name = ?3, description = ?4, permissions = ?5, version = ?6
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(
        sql,
        params![workspace, role.id, &role.name, &role.description, role.permissions, role.version],
        Affects::Access(workspace),
    )
    .await
}

/// Returns true if a member or an invite has the role.
pub async fn is_in_use(tx: &Tx<'_>, workspace: WorkspaceId, id: RoleId) -> Result<bool> {
    let sql = "SELECT 1 FROM workspace_members WHERE workspace_id = ?1 AND role_id = ?2 LIMIT 1";
    tx.exists(sql, params![workspace, id]).await
}

/// Deletes a role that is not in use.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: RoleId) -> Result<()> {
    let sql = "DELETE FROM roles WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id], Affects::Access(workspace)).await
}
