//! Members of a workspace.

use galley_domain::{RoleId, Timestamp, UserId, WorkspaceId, WorkspaceMemberId};

use crate::content_pieces::in_list_or_all;
use crate::error::Result;
use crate::tx::{Tx, WriteTx};
use crate::users::User;
use crate::value::{Value, params};

/// A member as a piece shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberProfile {
    /// Which member.
    pub id: WorkspaceMemberId,
    /// The user, if the invite is accepted.
    pub user: Option<User>,
}

/// Keeps a new member who is a user already.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: WorkspaceMemberId,
    user: UserId,
    role: RoleId,
    now: Timestamp,
) -> Result<()> {
    tx.execute(
        "INSERT INTO workspace_members (workspace_id, id, user_id, role_id, version, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, 1, ?5)",
        params![workspace, id, user, role, now],
    )
    .await?;
    Ok(())
}

/// Those of `ids` that are members of the workspace, in no particular order, and perhaps others.
pub async fn profiles(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[WorkspaceMemberId],
) -> Result<Vec<MemberProfile>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let filter = in_list_or_all("m.id", ids.iter().copied(), &mut params);
    let sql = format!(
        "SELECT m.id, u.id, u.email, u.username, u.full_name, u.avatar
         FROM workspace_members m LEFT JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = ?1{filter}"
    );
    tx.query(&sql, &params, |row| {
        let user = match row.opt_parse(1)? {
            None => None,
            Some(id) => Some(User {
                id,
                email: row.text(2)?.to_owned(),
                username: row.text(3)?.to_owned(),
                full_name: row.text(4)?.to_owned(),
                avatar: row.opt_text(5)?.map(ToOwned::to_owned),
            }),
        };
        Ok(MemberProfile { id: row.parse(0)?, user })
    })
    .await
}

/// The oldest Admin of a workspace, for whom the operator makes tokens when nobody else is named.
pub async fn find_first_admin(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
) -> Result<Option<(WorkspaceMemberId, UserId)>> {
    tx.find(
        "SELECT m.id, m.user_id FROM workspace_members m
         JOIN roles r ON r.workspace_id = m.workspace_id AND r.id = m.role_id
         WHERE m.workspace_id = ?1 AND m.user_id IS NOT NULL AND r.base_type = 'admin'
         ORDER BY m.id LIMIT 1",
        params![workspace],
        |row| Ok((row.parse(0)?, row.parse(1)?)),
    )
    .await
}
