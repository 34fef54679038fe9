//! Revocation of pending invites.

use galley_domain::{RoleId, Timestamp, UserId, WorkspaceId, WorkspaceMemberId};
use galley_storage::WriteTx;
use galley_storage::invites;
use galley_storage::mails;

use crate::error::Error;

/// The validity of an invite.
pub(super) const INVITE_VALIDITY_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// Revokes a member's codes, and deletes the queued mails that contain them.
pub async fn revoke_invites(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
    now: Timestamp,
) -> Result<(), Error> {
    invites::revoke(tx, workspace, member, now).await?;
    mails::delete_of_member(tx, workspace, member).await?;
    Ok(())
}

/// Revokes the pending invites of an inviter whose permissions were reduced.
pub(super) async fn revoke_invites_of_inviter(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    inviter: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    let since = Timestamp::from_ms(now.ms() - INVITE_VALIDITY_MS);
    let open = invites::list_pending_by(tx, workspace, inviter, since).await?;
    revoke_all_invites(tx, workspace, open, now).await
}

/// Revokes the pending invites of all members with a role, after its permissions were reduced.
pub async fn revoke_invites_of_role(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    role: RoleId,
    now: Timestamp,
) -> Result<(), Error> {
    let since = Timestamp::from_ms(now.ms() - INVITE_VALIDITY_MS);
    let open = invites::list_pending_by_role(tx, workspace, role, since).await?;
    revoke_all_invites(tx, workspace, open, now).await
}

async fn revoke_all_invites(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    members: Vec<WorkspaceMemberId>,
    now: Timestamp,
) -> Result<(), Error> {
    for member in members {
        revoke_invites(tx, workspace, member, now).await?;
    }
    Ok(())
}
