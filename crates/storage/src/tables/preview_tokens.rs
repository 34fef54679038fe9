//! Preview tokens: each reads one piece in the current view, with the rights of the credential
//! that created it. Their text is not stored, only its SHA-256.

use galley_domain::access_token::TokenHash;
use galley_domain::{ContentPieceId, Credential, Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Tx, WriteTx, params, read_row};

/// A preview token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewToken {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The credential that created it.
    pub credential: Credential,
    /// The piece.
    pub piece: ContentPieceId,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

/// Inserts a preview token by the SHA-256 of its text.
pub async fn insert(tx: &WriteTx<'_>, hash: &TokenHash, preview: &PreviewToken) -> Result<()> {
    let sql = "INSERT INTO preview_tokens (hash, workspace_id, token_id, content_piece_id,
            expires_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let params =
        params![hash, preview.workspace, preview.credential, preview.piece, preview.expires_at];
    tx.change(sql, params, Affects::Nothing).await
}

/// Finds a preview token, expired or not.
pub async fn find(tx: &Tx<'_>, hash: &TokenHash) -> Result<Option<PreviewToken>> {
    let sql = "SELECT workspace_id, token_id, content_piece_id, expires_at_ms
        FROM preview_tokens WHERE hash = ?1";
    tx.find(sql, params![hash], |row| {
        Ok(read_row!(row, 0 => PreviewToken { workspace, credential, piece, expires_at }))
    })
    .await
}

/// Deletes up to `limit` preview tokens that expired before `now`. Returns their number.
pub async fn delete_expired(tx: &WriteTx<'_>, now: Timestamp, limit: i64) -> Result<u64> {
    let sql = "DELETE FROM preview_tokens WHERE hash IN (
        SELECT hash FROM preview_tokens WHERE expires_at_ms <= ?1
        ORDER BY expires_at_ms LIMIT ?2)";
    tx.execute(sql, params![now, limit], Affects::Nothing).await
}
