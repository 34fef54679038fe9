//! Mails that are still to be sent, and those that could not be. What they say is encrypted by whoever
//! keeps them here.
//!
//! Who sends a mail leases it, which puts its next attempt off: should the program end meanwhile, the mail is
//! sent again then. Its number of attempts is what a lease is known by.

use galley_domain::{MailId, Timestamp, WorkspaceId, WorkspaceMemberId};

use crate::engine::error::Result;
use crate::engine::row::Row;
use crate::engine::transaction::{Tx, WriteTx};
use crate::engine::value::params;

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
        read,
    )
    .await
}

fn read(row: &Row<'_>) -> Result<Mail> {
    Ok(Mail {
        id: row.parse(0)?,
        kind: row.text(1)?.to_owned(),
        member: row.opt_parse(2)?,
        recipient: row.text(3)?.to_owned(),
        sealed: row.bytes(4)?,
    })
}

/// A mail that somebody sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedMail {
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// The mail.
    pub mail: Mail,
    /// When it was written.
    pub created_at: Timestamp,
    /// How often it was attempted, with this time.
    pub attempts: i64,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailOutcome {
    /// It is sent.
    Sent,
    /// It is tried again at this time; why it could not be sent.
    Postponed(Timestamp, String),
    /// It is not tried again; why it could not be sent.
    GivenUp(String),
}

/// Whether a mail is due.
pub async fn is_any_due(tx: &Tx<'_>, now: Timestamp) -> Result<bool> {
    let sql = "SELECT 1 FROM mails WHERE failed_at_ms IS NULL AND due_at_ms <= ?1 LIMIT 1";
    tx.exists(sql, params![now]).await
}

/// Leases the mails that are due, the one that waits longest first; until `until` nobody else gets them.
pub async fn lease(
    tx: &WriteTx<'_>,
    now: Timestamp,
    until: Timestamp,
    max: i64,
) -> Result<Vec<LeasedMail>> {
    let sql = format!(
        "SELECT id, kind, member_id, recipient, sealed, workspace_id, created_at_ms, attempts
         FROM mails WHERE failed_at_ms IS NULL AND due_at_ms <= ?1
         ORDER BY due_at_ms LIMIT ?2{}",
        tx.for_update_skip_locked()
    );
    let leased = tx
        .query(&sql, params![now, max], |row| {
            Ok(LeasedMail {
                mail: read(row)?,
                workspace: row.parse(5)?,
                created_at: row.time(6)?,
                attempts: row.int(7)? + 1,
            })
        })
        .await?;
    for one in &leased {
        tx.execute(
            "UPDATE mails SET due_at_ms = ?3, attempts = ?4 WHERE workspace_id = ?1 AND id = ?2",
            params![one.workspace, one.mail.id, until, one.attempts],
        )
        .await?;
    }
    Ok(leased)
}

/// Keeps what came of a leased mail's attempt. Nothing, if the mail was taken back or leased again meanwhile.
pub async fn settle(
    tx: &WriteTx<'_>,
    leased: &LeasedMail,
    outcome: &MailOutcome,
    now: Timestamp,
) -> Result<()> {
    let which = "workspace_id = ?1 AND id = ?2 AND attempts = ?3";
    let (workspace, id, attempts) = (leased.workspace, leased.mail.id, leased.attempts);
    match outcome {
        MailOutcome::Sent => {
            let sql = format!("DELETE FROM mails WHERE {which}");
            tx.execute(&sql, params![workspace, id, attempts]).await?;
        }
        MailOutcome::Postponed(due, why) => {
            let sql = format!("UPDATE mails SET due_at_ms = ?4, last_error = ?5 WHERE {which}");
            tx.execute(&sql, params![workspace, id, attempts, *due, why]).await?;
        }
        MailOutcome::GivenUp(why) => {
            let sql = format!("UPDATE mails SET failed_at_ms = ?4, last_error = ?5 WHERE {which}");
            tx.execute(&sql, params![workspace, id, attempts, now, why]).await?;
        }
    }
    Ok(())
}

/// A mail that could not be sent so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TroubledMail {
    /// Whom it is about.
    pub member: Option<WorkspaceMemberId>,
    /// Why it could not be sent.
    pub error: String,
    /// Whether it was given up.
    pub is_given_up: bool,
}

/// The mails of a workspace that could not be sent so far, the oldest first; of very many, some.
pub async fn list_troubled(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Vec<TroubledMail>> {
    tx.query(
        "SELECT member_id, last_error, failed_at_ms FROM mails
         WHERE workspace_id = ?1 AND last_error IS NOT NULL ORDER BY id LIMIT 1000",
        params![workspace],
        |row| {
            Ok(TroubledMail {
                member: row.opt_parse(0)?,
                error: row.text(1)?.to_owned(),
                is_given_up: row.opt_time(2)?.is_some(),
            })
        },
    )
    .await
}

/// How many mails are still to be sent, and how many were given up.
pub async fn counts(tx: &Tx<'_>) -> Result<(i64, i64)> {
    tx.get(
        "SELECT (SELECT COUNT(*) FROM mails WHERE failed_at_ms IS NULL AND due_at_ms >= 0),
            (SELECT COUNT(*) FROM mails WHERE failed_at_ms IS NOT NULL)",
        &[],
        |row| Ok((row.int(0)?, row.int(1)?)),
    )
    .await
}

/// Forgets at most `max` mails that were given up before `before`; says how many.
pub async fn forget(tx: &WriteTx<'_>, before: Timestamp, max: i64) -> Result<u64> {
    tx.execute(
        "DELETE FROM mails WHERE (workspace_id, id) IN (
            SELECT workspace_id, id FROM mails
            WHERE failed_at_ms IS NOT NULL AND failed_at_ms < ?1 ORDER BY failed_at_ms LIMIT ?2)",
        params![before, max],
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
