//! The program `galley`: the subcommands that serve HTTP, besides those of `galley-commands`.

mod healthcheck;
mod listen;
mod metrics_endpoint;
mod serve;
mod span_exporter;

use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};

use galley_commands::cli::{self, Cli, Command};
use galley_commands::{command_line_files, doctor, out, settings_file};

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
    if let Some(done) = cli.command.as_ref().and_then(command_line_files::run) {
        return done;
    }
    if let Some(Command::Listen(arguments)) = &cli.command {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(listen::run(arguments)).map(|()| ExitCode::SUCCESS);
    }
    let settings = match settings_file::load(matches) {
        Ok(settings) => settings,
        Err(error) => match &cli.command {
            Some(Command::Doctor(arguments)) => {
                return Ok(doctor::report_settings(&error, arguments));
            }
            _ => return Err(error),
        },
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(Command::Import(arguments)) = &cli.command {
        // The server may run on this machine, and its requests have priority. An import into the
        // database itself blocks other writers, so its main thread keeps the normal priority.
        if arguments.place.url.is_some() {
            galley_runtime::lower_priority(IMPORT_NICENESS);
        }
        runtime.on_thread_start(|| galley_runtime::lower_priority(IMPORT_NICENESS));
    }
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(async {
        match cli.command.unwrap_or(Command::Serve) {
            Command::Serve => serve::run(&settings).await.map(|()| ExitCode::SUCCESS),
            Command::Healthcheck => healthcheck::run(settings.listen).await,
            other => galley_commands::run(other, &settings).await,
        }
    })
}
