//! The project's own commands, started as `cargo xtask <command>`.
//!
//! This file is the command line and nothing else. Each command is a module of its own:
//! [`test`](mod@test), [`prove`], [`serve`] (`cargo xtask postgres`), [`openapi`] and [`bench`](mod@bench). What they
//! share is [`postgres`], the throw-away server, [`python`], what tests need of that, [`programs`], others that they
//! need, [`child`], how other programs are run, and [`cargo`], how Cargo is.

mod arguments;
mod bench;
mod cargo;
mod child;
mod debian;
mod fuzz;
mod node;
mod openapi;
mod paths;
mod postgres;
mod programs;
mod prove;
mod python;
mod serve;
mod signals;
mod step;
mod test;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

use arguments::{ProveArguments, TestArguments};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the tests of the whole workspace, on SQLite and on a throw-away PostgreSQL.
    Test(TestArguments),
    /// Keeps the same throw-away PostgreSQL up while a command runs, or until Ctrl-C.
    Postgres {
        /// The command, which finds the address in GALLEY_TEST_POSTGRES_URL.
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Measures how fast Galley is beside yardsticks, with wrk: half an hour, and 15 GB for a store of a million pieces.
    Bench {
        /// Handed on to what measures: `-- --few 1000 hot cold`; `-- --help` tells of the sections.
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// Runs what trust in Galley rests on, and prints a table of what was found.
    Prove(ProveArguments),
    /// Writes openapi.json from the code.
    Openapi {
        /// Writes nothing, and fails when the committed file differs from the code.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Postgres { command } => serve::run(&command),
        Command::Bench { arguments } => bench::run(&arguments),
        Command::Prove(arguments) => prove::run(&arguments),
        Command::Openapi { check: true } => openapi::check(),
        Command::Openapi { check: false } => openapi::write(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
