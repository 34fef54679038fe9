//! `galley serve`

use std::io::IsTerminal;
use std::net::SocketAddr;

use anyhow::Context;
use galley_server::{App, Environment, Limits, Server, serve_metrics};
use galley_storage::{Database, Role};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::signal::unix::{SignalKind, signal};

use crate::first_start::{self, FirstWorkspace};
use crate::settings::Settings;
use crate::{VERSION, init, logging, store};

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<()> {
    logging::start(&settings.log.value)?;
    if let Some(address) = settings.metrics_addr.value {
        start_metrics(address)?;
    }
    let environment = Environment::default();
    let database = store::open(settings, &environment, Role::Server).await?;
    let limits = Limits {
        body_max: settings.body_max.value,
        content_max: settings.content_max.value,
        ..Limits::default()
    };
    let app = App::new(database.clone(), environment.clone(), limits);
    let server = Server::bind(settings.listen.value, app).await.with_context(|| {
        format!("can't listen on {}: choose another by --listen", settings.listen.value)
    })?;
    let address = server.address()?;
    let made = first_start::make(
        &database,
        &environment,
        init::WORKSPACE_DEFAULT,
        init::EMAIL_DEFAULT,
        settings.init_token.as_deref(),
    );
    if let Some(first) = made.await? {
        introduce(settings, address, &first)?;
    }
    let url = settings.public_url(address);
    tracing::info!(version = VERSION, database = database.engine(), %address, url, "serving");
    server.run(stop_signal()?).await;
    close(&database).await;
    Ok(())
}

async fn close(database: &Database) {
    database.close().await;
    tracing::info!("stopped");
}

/// Shows the first token and what to do with it.
fn introduce(
    settings: &Settings,
    address: SocketAddr,
    first: &FirstWorkspace,
) -> anyhow::Result<()> {
    let url = settings.public_url(address);
    if settings.init_token.is_some() {
        tracing::info!(workspace = %first.made.workspace, "made a first workspace");
        return Ok(());
    }
    if std::io::stdout().is_terminal() {
        let token = first.token.reveal();
        println!(
            "\nWelcome to Galley. Your workspace is ready; this is its access token, shown once:"
        );
        println!("\n  {token}\n\nTry it from another terminal:\n");
        println!("{}\n", first_start::request_to_try(&url, token, &first.made));
        return Ok(());
    }
    let path = first_start::keep_token(&settings.data_dir.value, &first.token)?;
    let path = path.display();
    println!("Made a first workspace. Its access token is in {path}. Try:\n");
    let token = format!("'\"$(cat {path})\"'");
    println!("{}", first_start::request_to_try(&url, &token, &first.made));
    tracing::info!(file = %path, "made a first workspace; its access token is in the file");
    Ok(())
}

fn start_metrics(address: SocketAddr) -> anyhow::Result<()> {
    let handle = PrometheusBuilder::new().install_recorder().context("metrics can't be kept")?;
    tokio::spawn(async move {
        if let Err(error) = serve_metrics(address, handle).await {
            tracing::error!(%error, %address, "metrics can't be served");
        }
    });
    Ok(())
}

/// Done when the process is told to stop.
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
