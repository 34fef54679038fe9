//! A server on a core of its own, and what it costs.

use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// The core of the servers; the load comes from another one.
pub(crate) const SERVER_CORE: &str = "0";

/// The core that the load comes from.
pub(crate) const LOAD_CORE: &str = "1";

/// How long a server may take to begin.
const START_MAX: Duration = Duration::from_mins(10);

/// Ticks of a process's times in a second, on every Linux.
const TICKS: f64 = 100.0;

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started_in: Duration,
}

impl Server {
    /// Starts `program`, and waits until it takes connections. Its arguments follow from its address.
    pub(crate) fn start<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl FnOnce(SocketAddr) -> Vec<A>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<Self> {
        Self::start_on(SERVER_CORE, program, arguments, environment)
    }

    /// The same on another core.
    pub(crate) fn start_on<A: AsRef<OsStr>>(
        core: &str,
        program: impl AsRef<OsStr>,
        arguments: impl FnOnce(SocketAddr) -> Vec<A>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new("taskset");
        command.args(["-c", core]).arg(program).args(arguments(address));
        command.env("GALLEY_ADDR", address.to_string()).env("GALLEY_LOG", "warn");
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let started = Instant::now();
        let child = command.stdout(Stdio::null()).spawn().context("taskset")?;
        let mut server = Self { child, address, started_in: Duration::ZERO };
        while TcpStream::connect(address).is_err() {
            if server.child.try_wait()?.is_some() || started.elapsed() > START_MAX {
                bail!("the server on {address} did not start");
            }
            sleep(Duration::from_micros(200));
        }
        server.started_in = started.elapsed();
        Ok(server)
    }

    /// Seconds of processor time that it has used.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).context("a process has times")?;
        Ok((user + system) / TICKS)
    }

    /// Bytes that it holds in memory.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.context("a process has memory")? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // As the user would stop it, so that it leaves its files tidy.
        let pid = self.child.id().to_string();
        // Where it runs under another program, that one ends with it.
        let _ = Command::new("pkill").args(["-P", &pid]).status();
        let _ = Command::new("kill").arg(pid).status();
        let _ = self.child.wait();
    }
}
