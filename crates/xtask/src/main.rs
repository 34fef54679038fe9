//! The project's own commands, started as `cargo xtask <command>`.
//!
//! This file is the command line only. Each command is a module: [`test`](mod@test),
//! [`reliability`], [`serve`] (`cargo xtask postgres`), [`openapi`], [`book`], [`dist`] and
//! [`bench`](mod@bench).
//! Shared modules:
//!
//! - [`postgres`] is the throw-away server.
//! - [`python`] and [`programs`] provide the Python environments and other programs that tests
//!   need.
//! - [`child`] and [`cargo`] run other programs and Cargo.

mod arguments;
mod bench;
mod book;
mod cargo;
mod child;
mod debian;
mod dist;
mod fuzz;
mod node;
mod openapi;
mod paths;
mod postgres;
mod programs;
mod python;
mod reliability;
mod serve;
mod signals;
mod step;
mod test;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

use arguments::{ReliabilityArguments, TestArguments};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct XtaskArguments {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Run the tests of the whole workspace, on SQLite and on a throw-away PostgreSQL.
    Test(TestArguments),
    /// Keep the same throw-away PostgreSQL running during a command, or until Ctrl-C.
    Postgres {
        /// The command, which finds the address in GALLEY_TEST_POSTGRES_URL.
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Measure Galley's performance beside yardsticks, with wrk: half an hour, and 15 GB for a
    /// store of a million pieces.
    Bench {
        /// Arguments for galley-bench: `-- --few 1000 hot cold`. `-- --help` lists the sections.
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// Run the reliability suite, and print a table of the results.
    Reliability(ReliabilityArguments),
    /// Write openapi.json from the code.
    Openapi,
    /// Build the documentation as a site with search, in target/book.
    Book,
    /// Build the files of a release: archive, Debian package, container image, licences, bill of
    /// materials and checksums, in target/distribution.
    Dist {
        /// Pack the program that an earlier run has built.
        #[arg(long)]
        no_build: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match XtaskArguments::parse().command {
        XtaskCommand::Test(arguments) => test::run(&arguments),
        XtaskCommand::Postgres { command } => serve::run(&command),
        XtaskCommand::Bench { arguments } => bench::run(&arguments),
        XtaskCommand::Reliability(arguments) => reliability::run(&arguments),
        XtaskCommand::Book => book::run(),
        XtaskCommand::Dist { no_build } => dist::run(no_build),
        XtaskCommand::Openapi => openapi::write(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
