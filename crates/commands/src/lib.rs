//! The subcommands of `galley`, except those that serve HTTP. The program `galley` adds these.

pub mod address;
mod assets;
mod audit;
mod backup_archive;
mod backups;
mod bundle;
pub mod cli;
pub mod command_line_files;
pub mod config;
pub mod disk_space;
pub mod doctor;
mod export;
pub mod first_start;
mod group;
mod import;
mod init;
pub mod key;
pub mod logging;
mod member;
pub mod out;
mod own_files;
mod paths;
mod private_files;
mod progress;
mod search;
pub mod settings;
pub mod settings_file;
mod sign_in;
pub mod start;
mod store;
mod token;
mod types;
mod upgrade;
pub mod version;
mod workspace;

use std::process::ExitCode;

use futures_util::future::LocalBoxFuture;

use crate::cli::Command;
use crate::settings::Settings;

/// Runs a command. The program itself runs `serve`, `listen` and `openapi`.
///
/// The future is boxed, so that it is compiled in this crate, beside the server.
pub fn run(command: Command, settings: &Settings) -> LocalBoxFuture<'_, anyhow::Result<ExitCode>> {
    Box::pin(dispatch(command, settings))
}

async fn dispatch(command: Command, settings: &Settings) -> anyhow::Result<ExitCode> {
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    match command {
        Command::Init(arguments) => done(init::run(settings, &arguments).await),
        Command::Token(command) => done(token::run(settings, &command).await),
        Command::Workspace(command) => done(workspace::run(settings, &command).await),
        Command::Group(command) => done(group::run(settings, &command).await),
        Command::Assets(command) => assets::run(settings, &command).await,
        Command::Search(arguments) => done(search::run(settings, &arguments).await),
        Command::Types(arguments) => types::run(settings, &arguments).await,
        Command::Audit(arguments) => done(audit::run(settings, &arguments).await),
        Command::SignIn(arguments) => done(sign_in::run(settings, &arguments).await),
        Command::Member(command) => done(member::run(settings, &command).await),
        Command::Import(arguments) => import::run(settings, &arguments).await,
        Command::Copy(arguments) => backups::copy(settings, &arguments).await,
        Command::Backup(arguments) => backups::backup(settings, &arguments).await,
        Command::Restore(arguments) => backups::restore(settings, &arguments).await,
        Command::Verify(arguments) => backups::verify(&arguments).await,
        Command::Export(arguments) => export::run(settings, &arguments).await,
        Command::Config { .. } => done(config::run(settings)),
        Command::Doctor(arguments) => doctor::run(settings, &arguments).await,
        Command::Upgrade(arguments) => upgrade::run(settings, &arguments).await,
        Command::Serve
        | Command::Listen(_)
        | Command::Openapi
        | Command::Healthcheck
        | Command::Completion { .. }
        | Command::Manpage { .. } => unreachable!("the program runs this command itself"),
    }
}
