//! `galley serve`

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use galley_application::{AssetSettings, Environment};
use galley_commands::start::{self, Started};
use galley_server::{App, ConsoleFiles, Server, ServerLimits};
use galley_storage::Database;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use galley_commands::settings::Settings;
use galley_commands::version::VERSION;
use galley_commands::{config, first_start, key, logging};

use crate::metrics_endpoint;
use crate::span_exporter::SpanExporter;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<()> {
    let traces = settings.traces_url().as_deref().map(SpanExporter::new).transpose()?;
    let (traces, layer) = traces.unzip();
    logging::start(&settings.log, settings.has_access_log(), layer)?;
    // From here on, a stop signal is not lost, and ends the start in an orderly way.
    let stop = stop_signal()?;
    // Settings are validated before anything is created.
    key::check_given(settings)?;
    first_start::token(settings, &Environment::default())?;
    let mailer = settings.mailer()?;
    settings.identity_provider(&settings.public_url(settings.listen))?;
    if let Some(address) = settings.metrics_addr {
        metrics_endpoint::start(address, settings.data_dir.clone()).await?;
    }
    // The address is bound first, so that a start that fails to bind doesn't touch the database.
    let server = Server::bind(settings.listen).await.with_context(|| {
        format!("can't listen on {}: choose another with --listen", settings.listen)
    })?;
    let address = server.address()?;
    let Started { database, environment, key } = start::open(settings, address).await?;
    let limits = ServerLimits {
        body_size_limit: settings.body_size_limit,
        response_size_limit: settings.response_size_limit,
        header_size_limit: settings.header_size_limit,
        receive_timeout: Duration::from_secs(settings.receive_timeout),
        content_size_limit: settings.content_size_limit,
        ignores_unknown_parameters: settings.ignores_unknown_parameters(),
        cors_origins: settings.cors_origins()?,
        response_cache_size: u64::from(settings.response_cache_size) * 1024 * 1024,
        rate_limit: settings.rate_limit,
        invites_per_hour: settings.invites_per_hour,
        webhook_addresses: settings.webhook_addresses(address)?,
        trusted_proxies: settings.trusted_proxies()?,
        public_url: settings.public_url(address),
        allows_sign_in_over_http: settings.allows_sign_in_over_http(),
        console: ConsoleFiles::new(galley_console::FILES),
        settings: config::effective(settings)?,
        identity_provider: settings.identity_provider(&settings.public_url(address))?,
        node: node(address),
        revision_retention: settings.revision_retention(),
        trash_retention_days: settings.trash_retention,
        assets: assets(settings, address).await?,
        drain_delay: Duration::from_secs(settings.shutdown_delay),
        connection_limit: connections_max(),
    };
    let app = App::new(database.clone(), environment, key, limits, Some(mailer));
    let url = settings.public_url(address);
    tracing::info!(version = VERSION, database = database.engine(), %address, url, "serving");
    server.run(app, stop).await;
    close(&database).await;
    if let Some(traces) = traces {
        traces.shut_down().await;
    }
    Ok(())
}

/// The timeout for the first response of the store of assets.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the settings of assets, whose store has responded.
async fn assets(settings: &Settings, address: SocketAddr) -> anyhow::Result<AssetSettings> {
    let assets = settings.assets(&settings.public_url(address))?;
    let checked = tokio::time::timeout(STORE_TIMEOUT, assets.store.check()).await;
    let advice = "the store of assets does not respond: check asset-store-url and its key";
    checked.context(advice)?.context(advice)?;
    Ok(assets)
}

/// The maximum number of files, pipes, and outgoing connections (to the database and to webhooks'
/// receivers) that a server has open.
const RESERVED_FILES: usize = 512;

/// Raises the limit of open files to the system's maximum. Returns the number of client connections
/// that the remaining files allow.
fn connections_max() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if let Err(error) = &raised {
        tracing::debug!(%error, "the limit of open files could not be raised");
    }
    let files = if raised.is_ok() { maximum } else { current };
    let files = files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    let own = RESERVED_FILES.min(files / 2);
    tracing::debug!(files, "the limit of open files");
    files - own
}

/// Returns this node's name among the nodes of one database. A restarted node has the same name
/// again, and no other node has it at the same time.
///
/// The host's name is not enough, as containers of one image may share it, and their address.
/// Containers differ in their network namespace, within which only one process can listen on an
/// address. Machines differ in their boot id.
fn node(address: SocketAddr) -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let host = read("/proc/sys/kernel/hostname");
    let boot = read("/proc/sys/kernel/random/boot_id");
    let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {address} {} {}", host.trim(), boot.trim(), network.display())
}

async fn close(database: &Database) {
    database.close().await;
    tracing::info!("stopped");
}

/// Returns a future that resolves at a stop signal.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
