//! Access tokens. Their text is not stored, only its SHA-256.

use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::publication::ContentView;
use galley_domain::text::ShortText;
use galley_domain::{ContentGroupId, PermissionSet, Timestamp, TokenId, UserId, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, WriteTx, params, read_row};
use crate::tables::paging::IdPage;

/// A token without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The id.
    pub id: TokenId,
    /// The user.
    pub user: UserId,
    /// The display name.
    pub name: TokenName,
    /// The description.
    pub description: Option<ShortText>,
    /// Its permissions, which its user's role limits further.
    pub permissions: PermissionSet,
    /// The groups whose subtrees it may see; `None` for all.
    pub content_groups: Option<Vec<ContentGroupId>>,
    /// The view of the content.
    pub view: ContentView,
    /// The extension that it belongs to.
    pub extension: Option<ExtensionName>,
    /// The time at which it expires.
    pub expires_at: Option<Timestamp>,
    /// The time of its last use, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The version, incremented by each change.
    pub version: i64,
}

/// A token in the operator's list.
#[derive(Debug, Clone)]
pub struct TokenSummary {
    /// The token.
    pub token: Token,
    /// The username of its user.
    pub username: String,
}

const COLUMNS: &str = "t.id, t.user_id, t.name, t.description, t.permissions, \
    t.content_group_ids, t.extension, t.expires_at_ms, t.last_used_at_ms, t.created_at_ms, \
    t.version, t.view";

fn read(row: &Row<'_>) -> Result<Token> {
    Ok(read_row!(row, 0 => Token {
        id, user, name, description, permissions, content_groups, extension, expires_at,
        last_used_at, created_at, version, view
    }))
}

/// Finds a token.
pub async fn find(tx: &Tx<'_>, workspace: WorkspaceId, id: TokenId) -> Result<Option<Token>> {
    let sql = format!("SELECT {COLUMNS} FROM tokens t WHERE t.workspace_id = ?1 AND t.id = ?2");
    tx.find(&sql, params![workspace, id], read).await
}

/// Lists the tokens of a user, or of all users, by creation.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    user: Option<UserId>,
    page: &IdPage,
) -> Result<Vec<Token>> {
    let mut params = page.params(workspace).to_vec();
    let of_user = user.map_or("", |id| {
        params.push(id.into());
        " AND t.user_id = ?5"
    });
    let sql = format!(
        "SELECT {COLUMNS} FROM tokens t WHERE t.workspace_id = ?1{of_user} AND t.id > ?2
         ORDER BY t.id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Inserts a new token by the SHA-256 of its text.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    token: &Token,
    hash: &[u8; 32],
) -> Result<()> {
    let sql = "INSERT INTO tokens (workspace_id, id, user_id, hash, name, description, permissions,
            content_group_ids, extension, expires_at_ms, created_at_ms, version, view)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    tx.change(
        sql,
        params! {
            workspace, token.id, token.user, hash, &token.name, &token.description,
            token.permissions, &token.content_groups, &token.extension, token.expires_at,
            token.created_at, token.version, token.view
        },
        Affects::Access(workspace),
    )
    .await
}

/// Updates a token.
pub async fn update(tx: &WriteTx<'_>, workspace: WorkspaceId, token: &Token) -> Result<()> {
    let sql =
        "UPDATE tokens SET name = ?3, description = ?4, permissions = ?5, content_group_ids = ?6,
            extension = ?7, expires_at_ms = ?8, version = ?9, view = ?10
         WHERE workspace_id = ?1 AND id = ?2";
    tx.change(
        sql,
        params! {
            workspace, token.id, &token.name, &token.description, token.permissions,
            &token.content_groups, &token.extension, token.expires_at, token.version,
            token.view
        },
        Affects::Access(workspace),
    )
    .await
}

/// Records the use of a token, unless a later use is recorded.
pub async fn record_use(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: TokenId,
    now: Timestamp,
) -> Result<()> {
    let sql = "UPDATE tokens SET last_used_at_ms = ?3 WHERE workspace_id = ?1 AND id = ?2
        AND COALESCE(last_used_at_ms, 0) < ?3";
    tx.change(sql, params![workspace, id, now], Affects::Nothing).await
}

/// Lists the workspace's tokens with their users, the oldest first.
pub async fn list_with_users(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Vec<TokenSummary>> {
    let sql = format!(
        "SELECT {COLUMNS}, u.username FROM tokens t JOIN users u ON u.id = t.user_id
         WHERE t.workspace_id = ?1 ORDER BY t.id"
    );
    tx.query(&sql, params![workspace], |row| {
        Ok(TokenSummary { token: read(row)?, username: row.get(12)? })
    })
    .await
}

/// Deletes a token. Returns true if it existed.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, id: TokenId) -> Result<bool> {
    let sql = "DELETE FROM tokens WHERE workspace_id = ?1 AND id = ?2";
    // The notification ends the streams of the token.
    tx.notify_on_commit();
    Ok(tx.execute(sql, params![workspace, id], Affects::Access(workspace)).await? > 0)
}

/// Deletes all of a user's tokens of a workspace.
pub async fn delete_of_user(tx: &WriteTx<'_>, workspace: WorkspaceId, user: UserId) -> Result<()> {
    let sql = "DELETE FROM tokens WHERE workspace_id = ?1 AND user_id = ?2";
    tx.notify_on_commit();
    tx.change(sql, params![workspace, user], Affects::Access(workspace)).await
}
