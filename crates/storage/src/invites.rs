//! The codes of invites. Their text is not kept, only its SHA-256.

use galley_domain::{Timestamp, WorkspaceId, WorkspaceMemberId};

use crate::error::Result;
use crate::tx::{Tx, WriteTx};
use crate::value::params;

/// Keeps a code by its hash.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
    hash: &[u8; 32],
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    tx.execute(
        "INSERT INTO invites (code_hash, workspace_id, member_id, created_at_ms, expires_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![hash.as_slice(), workspace, member, now, expires_at],
    )
    .await?;
    Ok(())
}

/// Whether the member has a code that still works.
pub async fn is_open(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
    now: Timestamp,
) -> Result<bool> {
    tx.exists(
        "SELECT 1 FROM invites WHERE workspace_id = ?1 AND member_id = ?2 AND expires_at_ms > ?3
            AND ended_at_ms IS NULL LIMIT 1",
        params![workspace, member, now],
    )
    .await
}

/// Makes all of a member's codes void.
pub async fn end(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
    now: Timestamp,
) -> Result<()> {
    tx.execute(
        "UPDATE invites SET ended_at_ms = ?3
         WHERE workspace_id = ?1 AND member_id = ?2 AND ended_at_ms IS NULL",
        params![workspace, member, now],
    )
    .await?;
    Ok(())
}

/// When the workspace's `nth` latest invite since `since` was made, if there were so many.
pub async fn nth_latest(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    since: Timestamp,
    nth: i64,
) -> Result<Option<Timestamp>> {
    tx.find(
        "SELECT created_at_ms FROM invites WHERE workspace_id = ?1 AND created_at_ms > ?2
         ORDER BY created_at_ms DESC LIMIT 1 OFFSET ?3",
        params![workspace, since, nth - 1],
        |row| row.time(0),
    )
    .await
}
