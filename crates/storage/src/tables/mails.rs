//! Mails that are to be sent, and those that failed. The callers encrypt the contents.
//!
//! A worker leases a mail by postponing its next attempt. If the program ends meanwhile, the mail
//! is sent again at that time. The number of attempts identifies the lease.

use galley_domain::{MailId, Timestamp, WorkspaceId, WorkspaceMemberId};

use crate::engine::{
    Affects, Candidates, Result, Row, Tx, WriteTx, lock_candidates, params, read_row,
};

/// A mail to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMail {
    /// The id.
    pub id: MailId,
    /// The kind of mail.
    pub kind: String,
    /// The member that it concerns.
    pub member: Option<WorkspaceMemberId>,
    /// The recipient's address.
    pub recipient: String,
    /// The encrypted contents.
    pub sealed: Vec<u8>,
}

/// Inserts a mail, due at once.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    mail: &QueuedMail,
    now: Timestamp,
) -> Result<()> {
    let sql =
        "INSERT INTO mails (workspace_id, id, kind, member_id, recipient, sealed, created_at_ms,
            due_at_ms, attempts)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, 0)";
    tx.change(
        sql,
        params![workspace, mail.id, &mail.kind, mail.member, &mail.recipient, &mail.sealed, now],
        Affects::Nothing,
    )
    .await
}

fn read(row: &Row<'_>) -> Result<QueuedMail> {
    Ok(read_row!(row, 0 => QueuedMail { id, kind, member, recipient, sealed }))
}

/// A mail that a worker has leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedMail {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The mail.
    pub mail: QueuedMail,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The number of attempts, including this one.
    pub attempts: i64,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailOutcome {
    /// The mail was sent.
    Sent,
    /// The time of the next attempt, and the cause of the failure.
    Postponed(Timestamp, String),
    /// The cause of the failure, without another attempt.
    GivenUp(String),
}

/// Returns true if a mail is due.
pub async fn is_any_due(tx: &Tx<'_>, now: Timestamp) -> Result<bool> {
    let sql = "SELECT 1 FROM mails WHERE failed_at_ms IS NULL AND due_at_ms <= ?1 LIMIT 1";
    tx.exists(sql, params![now]).await
}

/// Leases due mails until `until`, the longest due first.
pub async fn lease(
    tx: &WriteTx<'_>,
    now: Timestamp,
    until: Timestamp,
    max: usize,
) -> Result<Vec<LeasedMail>> {
    let rows = Candidates {
        columns: "id, kind, member_id, recipient, sealed, workspace_id, created_at_ms, attempts",
        table: "mails",
        key: "id",
        condition: "failed_at_ms IS NULL AND due_at_ms <= ?1",
        order: "due_at_ms",
    };
    let read = |row: &Row<'_>| {
        let (mail, attempts) = (read(row)?, row.get::<i64>(7)? + 1);
        Ok(read_row!(row, 5 => LeasedMail { workspace, created_at; mail, attempts }))
    };
    let leased = lock_candidates::<MailId, _>(tx, rows, params![now], max, read).await?;
    for one in &leased {
        let sql =
            "UPDATE mails SET due_at_ms = ?3, attempts = ?4 WHERE workspace_id = ?1 AND id = ?2";
        tx.execute(sql, params![one.workspace, one.mail.id, until, one.attempts], Affects::Nothing)
            .await?;
    }
    Ok(leased)
}

/// Records the outcome of a leased mail's attempt. Does nothing if the mail was deleted or leased
/// again meanwhile.
pub async fn record_outcome(
    tx: &WriteTx<'_>,
    leased: &LeasedMail,
    outcome: &MailOutcome,
    now: Timestamp,
) -> Result<()> {
    let which = "workspace_id = ?1 AND id = ?2 AND attempts = ?3";
    let (workspace, id, attempts) = (leased.workspace, leased.mail.id, leased.attempts);
    let (column, time, error) = match outcome {
        MailOutcome::Sent => {
            let sql = format!("DELETE FROM mails WHERE {which}");
            return tx.change(&sql, params![workspace, id, attempts], Affects::Nothing).await;
        }
        MailOutcome::Postponed(due, error) => ("due_at_ms", *due, error),
        MailOutcome::GivenUp(error) => ("failed_at_ms", now, error),
    };
    let sql = format!("UPDATE mails SET {column} = ?4, last_error = ?5 WHERE {which}");
    tx.change(&sql, params![workspace, id, attempts, time, error], Affects::Nothing).await
}

/// A mail whose last attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingMail {
    /// The member that it concerns.
    pub member: Option<WorkspaceMemberId>,
    /// The cause of the failure.
    pub error: String,
    /// True if it is abandoned.
    pub is_abandoned: bool,
}

/// Lists the mails of a workspace whose last attempt failed, the oldest first, at most 1,000.
pub async fn list_failing(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Vec<FailingMail>> {
    let sql = "SELECT member_id, last_error, failed_at_ms FROM mails
        WHERE workspace_id = ?1 AND last_error IS NOT NULL ORDER BY id LIMIT 1000";
    tx.query(sql, params![workspace], |row| {
        let is_abandoned = row.get::<Option<i64>>(2)?.is_some();
        Ok(read_row!(row, 0 => FailingMail { member, error; is_abandoned }))
    })
    .await
}

/// Returns the numbers of mails that are to be sent, and of abandoned ones.
pub async fn counts(tx: &Tx<'_>) -> Result<(i64, i64)> {
    let sql = "SELECT (SELECT COUNT(*) FROM mails WHERE failed_at_ms IS NULL AND due_at_ms >= 0),
        (SELECT COUNT(*) FROM mails WHERE failed_at_ms IS NOT NULL)";
    tx.get(sql, &[], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Deletes at most `max` mails that were abandoned before `before`. Returns their number.
pub async fn delete_abandoned(tx: &WriteTx<'_>, before: Timestamp, max: i64) -> Result<u64> {
    let sql = "DELETE FROM mails WHERE (workspace_id, id) IN (
        SELECT workspace_id, id FROM mails
        WHERE failed_at_ms IS NOT NULL AND failed_at_ms < ?1 ORDER BY failed_at_ms LIMIT ?2)";
    tx.execute(sql, params![before, max], Affects::Nothing).await
}

/// Deletes the mails that concern a member.
pub async fn delete_of_member(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    member: WorkspaceMemberId,
) -> Result<()> {
    let sql = "DELETE FROM mails WHERE workspace_id = ?1 AND member_id = ?2";
    tx.change(sql, params![workspace, member], Affects::Nothing).await
}
