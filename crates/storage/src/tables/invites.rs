//! Invites. Their codes are not stored, only the SHA-256 of each.

use galley_domain::{RoleId, Timestamp, UserId, WorkspaceId, WorkspaceMemberId};

use crate::engine::{Affects, Result, Tx, WriteTx, params, read_row};

/// An invite, as found by its code's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invite {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The invited member.
    pub member: WorkspaceMemberId,
    /// The inviting user; `None` for invites from before this was stored.
    pub inviter: Option<UserId>,
    /// The time at which the code expires.
    pub expires_at: Timestamp,
    /// The time at which it was used or revoked.
    pub ended_at: Option<Timestamp>,
    /// True if the inviter copied the code. A mailed code proves the address.
    pub is_copied: bool,
}

/// Inserts a new invite by its code's hash.
pub async fn insert(
    tx: &WriteTx<'_>,
    hash: &[u8; 32],
    invite: &Invite,
    now: Timestamp,
) -> Result<()> {
    let sql = "INSERT INTO invites (code_hash, workspace_id, member_id, inviter_id, created_at_ms,
            expires_at_ms, is_copied)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    tx.change(
        sql,
        params! {
            hash, invite.workspace, invite.member, invite.inviter, now, invite.expires_at,
            invite.is_copied
        },
        Affects::Nothing,
    )
    .await
}

/// Finds the invite whose code has this hash, in any workspace: the invited person has nothing but
/// the code.
pub async fn find(tx: &Tx<'_>, hash: &[u8; 32]) -> Result<Option<Invite>> {
    let sql = "SELECT workspace_id, member_id, inviter_id, expires_at_ms, ended_at_ms, is_copied
        FROM invites WHERE code_hash = ?1";
    tx.find(sql, params![hash], |row| {
        Ok(read_row!(row, 0 => Invite {
            workspace, member, inviter, expires_at, ended_at, is_copied
        }))
    })
    .await
}

/// Returns true if the member has a valid code.
pub async fn has_valid_code(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
    now: Timestamp,
) -> Result<bool> {
    let sql =
        "SELECT 1 FROM invites WHERE workspace_id = ?1 AND member_id = ?2 AND expires_at_ms > ?3
         AND ended_at_ms IS NULL LIMIT 1";
    tx.exists(sql, params![workspace, member, now]).await
}

/// Lists the invited members whom `inviter` has invited since `since`, and who have not accepted.
pub async fn list_pending_by(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    inviter: UserId,
    since: Timestamp,
) -> Result<Vec<WorkspaceMemberId>> {
    let sql = "SELECT member_id FROM invites WHERE workspace_id = ?1 AND created_at_ms > ?2
        AND inviter_id = ?3 AND ended_at_ms IS NULL ORDER BY created_at_ms";
    tx.query(sql, params![workspace, since, inviter], |row| row.get(0)).await
}

/// Lists the invited members whom members with this role have invited since `since`, and who have
/// not accepted.
pub async fn list_pending_by_role(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    role: RoleId,
    since: Timestamp,
) -> Result<Vec<WorkspaceMemberId>> {
    let sql = "SELECT i.member_id FROM invites i
            JOIN workspace_members m ON m.workspace_id = ?1 AND m.user_id = i.inviter_id
        WHERE i.workspace_id = ?1 AND i.created_at_ms > ?2 AND i.ended_at_ms IS NULL
            AND m.role_id = ?3 ORDER BY i.created_at_ms";
    tx.query(sql, params![workspace, since, role], |row| row.get(0)).await
}

/// Revokes all codes of a member.
pub async fn revoke(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
    now: Timestamp,
) -> Result<()> {
    let sql = "UPDATE invites SET ended_at_ms = ?3
        WHERE workspace_id = ?1 AND member_id = ?2 AND ended_at_ms IS NULL";
    tx.change(sql, params![workspace, member, now], Affects::Nothing).await
}

/// Returns the time of the workspace's `nth` latest invite since `since`, if there were as many.
pub async fn nth_latest(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    since: Timestamp,
    nth: i64,
) -> Result<Option<Timestamp>> {
    let sql = "SELECT created_at_ms FROM invites WHERE workspace_id = ?1 AND created_at_ms > ?2
        ORDER BY created_at_ms DESC LIMIT 1 OFFSET ?3";
    tx.find(sql, params![workspace, since, nth - 1], |row| row.get(0)).await
}
