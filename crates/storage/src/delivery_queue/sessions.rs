//! Sessions: the runs of servers that send deliveries, to which leases belong.
//!
//! A session writes a heartbeat twice a second ([`crate::Database::heartbeat`]), by the database's
//! clock. Each session detects others that are dead: their process ended, which PostgreSQL shows by
//! the connection of the last heartbeat, or their heartbeats stopped. It releases their leases and
//! deletes them.
//!
//! A lease refers to its session by a foreign key. So a transaction of a dead process ends before
//! its session is deleted, and commits no lease afterwards.

use galley_domain::Timestamp;
use galley_domain::{WebhookId, WorkspaceId};

use super::webhook_queues::lock as lock_queue;
use crate::engine::{Affects, DeadSession, Result, Row, Value, WriteTx, params};

/// Opens a session. On SQLite, where there is one server, releases the leases of all others, and
/// returns their number.
pub async fn open_session(
    tx: &WriteTx<'_>,
    session: &str,
    node: &str,
    now: Timestamp,
) -> Result<u64> {
    let mut freed = 0;
    if !tx.has_other_writers() {
        let sql = "SELECT session FROM delivery_sessions";
        for dead in tx.query(sql, &[], |row| row.get::<String>(0)).await? {
            freed += close_session(tx, &dead, now).await?;
        }
    }
    let sql = "INSERT INTO delivery_sessions (session, node) VALUES (?1, ?2)";
    tx.execute(sql, params![session, node], Affects::Nothing).await?;
    let sql = "INSERT INTO delivery_heartbeats (session, seen_at_ms, server, backend_pid)
        VALUES (?1, ?2, 0, 0)";
    tx.execute(sql, params![session, now], Affects::Nothing).await?;
    Ok(freed)
}

/// Releases the leases of a dead session whose heartbeat has not changed, and deletes it. Returns
/// the number of leases.
pub async fn delete_dead_session(
    tx: &WriteTx<'_>,
    dead: &DeadSession,
    now: Timestamp,
) -> Result<u64> {
    let lock = tx.for_update_skip_locked();
    let unchanged =
        format!("SELECT 1 FROM delivery_heartbeats WHERE session = ?1 AND seen_at_ms = ?2{lock}");
    // A session that commits a lease at this moment holds a lock on its row, and is skipped.
    let leases = format!("SELECT 1 FROM delivery_sessions WHERE session = ?1{lock}");
    if !tx.exists(&unchanged, params![&dead.session, dead.seen_at]).await?
        || !tx.exists(&leases, params![&dead.session]).await?
    {
        return Ok(0);
    }
    close_session(tx, &dead.session, now).await
}

/// Releases the leases with a name, which a worker does not know to hold, as its connection ended
/// during the commit.
pub async fn release_unknown(
    tx: &WriteTx<'_>,
    session: &str,
    lease: &str,
    now: Timestamp,
) -> Result<()> {
    release_matching(tx, "session = ?1 AND lease = ?2", params![session, lease], now).await?;
    tx.notify_on_commit();
    Ok(())
}

/// Releases the leases of a session, schedules scans of their queues, and deletes the session with
/// its heartbeat. Returns the number of leases.
pub async fn close_session(tx: &WriteTx<'_>, session: &str, now: Timestamp) -> Result<u64> {
    let freed = release_matching(tx, "session = ?1", params![session], now).await?;
    for table in ["delivery_heartbeats", "delivery_sessions"] {
        tx.execute(
            &format!("DELETE FROM {table} WHERE session = ?1"),
            params![session],
            Affects::Nothing,
        )
        .await?;
    }
    tx.notify_on_commit();
    Ok(freed)
}

/// Releases the leases that match a condition, and schedules scans of their queues. Returns the
/// number of leases.
async fn release_matching(
    tx: &WriteTx<'_>,
    condition: &str,
    params: &[Value<'_>],
    now: Timestamp,
) -> Result<u64> {
    let sql = format!(
        "SELECT DISTINCT workspace_id, webhook_id FROM delivery_leases
         WHERE {condition} ORDER BY workspace_id, webhook_id"
    );
    let read = |row: &Row<'_>| Ok((row.get::<WorkspaceId>(0)?, row.get::<WebhookId>(1)?));
    for (workspace, webhook) in tx.query(&sql, params, read).await? {
        if let Some(mut queue) = lock_queue(tx, workspace, webhook).await? {
            queue.state.next_at = Some(now);
            queue.save(tx).await?;
        }
    }
    let sql = format!("DELETE FROM delivery_leases WHERE {condition}");
    tx.execute(&sql, params, Affects::Nothing).await
}
