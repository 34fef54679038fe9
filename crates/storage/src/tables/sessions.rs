//! The sessions of signed-in users. The value of their cookie is not stored, only its SHA-256.

use galley_domain::access_token::TokenHash;
use galley_domain::session::SignInMethod;
use galley_domain::{SessionId, Timestamp, UserId, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, WriteTx, params, read_row};
use crate::tables::paging::IdPage;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The id.
    pub id: SessionId,
    /// The user.
    pub user: UserId,
    /// The only workspace that it reaches, if the user's address is not verified.
    pub workspace: Option<WorkspaceId>,
    /// The method by which the user signed in.
    pub method: SignInMethod,
    /// The name that the browser gave itself.
    pub user_agent: Option<String>,
    /// The client's address at the sign-in.
    pub remote_address: Option<String>,
    /// The time of the sign-in.
    pub created_at: Timestamp,
    /// The time of its last use, to the minute.
    pub last_used_at: Timestamp,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

const COLUMNS: &str = "s.id, s.user_id, s.workspace_id, s.method, s.user_agent, s.remote_address, \
    s.created_at_ms, s.last_used_at_ms, s.expires_at_ms";

fn read(row: &Row<'_>) -> Result<Session> {
    Ok(read_row!(row, 0 => Session {
        id, user, workspace, method, user_agent, remote_address, created_at, last_used_at,
        expires_at
    }))
}

/// Inserts a session by the SHA-256 of its cookie.
pub async fn insert(tx: &WriteTx<'_>, session: &Session, hash: &TokenHash) -> Result<()> {
    let sql = "INSERT INTO sessions (hash, id, user_id, workspace_id, method, user_agent,
            remote_address, created_at_ms, last_used_at_ms, expires_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    tx.change(
        sql,
        params! {
            hash, session.id, session.user, session.workspace, session.method,
            &session.user_agent, &session.remote_address, session.created_at,
            session.last_used_at, session.expires_at
        },
        Affects::Nothing,
    )
    .await
}

/// Lists the sessions of a user that have not expired, by creation.
pub async fn list(
    tx: &Tx<'_>,
    user: UserId,
    now: Timestamp,
    page: &IdPage,
) -> Result<Vec<Session>> {
    let mut params = page.params(user).to_vec();
    params.push(now.into());
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions s
         WHERE s.user_id = ?1 AND s.id > ?2 AND s.expires_at_ms > ?5
         ORDER BY s.id LIMIT ?3 OFFSET ?4"
    );
    tx.query(&sql, &params, read).await
}

/// Finds the session of a cookie with this SHA-256, expired or not.
pub async fn find_by_hash(tx: &Tx<'_>, hash: &TokenHash) -> Result<Option<Session>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.hash = ?1");
    tx.find(&sql, params![hash], read).await
}

/// Finds a session of a user, expired or not.
pub async fn find(tx: &Tx<'_>, user: UserId, id: SessionId) -> Result<Option<Session>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.id = ?2 AND s.user_id = ?1");
    tx.find(&sql, params![user, id], read).await
}

/// Records the use of a session, unless a later use is recorded, and extends it.
pub async fn record_use(
    tx: &WriteTx<'_>,
    id: SessionId,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    let sql = "UPDATE sessions SET last_used_at_ms = ?2, expires_at_ms = ?3
        WHERE id = ?1 AND last_used_at_ms < ?2 AND expires_at_ms > ?2";
    tx.change(sql, params![id, now, expires_at], Affects::Nothing).await
}

/// Deletes a session of a user. Returns true if it existed.
pub async fn delete(tx: &WriteTx<'_>, user: UserId, id: SessionId) -> Result<bool> {
    let sql = "DELETE FROM sessions WHERE id = ?2 AND user_id = ?1";
    // The notification ends the streams of the session.
    tx.notify_on_commit();
    Ok(tx.execute(sql, params![user, id], Affects::Sessions).await? > 0)
}

/// Deletes the sessions of a user that reach one workspace only.
pub async fn delete_of_member(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<()> {
    let sql = "DELETE FROM sessions WHERE user_id = ?2 AND workspace_id = ?1";
    tx.notify_on_commit();
    tx.change(sql, params![workspace, user], Affects::Sessions).await
}

/// Deletes up to `limit` sessions that expired before `now`. Returns their number.
pub async fn delete_expired(tx: &WriteTx<'_>, now: Timestamp, limit: i64) -> Result<u64> {
    let sql = "DELETE FROM sessions WHERE hash IN (
        SELECT hash FROM sessions WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2)";
    tx.execute(sql, params![now, limit], Affects::Nothing).await
}
