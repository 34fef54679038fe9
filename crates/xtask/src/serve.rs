//! `cargo xtask postgres`: the throw-away server for development, while a command runs or until
//! Ctrl-C.

use std::{
    ffi::OsString,
    process::{Command, ExitCode},
    thread,
};

use anyhow::{Result, anyhow};

use crate::{
    child,
    postgres::{self, Place, Provision, TemporaryServer},
    signals::Signals,
};

/// Keeps a server running during a command, and returns the command's exit code.
pub(crate) fn run(command: &[OsString]) -> Result<ExitCode> {
    let signals = Signals::listen()?;
    let provision = match postgres::provide(&[], Place::Disk) {
        Provision::Missing(reason) => {
            return Err(reason.context("no PostgreSQL server is available"));
        }
        provision => provision,
    };
    let variables =
        provision.variables().into_iter().filter_map(|(name, value)| Some((name, value?)));
    let variables: Vec<(&str, OsString)> = variables.collect();
    for (name, value) in &variables {
        eprintln!("{name}={}", value.display());
    }
    match (command, provision) {
        ([program, arguments @ ..], provision) => {
            let mut command = Command::new(program);
            command.args(arguments).envs(variables);
            let _up = provision;
            Ok(child::exit_code(child::run(&mut command, &signals)?))
        }
        ([], Provision::Started(server)) => wait(server, &signals),
        // A server that the user named keeps running without this command.
        ([], _) => Ok(ExitCode::SUCCESS),
    }
}

fn wait(mut server: TemporaryServer, signals: &Signals) -> Result<ExitCode> {
    eprintln!("Ctrl-C stops the server and removes its data.");
    while signals.received().is_none() {
        if !server.is_running() {
            return Err(anyhow!("the server exited unexpectedly:\n{}", server.log_tail()));
        }
        thread::sleep(child::POLL_INTERVAL);
    }
    Ok(ExitCode::SUCCESS)
}
