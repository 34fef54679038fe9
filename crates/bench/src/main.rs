//! Galley's performance beside yardsticks, measured within the same minutes: `cargo xtask bench`.
//!
//! Absolute figures mean little on a shared machine. So each operation is measured in turns with a
//! server that does only the minimum for the same response, and the report states the ratio.
//!
//! - [`plan`] defines the sections, and the yardstick of each.
//! - [`operations`] defines the requests.
//! - [`assets`] measures files and renditions.
//! - [`searches`] measures searches and the index of them.
//! - [`rows`] measures in turns.
//! - [`load`] drives a server with wrk.
//! - [`server`] starts a server on a core of its own and reads its resource usage.
//! - [`store`] fills a store.
//! - [`yardsticks`] contains the servers to compare with.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures for people have few digits"
)]

mod assets;
mod client;
mod files;
mod load;
mod operations;
mod plan;
mod rows;
mod searches;
mod server;
mod store;
mod table;
mod yardsticks;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "galley-bench")]
struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Measure, and print tables.
    Run(plan::Plan),
    /// Respond to every request with as many bytes as its path states: the upper limit of HTTP on
    /// this machine.
    #[command(hide = true)]
    Constant { address: SocketAddr },
    /// Serve from a Galley store, with the least code that produces the same JSON.
    #[command(hide = true)]
    Floor { address: SocketAddr, file: PathBuf },
    /// Serve a single piece from PostgreSQL in the same way.
    #[command(hide = true)]
    PostgresFloor { address: SocketAddr, url: String },
    /// Write the rows of received titles, in groups.
    #[command(hide = true)]
    CommitsServer { address: SocketAddr, file: PathBuf },
    /// Write the rows of new titles, with `group` titles in a transaction, and print the titles per
    /// second.
    #[command(hide = true)]
    Commits { file: PathBuf, group: usize, seconds: u64 },
}

fn main() -> anyhow::Result<()> {
    match BenchArguments::parse().command {
        BenchCommand::Run(plan) => plan.run(),
        BenchCommand::Constant { address } => yardsticks::constant::serve(address),
        BenchCommand::Floor { address, file } => yardsticks::floor::serve(address, file),
        BenchCommand::PostgresFloor { address, url } => yardsticks::postgres::serve(address, &url),
        BenchCommand::CommitsServer { address, file } => yardsticks::commits::serve(address, &file),
        BenchCommand::Commits { file, group, seconds } => {
            yardsticks::commits::run(&file, group, seconds)
        }
    }
}
