//! Requests to sign in that were not completed yet. Their codes are not stored, only the SHA-256 of
//! each.

use galley_domain::access_token::TokenHash;
use galley_domain::people::EmailAddress;
use galley_domain::{Timestamp, UserId};

use crate::engine::{Affects, Result, Row, Tx, WriteTx, params, read_row};

/// A request to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The hash of the code in the link.
    pub link_hash: Vec<u8>,
    /// The hash of the cookie of the browser that asked; `None` for a link of any browser.
    pub browser_hash: Option<Vec<u8>>,
    /// The hash of the code that a person types.
    pub code_hash: Option<Vec<u8>>,
    /// The address, without regard to case. Empty for a request to the identity provider.
    pub email_key: String,
    /// The user, once the mail is written.
    pub user: Option<UserId>,
    /// The number of wrong codes.
    pub wrong_codes: i64,
    /// The time of the request.
    pub created_at: Timestamp,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

impl SignIn {
    /// Returns true for a request to the identity provider, whose link hash is that of its state.
    pub fn is_of_identity_provider(&self) -> bool {
        self.email_key.is_empty()
    }
}

const COLUMNS: &str = "i.link_hash, i.browser_hash, i.code_hash, i.email_key, i.user_id, \
    i.wrong_codes, i.created_at_ms, i.expires_at_ms";

fn read(row: &Row<'_>) -> Result<SignIn> {
    Ok(read_row!(row, 0 => SignIn {
        link_hash, browser_hash, code_hash, email_key, user, wrong_codes, created_at, expires_at
    }))
}

/// Inserts a request.
pub async fn insert(tx: &WriteTx<'_>, sign_in: &SignIn) -> Result<()> {
    let sql = "INSERT INTO sign_ins (link_hash, browser_hash, code_hash, email_key, user_id,
            wrong_codes, created_at_ms, expires_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    tx.change(
        sql,
        params! {
            sign_in.link_hash.as_slice(), sign_in.browser_hash.as_deref(),
            sign_in.code_hash.as_deref(), sign_in.email_key.as_str(), sign_in.user,
            sign_in.wrong_codes, sign_in.created_at, sign_in.expires_at
        },
        Affects::Nothing,
    )
    .await
}

/// Finds the request of a link, expired or not.
pub async fn find_by_link(tx: &Tx<'_>, link_hash: &TokenHash) -> Result<Option<SignIn>> {
    let sql = format!("SELECT {COLUMNS} FROM sign_ins i WHERE i.link_hash = ?1");
    tx.find(&sql, params![link_hash], read).await
}

/// Finds the latest request of a browser, expired or not, for update.
pub async fn find_by_browser(tx: &WriteTx<'_>, browser_hash: &TokenHash) -> Result<Option<SignIn>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sign_ins i WHERE i.browser_hash = ?1
         ORDER BY i.created_at_ms DESC LIMIT 1{}",
        tx.for_update()
    );
    tx.find(&sql, params![browser_hash], read).await
}

/// The requests with an address since a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecentSignIns {
    /// The number of requests.
    pub requests: i64,
    /// The number of wrong codes.
    pub wrong_codes: i64,
    /// The time of the first one.
    pub first: Option<Timestamp>,
}

/// Counts the requests of browsers with an address since a time, used and expired ones included.
pub async fn count_recent(
    tx: &Tx<'_>,
    email: &EmailAddress,
    since: Timestamp,
) -> Result<RecentSignIns> {
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(i.wrong_codes), 0) AS BIGINT),
            MIN(i.created_at_ms)
        FROM sign_ins i WHERE i.email_key = ?1 AND i.created_at_ms > ?2
            AND i.browser_hash IS NOT NULL";
    tx.get(sql, params![email.key(), since], |row| {
        Ok(read_row!(row, 0 => RecentSignIns { requests, wrong_codes, first }))
    })
    .await
}

/// Sets the user of a request, for whom a mail is written.
pub async fn set_user(tx: &WriteTx<'_>, link_hash: &[u8], user: UserId) -> Result<()> {
    let sql = "UPDATE sign_ins SET user_id = ?2 WHERE link_hash = ?1";
    tx.change(sql, params![link_hash, user], Affects::Nothing).await
}

/// Counts a wrong code.
pub async fn count_wrong_code(tx: &WriteTx<'_>, link_hash: &[u8]) -> Result<()> {
    let sql = "UPDATE sign_ins SET wrong_codes = wrong_codes + 1 WHERE link_hash = ?1";
    tx.change(sql, params![link_hash], Affects::Nothing).await
}

/// Ends a request, as it was used. Returns false if it had ended before. Its expiry becomes the
/// time of the request, which is earlier than the time of any concurrent use. The row stays, as it
/// counts for the limits of its address.
pub async fn end(tx: &WriteTx<'_>, link_hash: &[u8], now: Timestamp) -> Result<bool> {
    let sql = "UPDATE sign_ins SET expires_at_ms = created_at_ms
        WHERE link_hash = ?1 AND expires_at_ms > ?2";
    Ok(tx.execute(sql, params![link_hash, now], Affects::Nothing).await? > 0)
}

/// Deletes up to `limit` requests from before `before`. Returns their number.
pub async fn delete_expired(tx: &WriteTx<'_>, before: Timestamp, limit: i64) -> Result<u64> {
    let sql = "DELETE FROM sign_ins WHERE link_hash IN (
        SELECT link_hash FROM sign_ins WHERE expires_at_ms <= ?1
        ORDER BY expires_at_ms LIMIT ?2)";
    tx.execute(sql, params![before, limit], Affects::Nothing).await
}
