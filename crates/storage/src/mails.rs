//! Mails that are still to be sent. What they say is encrypted by whoever keeps them here.

use galley_domain::{MailId, Timestamp, WorkspaceId, WorkspaceMemberId};

use crate::error::Result;
use crate::tx::{Tx, WriteTx};
use crate::value::params;

/// A mail to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Which one.
    pub id: MailId,
    /// What kind of mail it is.
    pub kind: String,
    /// Whom it is about.
    pub member: Option<WorkspaceMemberId>,
    /// The address that it goes to.
    pub recipient: String,
    /// What it says, encrypted.
    pub sealed: Vec<u8>,
}

/// Keeps a mail, to be sent at once.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    mail: &Mail,
    now: Timestamp,
) -> Result<()> {
    tx.execute(
        "INSERT INTO mails (workspace_id, id, kind, member_id, recipient, sealed, created_at_ms,
            due_at_ms, attempts)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, 0)",
        params![
            workspace,
            mail.id,
            &mail.kind,
            mail.member,
            &mail.recipient,
            mail.sealed.as_slice(),
            now
        ],
    )
    .await?;
    Ok(())
}

/// The mails about a member that are still to be sent, the oldest first.
pub async fn list_of_member(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
) -> Result<Vec<Mail>> {
    tx.query(
        "SELECT id, kind, member_id, recipient, sealed FROM mails
         WHERE workspace_id = ?1 AND member_id = ?2 ORDER BY id",
        params![workspace, member],
        |row| {
            Ok(Mail {
                id: row.parse(0)?,
                kind: row.text(1)?.to_owned(),
                member: row.opt_parse(2)?,
                recipient: row.text(3)?.to_owned(),
                sealed: row.bytes(4)?,
            })
        },
    )
    .await
}

/// Takes back the mails about a member that are still to be sent.
pub async fn delete_of_member(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
) -> Result<()> {
    let sql = "DELETE FROM mails WHERE workspace_id = ?1 AND member_id = ?2";
    tx.execute(sql, params![workspace, member]).await?;
    Ok(())
}
