//! The project's own commands, started as `cargo xtask <command>`.
//!
//! This file is the command line and nothing else. Each command is a module of its own:
//! [`test`](mod@test), [`prove`], [`serve`] (`cargo xtask postgres`), [`openapi`] and [`bench`](mod@bench). What they
//! share is [`postgres`], the throw-away server, [`python`], what tests need of that, [`programs`], others that they
//! need, [`child`], how other programs are run, and [`cargo`], how Cargo is.

mod bench;
mod cargo;
mod child;
mod debian;
mod fuzz;
mod node;
mod openapi;
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

/// What `cargo xtask test` was asked for.
#[derive(clap::Args)]
struct TestArguments {
    /// Leaves out the tests that need PostgreSQL.
    #[arg(long, conflicts_with = "require_postgres")]
    no_postgres: bool,
    /// Fails when no PostgreSQL can be had, instead of leaving out the tests that need it.
    #[arg(long)]
    require_postgres: bool,
    /// Handed on to `cargo test`: `-- --package galley-storage some_name -- --nocapture`.
    #[arg(last = true)]
    cargo_arguments: Vec<OsString>,
}

/// What `cargo xtask prove` was asked for.
#[derive(clap::Args)]
struct ProveArguments {
    /// `short` takes ten minutes, `long` some hours.
    #[arg(value_enum, default_value_t = Size::Short)]
    size: Size,
    /// Only these parts.
    parts: Vec<String>,
}

/// How much is proved.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Size {
    /// What every change gets.
    Short,
    /// What a release gets.
    Long,
}

impl Size {
    fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
        }
    }
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
