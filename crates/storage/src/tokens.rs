//! Access tokens. Their text is not kept, only its SHA-256.

use galley_domain::{
    ContentGroupId, PermissionSet, Timestamp, TokenId, UserId, WorkspaceId, WorkspaceMemberId,
};

use crate::error::Result;
use crate::tx::{Tx, WriteTx};
use crate::value::params;

/// What a token says about a request that carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The token.
    pub token: TokenId,
    /// The workspace that it is for.
    pub workspace: WorkspaceId,
    /// Whose it is.
    pub user: UserId,
    /// That user's membership.
    pub member: WorkspaceMemberId,
    /// What both the token and its user's role allow.
    pub permissions: PermissionSet,
    /// The groups to whose subtrees its view of content is limited.
    pub content_groups: Option<Vec<ContentGroupId>>,
    /// The extension that it belongs to.
    pub extension: Option<String>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A token to keep.
#[derive(Debug, Clone)]
pub struct NewToken<'a> {
    /// Which one.
    pub id: TokenId,
    /// Whose it is.
    pub user: UserId,
    /// The SHA-256 of its text.
    pub hash: [u8; 32],
    /// What people call it.
    pub name: &'a str,
    /// What it allows at the most.
    pub permissions: PermissionSet,
    /// The groups to which it is limited.
    pub content_groups: Option<&'a [ContentGroupId]>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A token as the operator lists it.
#[derive(Debug, Clone)]
pub struct TokenSummary {
    /// Which one.
    pub id: TokenId,
    /// What people call it.
    pub name: String,
    /// Whose it is.
    pub username: String,
    /// What it allows at the most.
    pub permissions: PermissionSet,
    /// The groups to whose subtrees its view of content is limited.
    pub content_groups: Option<Vec<ContentGroupId>>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Finds the token with this hash, whose user is still a member, whether or not it has expired.
pub async fn find_by_hash(tx: &Tx<'_>, hash: &[u8; 32]) -> Result<Option<Authentication>> {
    tx.find(
        "SELECT t.id, t.workspace_id, t.user_id, m.id, t.permissions, r.permissions,
            t.content_group_ids, t.extension, t.expires_at_ms
         FROM tokens t
         JOIN workspace_members m ON m.workspace_id = t.workspace_id AND m.user_id = t.user_id
         JOIN roles r ON r.workspace_id = m.workspace_id AND r.id = m.role_id
         WHERE t.hash = ?1",
        params![hash.as_slice()],
        |row| {
            let own: PermissionSet = row.parse(4)?;
            Ok(Authentication {
                token: row.parse(0)?,
                workspace: row.parse(1)?,
                user: row.parse(2)?,
                member: row.parse(3)?,
                permissions: own.meet(row.parse(5)?),
                content_groups: row.opt_parse_list(6)?,
                extension: row.opt_text(7)?.map(ToOwned::to_owned),
                expires_at: row.opt_time(8)?,
            })
        },
    )
    .await
}

/// Keeps a new token.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    token: &NewToken<'_>,
    now: Timestamp,
) -> Result<()> {
    let groups = token.content_groups.map(crate::content_pieces::comma_separated);
    tx.execute(
        "INSERT INTO tokens (workspace_id, id, user_id, hash, name, permissions, content_group_ids,
            expires_at_ms, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            workspace,
            token.id,
            token.user,
            token.hash.as_slice(),
            token.name,
            token.permissions,
            groups,
            token.expires_at,
            now
        ],
    )
    .await?;
    Ok(())
}

/// The workspace's tokens, the oldest first.
pub async fn list(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Vec<TokenSummary>> {
    tx.query(
        "SELECT t.id, t.name, u.username, t.permissions, t.expires_at_ms, t.created_at_ms,
            t.content_group_ids
         FROM tokens t JOIN users u ON u.id = t.user_id
         WHERE t.workspace_id = ?1 ORDER BY t.id",
        params![workspace],
        |row| {
            Ok(TokenSummary {
                id: row.parse(0)?,
                name: row.text(1)?.to_owned(),
                username: row.text(2)?.to_owned(),
                permissions: row.parse(3)?,
                content_groups: row.opt_parse_list(6)?,
                expires_at: row.opt_time(4)?,
                created_at: row.time(5)?,
            })
        },
    )
    .await
}

/// Deletes a token; says whether there was one.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: TokenId) -> Result<bool> {
    let sql = "DELETE FROM tokens WHERE workspace_id = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![workspace, id]).await? > 0)
}
