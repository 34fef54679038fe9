//! The numbers of requests with rejected credentials, by minute and client address.

use galley_domain::Timestamp;

use crate::engine::{Affects, Result, Tx, WriteTx, params, read_row, row};

/// The requests of a minute from one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedCredentials {
    /// The start of the minute.
    pub minute: Timestamp,
    /// The address. It is empty for the addresses beyond the limit of rows.
    pub remote_address: String,
    /// The number of requests.
    pub requests: i64,
}

/// Returns the number of rows from `since` on.
pub async fn count_since(tx: &Tx<'_>, since: Timestamp) -> Result<i64> {
    let sql = "SELECT COUNT(*) FROM rejected_credentials WHERE minute_ms >= ?1";
    tx.get(sql, params![since], |row| row.get(0)).await
}

/// Adds requests to the numbers.
pub async fn add(tx: &WriteTx<'_>, rejected: &[RejectedCredentials]) -> Result<()> {
    let sql = "INSERT INTO rejected_credentials (minute_ms, remote_address, requests)
        VALUES (?1, ?2, ?3)
        ON CONFLICT (minute_ms, remote_address)
        DO UPDATE SET requests = rejected_credentials.requests + excluded.requests";
    let rows = rejected.iter().map(|one| row![one.minute, &one.remote_address, one.requests]);
    tx.change_each(sql, rows, Affects::Nothing).await
}

/// Lists the numbers of a period, oldest first.
pub async fn list(
    tx: &Tx<'_>,
    since: Timestamp,
    until: Timestamp,
) -> Result<Vec<RejectedCredentials>> {
    let sql = "SELECT minute_ms, remote_address, requests FROM rejected_credentials
        WHERE minute_ms >= ?1 AND minute_ms < ?2 ORDER BY minute_ms, remote_address";
    tx.query(sql, params![since, until], |row| {
        Ok(read_row!(row, 0 => RejectedCredentials { minute, remote_address, requests }))
    })
    .await
}

/// Deletes the rows from before a time. Their number is limited for each hour.
pub async fn delete_expired(tx: &WriteTx<'_>, before: Timestamp) -> Result<()> {
    let sql = "DELETE FROM rejected_credentials WHERE minute_ms < ?1";
    tx.change(sql, params![before], Affects::Nothing).await
}
