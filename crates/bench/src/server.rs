//! A server process on a core of its own, and its resource usage.

use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// The core of the servers. The load comes from another one.
pub(crate) const SERVER_CORE: &str = "0";

/// The core of the load generator.
pub(crate) const LOAD_CORE: &str = "1";

/// The longest time until a server accepts connections.
const START_TIMEOUT: Duration = Duration::from_mins(10);

/// The clock ticks per second in `/proc/<pid>/stat`, 100 on Linux.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) struct PinnedServer {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started_in: Duration,
}

impl PinnedServer {
    /// Starts `program`, and waits until it accepts connections. `arguments` receives the address
    /// that the server must listen on.
    pub(crate) fn start<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl FnOnce(SocketAddr) -> Vec<A>,
        environment: &[(&str, String)],
    ) -> anyhow::Result<Self> {
        Self::start_on(SERVER_CORE, program, arguments, environment)
    }

    /// Starts `program` as [`Self::start`] does, on another core.
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
            if server.child.try_wait()?.is_some() || started.elapsed() > START_TIMEOUT {
                bail!("the server on {address} did not start");
            }
            sleep(Duration::from_micros(200));
        }
        server.started_in = started.elapsed();
        Ok(server)
    }

    /// Returns the processor time that the server has used, in seconds.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).context("the process has no CPU times")?;
        Ok((user + system) / TICKS_PER_SECOND)
    }

    /// Returns the resident memory of the server in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.context("the process has no memory figure")? * 1024.0)
    }
}

impl Drop for PinnedServer {
    fn drop(&mut self) {
        // This sends SIGTERM, as in ordinary operation, so that the server shuts down cleanly.
        let pid = self.child.id().to_string();
        // Under a wrapper, the server is the wrapper's child, and the wrapper ends with it.
        let _ = Command::new("pkill").args(["-P", &pid]).status();
        let _ = Command::new("kill").arg(pid).status();
        let _ = self.child.wait();
    }
}
