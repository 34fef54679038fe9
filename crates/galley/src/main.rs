//! The program `galley`, with one file for each subcommand.

mod backups;
mod bundle;
mod check;
mod cli;
mod config;
mod export;
mod first_start;
mod group;
mod group_path;
mod import;
mod init;
mod key;
mod listen;
mod logging;
mod member;
mod out;
mod own_files;
mod paths;
mod progress;
mod serve;
mod settings;
mod store;
mod token;
mod version;
mod workspace;

use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};

use cli::{Cli, Command};

/// The niceness of import threads, so that other processes get the CPU first.
const IMPORT_NICENESS: i32 = 19;

fn main() -> ExitCode {
    // Invalid usage exits here, with status 2.
    let matches = cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli, &matches) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("galley: {}", out::escape_for_terminal(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    if matches!(cli.command, Some(Command::Openapi)) {
        // The document is the same everywhere, so it needs neither settings nor a database.
        out::line(format_args!("{}", galley_server::router::openapi_text().trim_end()));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(Command::Listen(arguments)) = &cli.command {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(listen::run(arguments)).map(|()| ExitCode::SUCCESS);
    }
    let settings = settings::load(matches)?;
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(Command::Import(arguments)) = &cli.command {
        // The server may run on this machine, and its requests have priority. An import into the
        // database itself blocks other writers, so its main thread keeps the normal priority.
        if arguments.url.is_some() {
            galley_runtime::lower_priority(IMPORT_NICENESS);
        }
        runtime.on_thread_start(|| galley_runtime::lower_priority(IMPORT_NICENESS));
    }
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(async {
        match cli.command.unwrap_or(Command::Serve) {
            Command::Serve => done(serve::run(&settings).await),
            Command::Init(arguments) => done(init::run(&settings, &arguments).await),
            Command::Token(command) => done(token::run(&settings, &command).await),
            Command::Workspace(command) => done(workspace::run(&settings, &command).await),
            Command::Group(command) => done(group::run(&settings, &command).await),
            Command::Member(command) => done(member::run(&settings, &command).await),
            Command::Import(arguments) => Box::pin(import::run(&settings, &arguments)).await,
            Command::Copy(arguments) => done(backups::copy(&settings, &arguments).await),
            Command::Backup(arguments) => done(backups::backup(&settings, &arguments).await),
            Command::Restore(arguments) => done(backups::restore(&settings, &arguments).await),
            Command::Verify(arguments) => done(backups::verify(&arguments).await),
            Command::Export(arguments) => export::run(&settings, &arguments).await,
            Command::Config => done(config::run(&settings)),
            Command::Check => check::run(&settings).await,
            Command::Openapi | Command::Listen(_) => {
                unreachable!("done before the settings are read")
            }
        }
    })
}
