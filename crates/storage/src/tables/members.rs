//! Members of a workspace, and invites that are not accepted yet.
//!
//! A transaction that changes members or their roles locks the workspace first
//! ([`crate::tables::workspaces::lock`]).

use galley_domain::people::EmailAddress;
use galley_domain::role::Role;
use galley_domain::workspace::Workspace;
use galley_domain::{RoleId, Timestamp, UserId, WorkspaceId, WorkspaceMemberId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list_or_all, params};
use crate::tables::paging::IdPage;
use crate::tables::roles;
use crate::tables::users::{self, User};
use crate::tables::workspaces;

/// A member, or an invited one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The id.
    pub id: WorkspaceMemberId,
    /// The user, if the invite is accepted.
    pub user: Option<User>,
    /// The role.
    pub role: RoleId,
    /// The address that the invite was sent to.
    pub invited_email: Option<String>,
    /// The name in the invite.
    pub invited_name: Option<String>,
    /// The version, incremented by each change.
    pub version: i64,
}

/// A member as shown with a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberProfile {
    /// The id.
    pub id: WorkspaceMemberId,
    /// The user, if the invite is accepted.
    pub user: Option<User>,
}

/// A user's membership in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The member's id.
    pub id: WorkspaceMemberId,
    /// The workspace.
    pub workspace: Workspace,
    /// The role.
    pub role: Role,
}

const COLUMNS: &str = "m.id, m.role_id, m.invited_email, m.invited_name, m.version";

/// The first column of the user.
const USER: usize = 5;

fn read(row: &Row<'_>) -> Result<Member> {
    Ok(Member {
        id: row.get(0)?,
        role: row.get(1)?,
        invited_email: row.get(2)?,
        invited_name: row.get(3)?,
        version: row.get(4)?,
        user: users::read(row, USER)?,
    })
}

fn select(condition: &str) -> String {
    format!(
        "SELECT {COLUMNS}, {} FROM workspace_members m LEFT JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = ?1 AND {condition}",
        users::COLUMNS
    )
}

/// Inserts a new member.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: &Member,
    now: Timestamp,
) -> Result<()> {
    let sql = "INSERT INTO workspace_members (workspace_id, id, user_id, role_id, invited_email,
            invited_email_key, invited_name, version, created_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    tx.change(
        sql,
        params! {
            workspace, member.id, member.user.as_ref().map(|user| user.id), member.role,
            &member.invited_email,
            member.invited_email.as_deref().map(|email| EmailAddress::from_stored(email).key()),
            &member.invited_name, member.version, now
        },
        Affects::Access(workspace),
    )
    .await
}

/// Updates a member's role, invited address and name, and version.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, member: &Member) -> Result<()> {
    let sql = "UPDATE workspace_members SET role_id = ?3, invited_email = ?4, invited_name = ?5,
            version = ?6
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(
        sql,
        params! {
            workspace, member.id, member.role, &member.invited_email, &member.invited_name,
            member.version
        },
        Affects::Access(workspace),
    )
    .await
}

/// Sets the user of an invited member.
pub async fn join(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: WorkspaceMemberId,
    user: UserId,
    version: i64,
) -> Result<()> {
    let sql = "UPDATE workspace_members SET user_id = ?3, version = ?4
        WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id, user, version], Affects::Access(workspace)).await
}

/// Deletes a member that no piece refers to.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: WorkspaceMemberId) -> Result<()> {
    let sql = "DELETE FROM workspace_members WHERE workspace_id = ?1 AND id = ?2";
    tx.change(sql, params![workspace, id], Affects::Access(workspace)).await
}

/// Finds a member.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: WorkspaceMemberId,
) -> Result<Option<Member>> {
    tx.find(&select("m.id = ?2"), params![workspace, id], read).await
}

/// Finds the member of this user.
pub async fn find_by_user(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Member>> {
    tx.find(&select("m.user_id = ?2"), params![workspace, user], read).await
}

/// Finds the invite to this address that is not accepted yet.
pub async fn find_pending(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    email: &EmailAddress,
) -> Result<Option<Member>> {
    let sql = select("m.invited_email_key = ?2 AND m.user_id IS NULL");
    tx.find(&sql, params![workspace, email.key()], read).await
}

/// Lists members by creation.
pub async fn list(tx: &Tx<'_>, workspace: WorkspaceId, page: &IdPage) -> Result<Vec<Member>> {
    let sql = select("m.id > ?2 ORDER BY m.id LIMIT ?3 OFFSET ?4");
    tx.query(&sql, &page.params(workspace), read).await
}

/// Lists a user's memberships in all workspaces, by workspace.
pub async fn of_user(tx: &Tx<'_>, user: UserId, page: &IdPage) -> Result<Vec<Membership>> {
    let sql = format!(
        "SELECT m.id, {}, {} FROM workspace_members m
         JOIN workspaces w ON w.id = m.workspace_id
         JOIN roles r ON r.workspace_id = m.workspace_id AND r.id = m.role_id
         WHERE m.user_id = ?1 AND m.workspace_id > ?2
         ORDER BY m.workspace_id LIMIT ?3 OFFSET ?4",
        workspaces::COLUMNS,
        roles::COLUMNS
    );
    tx.query(&sql, &page.params(user), |row| {
        Ok(Membership {
            id: row.get(0)?,
            workspace: workspaces::read(row, 1)?,
            role: roles::read(row, 12)?,
        })
    })
    .await
}

/// Returns the first workspace of a user.
pub async fn first_workspace(tx: &Tx<'_>, user: UserId) -> Result<Option<WorkspaceId>> {
    let sql = "SELECT m.workspace_id FROM workspace_members m WHERE m.user_id = ?1
        ORDER BY m.workspace_id LIMIT 1";
    tx.find(sql, params![user], |row| row.get(0)).await
}

/// Returns those of `ids` that are members of the workspace, in any order, and possibly others.
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
        "SELECT m.id, {} FROM workspace_members m LEFT JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = ?1{filter}",
        users::COLUMNS
    );
    tx.query(&sql, &params, |row| Ok(MemberProfile { id: row.get(0)?, user: users::read(row, 1)? }))
        .await
}

/// Finds the oldest Admin of a workspace, the default user for tokens that the operator creates.
pub async fn find_first_admin(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
) -> Result<Option<(WorkspaceMemberId, UserId)>> {
    let sql = "SELECT m.id, m.user_id FROM workspace_members m
        JOIN roles r ON r.workspace_id = m.workspace_id AND r.id = m.role_id
        WHERE m.workspace_id = ?1 AND m.user_id IS NOT NULL AND r.base_type = 'admin'
        ORDER BY m.id LIMIT 1";
    tx.find(sql, params![workspace], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Lists the Admins of a workspace with their addresses, at most 1,000.
pub async fn list_admin_addresses(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
) -> Result<Vec<(WorkspaceMemberId, String)>> {
    let sql = "SELECT m.id, u.email FROM roles r
        JOIN workspace_members m ON m.workspace_id = r.workspace_id AND m.role_id = r.id
        JOIN users u ON u.id = m.user_id
        WHERE r.workspace_id = ?1 AND r.base_type = 'admin' LIMIT 1000";
    tx.query(sql, params![workspace], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Returns true if a member other than `id` is an Admin, invited ones excluded.
pub async fn has_other_admin(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: WorkspaceMemberId,
) -> Result<bool> {
    let sql = "SELECT 1 FROM roles r
        JOIN workspace_members m ON m.workspace_id = r.workspace_id AND m.role_id = r.id
        WHERE r.workspace_id = ?1 AND r.base_type = 'admin' AND m.user_id IS NOT NULL
            AND m.id <> ?2 LIMIT 1";
    tx.exists(sql, params![workspace, id]).await
}
