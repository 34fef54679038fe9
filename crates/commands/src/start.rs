//! The start of a server: it opens the database, and creates a first workspace in an empty one.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::LocalBoxFuture;
use galley_application::secrets::SecretKey;
use galley_application::{DatabaseClock, Environment, SystemClock};
use galley_storage::{Database, ProcessRole};

use crate::settings::Settings;
use crate::{doctor, first_start, init, key, sign_in, store};

/// The parts that a server needs.
pub struct Started {
    /// The database.
    pub database: Database,
    /// The database's clock, and randomness.
    pub environment: Environment,
    /// The key of encrypted secrets.
    pub key: SecretKey,
}

/// Opens the database for a server at `address`.
///
/// The future is boxed, so that it is compiled in this crate.
pub fn open(
    settings: &Settings,
    address: SocketAddr,
) -> LocalBoxFuture<'_, anyhow::Result<Started>> {
    Box::pin(open_database(settings, address))
}

async fn open_database(settings: &Settings, address: SocketAddr) -> anyhow::Result<Started> {
    let database = store::open(settings, &Environment::default(), ProcessRole::Server).await?;
    if let Err(problem) = doctor::data_dir(&settings.data_dir) {
        tracing::warn!("the data directory {problem}");
    }
    let clock = DatabaseClock::follow(&database, Arc::new(SystemClock)).await;
    let environment = Environment::with_clock(clock.context("the database's clock can't be read")?);
    let key = key::load(settings, &database).await?;
    create_first_workspace(settings, &database, &environment, address).await?;
    Ok(Started { database, environment, key })
}

/// Creates a workspace in an empty database, and shows its token and a first request.
async fn create_first_workspace(
    settings: &Settings,
    database: &Database,
    environment: &Environment,
    address: SocketAddr,
) -> anyhow::Result<()> {
    if !first_start::is_empty(database).await? {
        return Ok(());
    }
    let token = first_start::token(settings, environment)?;
    let shown = settings.init_token.is_none() && std::io::stdout().is_terminal();
    let kept = settings.init_token.is_none() && !shown;
    // The token's file is written before the workspace exists. Otherwise, a failure to write it
    // would lock out all clients.
    let file = if kept { Some(first_start::write_token(settings, &token)?) } else { None };
    let (name, email) = (init::DEFAULT_WORKSPACE_NAME, init::DEFAULT_OWNER_EMAIL);
    let Some(made) = first_start::create(database, environment, name, email, &token).await? else {
        // Another node created the workspace first, and only that node's token is valid.
        return file.map_or(Ok(()), |file| Ok(std::fs::remove_file(file)?));
    };
    tracing::info!(workspace = %made.workspace, "created the first workspace");
    let url = settings.public_url(address);
    if let Some(file) = file {
        let path = file.display();
        tracing::info!(file = %path, "wrote its access token to the file");
        println!("Created the first workspace. Its access token is in {path}. Try:\n");
        let token = format!("'\"$(cat {path})\"'");
        println!("{}", first_start::first_request(&url, &token, &made));
        println!("\nThe API's reference: {url}/docs");
    } else if shown {
        let token = token.reveal();
        let code = sign_in::create_link(database, environment, email).await?;
        let link = sign_in::link(&url, &code);
        println!(
            "\nWelcome to Galley. Your workspace is ready. Open this link to sign in; it works"
        );
        println!(
            "once, for 15 minutes, and `galley sign-in --email {email}` prints another one:\n"
        );
        println!("  {link}\n\nThe access token for programs, shown once:\n");
        println!("  {token}\n\nTry it from another terminal:\n");
        println!("{}\n", first_start::first_request(&url, token, &made));
        println!("The API's reference: {url}/docs\n");
    }
    Ok(())
}
