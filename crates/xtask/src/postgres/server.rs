//! A throw-away server: creation, start, readiness check and stop.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::{
    binaries::Binaries,
    privileges::Account,
    scratch::{self, Place, Scratch},
};
use crate::child;

/// The longest time until a server accepts connections.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// The longest time until a server ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of attempts to start a server. Its port is free when chosen, but another process may
/// bind it before the server does.
const START_ATTEMPTS_LIMIT: u32 = 3;
/// The number of lines of the server's log that an error shows.
const LOG_TAIL_LINES: usize = 40;

/// The server's settings: as durable as the product demands, and sized for parallel tests.
const SETTINGS: [&str; 8] = [
    "fsync=on",
    "synchronous_commit=on",
    "max_connections=300",
    "shared_buffers=64MB",
    "listen_addresses=127.0.0.1",
    // Socket paths have a short maximum length, and the tests don't use sockets.
    "unix_socket_directories=",
    // JIT compiles long queries, which tests don't have, and needs a library that may be missing.
    "jit=off",
    "logging_collector=off",
];

/// A running server, stopped and removed when this is dropped.
pub(crate) struct TemporaryServer {
    process: Child,
    url: String,
    scratch: Scratch,
}

impl TemporaryServer {
    /// Creates a database and starts a server for it, with the settings for tests and then these.
    pub(super) fn start(
        binaries: &Binaries,
        account: &Account,
        settings: &[&str],
        place: Place,
    ) -> Result<Self> {
        scratch::remove_left_over(binaries, account);
        let scratch = Scratch::create(account, place)?;
        create_database(binaries, account, &scratch)?;
        for program in ["initdb", "postgres"] {
            binaries.write_script(program, account, scratch.path())?;
        }
        let mut attempt = 1;
        let (process, port) = loop {
            match launch(binaries, account, &scratch, settings) {
                Ok(launched) => break launched,
                Err(error) if attempt == START_ATTEMPTS_LIMIT => return Err(error),
                Err(_) => attempt += 1,
            }
        };
        let url = format!("postgres://galley@127.0.0.1:{port}/postgres");
        Ok(Self { process, url, scratch })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the directory with scripts that run `initdb` and `postgres`. Other servers may keep
    /// their data in it.
    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns the directory for temporary files of tests, if it is in memory.
    pub(crate) fn temporary(&self) -> Option<PathBuf> {
        self.scratch.temporary()
    }

    /// Returns true if the server process has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Returns the end of the server's log.
    pub(crate) fn log_tail(&self) -> String {
        log_tail(&self.scratch.log())
    }
}

impl Drop for TemporaryServer {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}

fn create_database(binaries: &Binaries, account: &Account, scratch: &Scratch) -> Result<()> {
    let mut command = binaries.command("initdb", account);
    command.args(["--locale=C", "--encoding=UTF8", "--auth=trust", "--username=galley"]);
    // The server syncs its commits. Only the files written by initdb are not synced.
    command.arg("--no-sync").arg("--pgdata").arg(scratch.data()).current_dir(scratch.path());
    child::output(&mut command).map(drop).with_context(|| {
        let place = scratch.path().display();
        match account.name() {
            Some(name) => format!(
                "no database can be created in {place} as the user {name}; set TMPDIR to a \
                 directory that this user can reach"
            ),
            None => format!("no database can be created in {place}"),
        }
    })
}

/// Starts the server on a free port, and waits until it accepts connections.
fn launch(
    binaries: &Binaries,
    account: &Account,
    scratch: &Scratch,
    settings: &[&str],
) -> Result<(Child, u16)> {
    let port = free_port()?;
    let log = File::create(scratch.log()).context("cannot create the server's log")?;
    let mut command = binaries.command("postgres", account);
    command.args(SETTINGS.iter().chain(settings).flat_map(|setting| ["-c", setting]));
    command.arg("-p").arg(port.to_string()).arg("-D").arg(scratch.data());
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // The server has a process group of its own, as Ctrl-C in the terminal must reach the tests
    // first.
    command.current_dir(scratch.path()).process_group(0);
    let mut process = command.spawn().context("postgres cannot be started")?;
    if let Err(error) = wait_until_ready(&mut process, &scratch.data()) {
        stop(&mut process);
        let log = log_tail(&scratch.log());
        bail!("{error:#}; the server's log ends with:\n{log}");
    }
    Ok((process, port))
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .context("cannot find a free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

fn wait_until_ready(process: &mut Child, data: &Path) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while !is_ready(data) {
        if let Some(status) = process.try_wait()? {
            bail!("PostgreSQL ended with {status} while starting");
        }
        if Instant::now() >= deadline {
            bail!("PostgreSQL was not ready after {} s", START_TIMEOUT.as_secs());
        }
        thread::sleep(child::POLL_INTERVAL);
    }
    Ok(())
}

/// Reads the server's state from the same place as `pg_ctl --wait`: the eighth line of its pid
/// file.
fn is_ready(data: &Path) -> bool {
    let pid_file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    pid_file.lines().nth(7).is_some_and(|state| state.trim() == "ready")
}

/// Ends the server without a checkpoint, as its data is not read again.
fn stop(process: &mut Child) {
    child::send(process, Signal::QUIT);
    let deadline = Instant::now() + STOP_TIMEOUT;
    while matches!(process.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            let _ = process.kill();
            let _ = process.wait();
            return;
        }
        thread::sleep(child::POLL_INTERVAL);
    }
}

fn log_tail(path: &Path) -> String {
    let log = fs::read(path).unwrap_or_default();
    child::last_lines(&String::from_utf8_lossy(&log), LOG_TAIL_LINES)
}
