//! Heartbeats of the sessions that send deliveries, over a connection of their own.
//!
//! Under load the pool may have no free connection, and an overloaded server must not be declared
//! dead.

use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Pool};
use galley_domain::Timestamp;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::connect;
use super::timeouts::ResponseTimeout;
use crate::engine::error::{Error, Result};
use crate::engine::heartbeat::{DeadSession, Heartbeat};

/// The timeout of a heartbeat.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// The age of the last heartbeat from which a session without a connection is dead. A live session
/// has reconnected by then, or has detected itself that it is invalid.
const GONE_TIMEOUT_MS: i64 = 2_200;

/// The age of the last heartbeat from which a session may be dead, even with a connection.
const LATE_AFTER_MS: i64 = 1_000;

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const SERVER: &str = "(extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint";

#[derive(Debug, Default)]
pub(crate) struct HeartbeatConnection(Mutex<Option<ClientWrapper>>);

impl HeartbeatConnection {
    /// Writes a heartbeat, and returns sessions that are dead or may be. A predecessor of the same
    /// node is dead as soon as its connection ended.
    pub(crate) async fn write_heartbeat(
        &self,
        pool: &Pool,
        session: &str,
        node: &str,
    ) -> Result<Heartbeat> {
        let mut connection = self.0.lock().await;
        let client = match connection.take() {
            Some(client) if !client.is_closed() => client,
            _ => timeout(HEARTBEAT_TIMEOUT, connect::open_extra(pool))
                .await
                .map_err(no_response)??,
        };
        let written = timeout(HEARTBEAT_TIMEOUT, write_heartbeat(&client, session, node)).await;
        let heartbeat = written.map_err(no_response)??;
        // A failed connection is closed and not put back.
        *connection = Some(client);
        Ok(heartbeat)
    }

    /// Returns true if the connection of the last heartbeat is open. Returns false while another
    /// heartbeat is in progress.
    pub(crate) fn is_connected(&self) -> bool {
        // A heartbeat in progress holds the lock.
        let connection = self.0.try_lock();
        connection.is_ok_and(|connection| connection.as_ref().is_some_and(|one| !one.is_closed()))
    }

    pub(super) async fn close(&self) {
        self.0.lock().await.take();
    }
}

fn no_response(_: tokio::time::error::Elapsed) -> Error {
    ResponseTimeout::error()
}

async fn write_heartbeat(client: &ClientWrapper, session: &str, node: &str) -> Result<Heartbeat> {
    // An asynchronous commit is durable enough, as the next heartbeat follows in half a second.
    client.batch_execute("BEGIN; SET LOCAL synchronous_commit = off").await?;
    let update = format!(
        "UPDATE delivery_heartbeats SET seen_at_ms = {NOW}, server = {SERVER},
            backend_pid = pg_backend_pid()
         WHERE session = $1"
    );
    let update = client.prepare_cached(&update).await?;
    let is_superseded = client.execute(&update, &[&session]).await? == 0;
    client.batch_execute("COMMIT").await?;
    // A predecessor on this host and at this address is also gone if PostgreSQL has restarted
    // since. Other nodes may only not have reconnected yet.
    let dead = format!(
        "SELECT session, seen_at_ms, has_ended AND (is_own OR age > {GONE_TIMEOUT_MS})
         FROM (
            SELECT s.session, h.seen_at_ms, {NOW} - h.seen_at_ms AS age, s.node = $2 AS is_own,
                CASE WHEN h.server = {SERVER} THEN NOT EXISTS (
                        SELECT 1 FROM pg_stat_activity a WHERE a.pid = h.backend_pid)
                    ELSE s.node = $2 END AS has_ended
            FROM delivery_sessions s JOIN delivery_heartbeats h ON h.session = s.session
            WHERE s.session <> $1) others
         WHERE age > {LATE_AFTER_MS} OR has_ended AND is_own"
    );
    let dead = client.prepare_cached(&dead).await?;
    let rows = client.query(&dead, &[&session, &node]).await?;
    let dead = rows.iter().map(|row| {
        Ok(DeadSession {
            session: row.try_get(0)?,
            seen_at: Timestamp::from_ms(row.try_get(1)?),
            is_gone: row.try_get(2)?,
        })
    });
    let dead = dead.collect::<Result<_, tokio_postgres::Error>>()?;
    Ok(Heartbeat { is_superseded, dead })
}
