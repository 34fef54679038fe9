//! Connections to PostgreSQL and their settings.

use std::str::FromStr;
use std::time::Duration;

use deadpool::managed::Manager as _;
use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Metrics, Object, Pool, PoolBuilder,
    QueueMode, RecyclingMethod, Runtime,
};
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::timeouts::ResponseTimeout;
use crate::engine::error::{Error, Result};
use crate::engine::options::{Options, ProcessRole};

/// The application names of the connections of servers and of commands.
pub(super) const SERVER_NAME: &str = "galley";
const COMMAND_NAME: &str = "galley command";

/// The timeout of waiting for a free connection, and of opening one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The same for standbys, which a read can do without.
const REPLICA_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The time without any response from the server's machine after which a connection is closed.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of each new connection. They limit the time of a statement, a lock and an idle
/// transaction. A commit is durable when the server confirms it, whatever the server's default.
///
/// Every statement has an index to use. Without sequential scans the planner chooses it even before
/// it has statistics of a table. The scan of a table without rows then appears expensive, but to
/// compile it (JIT) would take longer than to run it.
const SETTINGS: &str = "
    SET statement_timeout = '30s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '15s';
    SET enable_seqscan = off;
    SET jit = off;
    SELECT set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply'
        ELSE 'on' END, false);
    SELECT set_config(name, 'lz4', false) FROM pg_settings
        WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals);
";

/// Discards the plans of a connection's prepared statements. A plan is otherwise kept until the
/// statistics of its tables change, and one made for empty tables may use any index. So a
/// connection replans after 1, 2, 4, 8 … transactions, and its plans never lag far behind the data.
const DISCARD_PLANS: &str = "DISCARD PLANS";

/// Creates the pool of connections to the primary.
pub(super) fn pool(url: &str, options: &Options) -> Result<Pool> {
    let set_up = Hook::async_fn(|client: &mut ClientWrapper, _| {
        Box::pin(async move { set_up(client).await.map_err(HookError::Backend) })
    });
    let builder = builder(url, options, TargetSessionAttrs::ReadWrite, CONNECT_TIMEOUT)?;
    build(builder.post_create(set_up))
}

/// Creates the pool of connections to standbys. Each connection prepares `statement` when it opens,
/// so that reads need not wait for that.
pub(super) fn replica_pool(url: &str, options: &Options, statement: &'static str) -> Result<Pool> {
    let set_up = Hook::async_fn(move |client: &mut ClientWrapper, _| {
        Box::pin(async move {
            set_up(client).await.map_err(HookError::Backend)?;
            client.prepare_cached(statement).await.map(drop).map_err(HookError::Backend)
        })
    });
    let builder = builder(url, options, TargetSessionAttrs::ReadOnly, REPLICA_CONNECT_TIMEOUT)?;
    build(builder.post_create(set_up))
}

/// Returns a connection of a pool within `time_max`. The hooks that set up or recycle one have no
/// timeout of their own.
///
/// The pool's future is boxed, as each transaction has it within its own, on SQLite, too.
pub(super) async fn get(pool: &Pool, time_max: Duration) -> Result<Object> {
    Ok(timeout(time_max, Box::pin(pool.get())).await.map_err(|_| ResponseTimeout::error())??)
}

fn builder(
    url: &str,
    options: &Options,
    target: TargetSessionAttrs,
    wait_max: Duration,
) -> Result<PoolBuilder> {
    let mut config = tokio_postgres::Config::from_str(url)
        .map_err(|error| Error::Settings(format!("the database URL is not valid: {error}")))?;
    if config.get_application_name().is_none() {
        config.application_name(match options.role {
            ProcessRole::Server => SERVER_NAME,
            ProcessRole::Command => COMMAND_NAME,
        });
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(wait_max);
    }
    // Several servers may be listed: the primary, or a standby, is chosen. The timeouts detect a
    // server that vanished silently.
    config.target_session_attrs(target);
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_TIMEOUT);
    }
    config
        .keepalives_idle(SILENCE_TIMEOUT)
        .keepalives_interval(SILENCE_TIMEOUT / 5)
        .keepalives_retries(3);
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager =
        Manager::from_config(config, MakeRustlsConnect::new(galley_tls::client()), recycling);
    Ok(Pool::builder(manager)
        .max_size(options.connections.max(1))
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(wait_max))
        .create_timeout(Some(wait_max))
        .pre_recycle(Hook::async_fn(|client: &mut ClientWrapper, metrics: &Metrics| {
            let is_stale = (metrics.recycle_count + 1).is_power_of_two();
            Box::pin(async move {
                if is_stale {
                    discard_plans(client).await.map_err(HookError::Backend)?;
                }
                Ok(())
            })
        })))
}

fn build(builder: PoolBuilder) -> Result<Pool> {
    builder.build().map_err(|error| Error::Settings(error.to_string()))
}

/// Opens a connection in addition to those of the pool.
pub(super) async fn open_extra(pool: &Pool) -> Result<ClientWrapper> {
    let client = pool.manager().create().await?;
    set_up(&client).await?;
    Ok(client)
}

async fn set_up(client: &ClientWrapper) -> std::result::Result<(), tokio_postgres::Error> {
    client.batch_execute(SETTINGS).await
}

pub(crate) async fn discard_plans(
    client: &ClientWrapper,
) -> std::result::Result<(), tokio_postgres::Error> {
    client.batch_execute(DISCARD_PLANS).await
}

/// Rejects a server that runs without fsync, as its confirmed commits are not durable.
pub(super) async fn reject_unsynced(client: &ClientWrapper) -> Result<()> {
    let fsync: String = client.query_one("SHOW fsync", &[]).await?.try_get(0)?;
    if fsync == "on" {
        return Ok(());
    }
    Err(Error::Settings(
        "PostgreSQL runs with fsync=off and would lose acknowledged writes: set fsync=on"
            .to_owned(),
    ))
}
