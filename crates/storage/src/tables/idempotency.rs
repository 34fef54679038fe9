//! Stored responses to requests with idempotency keys. They are stored in the transactions of these
//! requests' changes.

use galley_domain::{Credential, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Tx, WriteTx, params};

/// The time for which keys and their responses are stored, in milliseconds.
pub const RETENTION_MS: i64 = 24 * 60 * 60 * 1_000;

/// The stored request and response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRequest {
    /// A hash of the request.
    pub request_hash: Vec<u8>,
    /// The response, if it can be repeated.
    pub answer: Option<String>,
}

/// Claims a key for this transaction's request. Returns false if it was used after `since`.
///
/// On PostgreSQL this waits for another transaction that claims the same key.
pub async fn claim(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    credential: Credential,
    key: &str,
    request_hash: &[u8; 32],
    now: Timestamp,
    since: Timestamp,
) -> Result<bool> {
    let sql = "DELETE FROM idempotency_keys
        WHERE workspace_id = ?1 AND token_id = ?2 AND key = ?3 AND created_at_ms <= ?4";
    tx.execute(sql, params![workspace, credential, key, since], Affects::Nothing).await?;
    let sql = "INSERT INTO idempotency_keys (workspace_id, token_id, key, request_hash,
            created_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    let inserted = tx
        .execute(sql, params![workspace, credential, key, request_hash, now], Affects::Nothing)
        .await?;
    Ok(inserted > 0)
}

/// Finds the stored request of a key.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    credential: Credential,
    key: &str,
) -> Result<Option<StoredRequest>> {
    let sql = "SELECT request_hash, answer FROM idempotency_keys
        WHERE workspace_id = ?1 AND token_id = ?2 AND key = ?3";
    tx.find(sql, params![workspace, credential, key], |row| {
        Ok(StoredRequest { request_hash: row.get(0)?, answer: row.get(1)? })
    })
    .await
}

/// Stores the response to the request that claimed the key.
pub async fn store_response(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    credential: Credential,
    key: &str,
    answer: &str,
) -> Result<()> {
    let sql = "UPDATE idempotency_keys SET answer = ?4
        WHERE workspace_id = ?1 AND token_id = ?2 AND key = ?3";
    tx.change(sql, params![workspace, credential, key, answer], Affects::Nothing).await
}

/// Deletes up to `limit` keys from before `before`. Returns their number.
pub async fn delete_expired(tx: &WriteTx<'_>, before: Timestamp, limit: i64) -> Result<u64> {
    let sql = "DELETE FROM idempotency_keys WHERE (workspace_id, token_id, key) IN (
        SELECT workspace_id, token_id, key FROM idempotency_keys
        WHERE created_at_ms <= ?1 ORDER BY created_at_ms LIMIT ?2)";
    tx.execute(sql, params![before, limit], Affects::Nothing).await
}
