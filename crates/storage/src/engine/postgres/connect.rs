//! How connections to PostgreSQL are made and set up.

use std::str::FromStr;
use std::time::Duration;

use deadpool::managed::Manager as _;
use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Metrics, Object, Pool, PoolBuilder,
    RecyclingMethod, Runtime,
};
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::timeouts::ResponseTimeout;
use crate::engine::error::{Error, Result};
use crate::engine::options::{Options, Role};

/// What the connections of servers and of commands are called.
pub(super) const SERVER: &str = "galley";
const COMMAND: &str = "galley command";

/// How long to wait for a free connection, and for a new one.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The same for standbys, without which it goes, too.
const REPLICA_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long the server's machine may answer nothing before a connection is given up.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Set on every new connection: limits on what one statement, lock or idle transaction may take,
/// and a commit that is on disk when it is answered, whatever the server's default. Each statement has an
/// index to go by, and the planner takes it, also where it knows nothing of a table yet. What has none
/// looks dear to it then, but compiling that would take longer than doing it.
const SETTINGS: &str = "
    SET statement_timeout = '30s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '15s';
    SET enable_seqscan = off;
    SET jit = off;
    SELECT set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply'
        ELSE 'on' END, false);
";

/// A prepared statement keeps its plan until something is known of its tables. What was planned when they
/// were empty may go by any index. So a connection plans anew after its first transaction, its second, its
/// fourth and so on: what a plan goes by is then never far from what there is.
const PLAN_ANEW: &str = "DISCARD PLANS";

/// Connections to the server that takes writes.
pub(super) fn pool(url: &str, options: &Options) -> Result<Pool> {
    let set_up = Hook::async_fn(|client: &mut ClientWrapper, _| {
        Box::pin(async move { set_up(client).await.map_err(HookError::Backend) })
    });
    let builder = builder(url, options, TargetSessionAttrs::ReadWrite, WAIT_MAX)?;
    build(builder.post_create(set_up))
}

/// Connects to standbys. Each connection prepares `statement`, so that a read does not wait for that.
pub(super) fn replica_pool(url: &str, options: &Options, statement: &'static str) -> Result<Pool> {
    let set_up = Hook::async_fn(move |client: &mut ClientWrapper, _| {
        Box::pin(async move {
            set_up(client).await.map_err(HookError::Backend)?;
            client.prepare_cached(statement).await.map(drop).map_err(HookError::Backend)
        })
    });
    let builder = builder(url, options, TargetSessionAttrs::ReadOnly, REPLICA_WAIT_MAX)?;
    build(builder.post_create(set_up))
}

/// A connection of a pool, in time: what is done to make or renew one has no bound of its own.
pub(super) async fn get(pool: &Pool, time_max: Duration) -> Result<Object> {
    Ok(timeout(time_max, pool.get()).await.map_err(|_| ResponseTimeout::error())??)
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
            Role::Server => SERVER,
            Role::Command => COMMAND,
        });
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(wait_max);
    }
    // Of several servers the one that takes writes, or one that doesn't; and of one that is gone without a word it is
    // known before long.
    config.target_session_attrs(target);
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_MAX);
    }
    config.keepalives_idle(SILENCE_MAX).keepalives_interval(SILENCE_MAX / 5).keepalives_retries(3);
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager =
        Manager::from_config(config, MakeRustlsConnect::new(galley_tls::client()), recycling);
    Ok(Pool::builder(manager)
        .max_size(options.connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(wait_max))
        .create_timeout(Some(wait_max))
        .pre_recycle(Hook::async_fn(|client: &mut ClientWrapper, metrics: &Metrics| {
            let is_stale = (metrics.recycle_count + 1).is_power_of_two();
            Box::pin(async move {
                if is_stale {
                    plan_anew(client).await.map_err(HookError::Backend)?;
                }
                Ok(())
            })
        })))
}

fn build(builder: PoolBuilder) -> Result<Pool> {
    builder.build().map_err(|error| Error::Settings(error.to_string()))
}

/// A connection beside those of the pool.
pub(super) async fn one_more(pool: &Pool) -> Result<ClientWrapper> {
    let client = pool.manager().create().await?;
    set_up(&client).await?;
    Ok(client)
}

async fn set_up(client: &ClientWrapper) -> std::result::Result<(), tokio_postgres::Error> {
    client.batch_execute(SETTINGS).await
}

pub(super) async fn plan_anew(
    client: &ClientWrapper,
) -> std::result::Result<(), tokio_postgres::Error> {
    client.batch_execute(PLAN_ANEW).await
}

/// An answered write is on disk; a server that doesn't sync can't promise that.
pub(super) async fn refuse_unsynced(client: &ClientWrapper) -> Result<()> {
    let fsync: String = client.query_one("SHOW fsync", &[]).await?.try_get(0)?;
    if fsync == "on" {
        return Ok(());
    }
    Err(Error::Settings(
        "PostgreSQL runs with fsync=off and would lose answered writes: set fsync=on".to_owned(),
    ))
}
