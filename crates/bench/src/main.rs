//! How fast Galley is, beside yardsticks that are measured in the same minutes: `cargo xtask bench`.
//!
//! Absolute figures say little on a machine that others share. So each operation is measured in turns with something
//! that does nothing but the least that could answer it, and what is told is the ratio of the two.
//!
//! [`plan`] says what is measured against what, [`operations`] what is asked; [`rows`] takes turns; [`load`] drives a
//! server with wrk; [`server`] starts one on a core of its own and reads what it costs; [`store`] fills one;
//! [`yardsticks`] are what it is compared with.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures for people have few digits"
)]

mod client;
mod files;
mod load;
mod operations;
mod plan;
mod rows;
mod server;
mod store;
mod table;
mod yardsticks;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "galley-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures, and prints tables.
    Run(plan::Plan),
    /// Answers every request with so many bytes as its path says: the limit of what HTTP allows here.
    #[command(hide = true)]
    Constant { address: SocketAddr },
    /// Answers from a store of Galley's, with the least code that gives the same JSON.
    #[command(hide = true)]
    Floor { address: SocketAddr, file: PathBuf },
    /// The same on PostgreSQL, for one piece.
    #[command(hide = true)]
    PostgresFloor { address: SocketAddr, url: String },
    /// Writes the rows of new titles that are sent, in groups.
    #[command(hide = true)]
    CommitsServer { address: SocketAddr, file: PathBuf },
    /// Writes the rows of new titles, so many in a transaction, and prints how many in a second.
    #[command(hide = true)]
    Commits { file: PathBuf, group: usize, seconds: u64 },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Run(plan) => plan.run(),
        Command::Constant { address } => yardsticks::constant::serve(address),
        Command::Floor { address, file } => yardsticks::floor::serve(address, file),
        Command::PostgresFloor { address, url } => yardsticks::postgres::serve(address, &url),
        Command::CommitsServer { address, file } => yardsticks::commits::serve(address, &file),
        Command::Commits { file, group, seconds } => {
            yardsticks::commits::run(&file, group, seconds)
        }
    }
}
