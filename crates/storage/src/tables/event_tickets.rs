//! Tickets of the event stream. Their text is not stored, only its SHA-256.

use galley_domain::access_token::TokenHash;
use galley_domain::{Credential, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Tx, WriteTx, params, read_row};

/// A ticket that stands for a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTicket {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The credential.
    pub credential: Credential,
    /// The hash of the `Origin` that it is bound to, if any.
    pub origin_hash: Option<Vec<u8>>,
    /// True after its first use, which also binds it to no origin.
    pub is_used: bool,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

/// Inserts a ticket by the SHA-256 of its text.
pub async fn insert(tx: &WriteTx<'_>, hash: &TokenHash, ticket: &EventTicket) -> Result<()> {
    let sql = "INSERT INTO event_tickets (hash, workspace_id, token_id, origin_hash,
            is_used, expires_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    tx.change(
        sql,
        params! {
            hash, ticket.workspace, ticket.credential, ticket.origin_hash.as_deref(), ticket.is_used,
            ticket.expires_at
        },
        Affects::Nothing,
    )
    .await
}

/// Finds a ticket, expired or not.
pub async fn find(tx: &Tx<'_>, hash: &TokenHash) -> Result<Option<EventTicket>> {
    let sql = "SELECT workspace_id, token_id, origin_hash, is_used, expires_at_ms
        FROM event_tickets WHERE hash = ?1";
    tx.find(sql, params![hash], |row| {
        Ok(read_row!(row, 0 => EventTicket {
            workspace, credential, origin_hash, is_used, expires_at
        }))
    })
    .await
}

/// Records the first use of a ticket. Does nothing if it was used meanwhile.
pub async fn record_first_use(
    tx: &WriteTx<'_>,
    hash: &TokenHash,
    origin_hash: Option<&[u8]>,
    expires_at: Timestamp,
) -> Result<()> {
    let sql = "UPDATE event_tickets SET origin_hash = ?2, is_used = TRUE, expires_at_ms = ?3
        WHERE hash = ?1 AND NOT is_used";
    tx.change(sql, params![hash, origin_hash, expires_at], Affects::Nothing).await
}

/// Deletes up to `limit` tickets that expired before `now`. Returns their number.
pub async fn delete_expired(tx: &WriteTx<'_>, now: Timestamp, limit: i64) -> Result<u64> {
    let sql = "DELETE FROM event_tickets WHERE hash IN (
        SELECT hash FROM event_tickets WHERE expires_at_ms <= ?1
        ORDER BY expires_at_ms LIMIT ?2)";
    tx.execute(sql, params![now, limit], Affects::Nothing).await
}
