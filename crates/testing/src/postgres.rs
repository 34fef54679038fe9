//! PostgreSQL servers owned by a single test, which stops, crashes and replaces them.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::store::{TestStore, report_skipped};

/// The variable that names a directory with scripts that run `initdb` and `postgres`, and with
/// space for data.
const DIRECTORY: &str = "GALLEY_TEST_POSTGRES_DIRECTORY";

/// The longest time until a server accepts connections.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// The standby's `application_name`.
const STANDBY: &str = "standby";

/// A PostgreSQL server, which stops when this is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    process: Option<Child>,
    program: PathBuf,
    data: PathBuf,
    port: u16,
    /// The directory of all servers of the test, removed when the last of them is dropped.
    directory: Arc<TempDir>,
}

impl PostgresServer {
    /// Starts an empty primary and a synchronous standby. Returns `None` if the tests have no
    /// PostgreSQL programs.
    pub async fn with_standby() -> Option<(Self, Self)> {
        let Some(programs) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
            report_skipped(&format!(
                "PostgreSQL servers: {DIRECTORY} is not set (cargo xtask test sets it)"
            ));
            return None;
        };
        let directory = Arc::new(TempDir::new_in(&programs).expect("there is room"));
        // The servers may run as another user than the test.
        let owner = fs::metadata(&programs).expect("the directory is there");
        chown(directory.path(), Some(owner.uid()), Some(owner.gid())).expect("it is handed over");
        let server = |name: &str| Self {
            process: None,
            program: programs.join("postgres"),
            data: directory.path().join(name),
            port: free_port(),
            directory: Arc::clone(&directory),
        };
        let (mut primary, mut standby) = (server("primary"), server(STANDBY));
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.args(["--locale=C", "--encoding=UTF8", "--auth=trust", "--username=galley"]);
        succeed(initdb.arg("--no-sync").arg("--pgdata").arg(&primary.data));
        succeed(Command::new("cp").arg("-a").arg(&primary.data).arg(&standby.data));
        let from =
            format!("host=127.0.0.1 port={} user=galley application_name={STANDBY}", primary.port);
        standby.configure(&format!(
            "primary_conninfo = '{from}'\nwal_retrieve_retry_interval = 500ms\nhot_standby_feedback = on\n"
        ));
        succeed(
            Command::new("cp")
                .arg("-a")
                .arg(standby.data.join("PG_VERSION"))
                .arg(standby.data.join("standby.signal")),
        );
        primary.start().await;
        standby.start().await;
        // From now on, a commit returns after the standby has received it.
        primary.configure(&format!("synchronous_standby_names = '{STANDBY}'\n"));
        primary.execute("SELECT pg_reload_conf()").await;
        Some((primary, standby))
    }

    /// Starts or restarts the server.
    pub async fn start(&mut self) {
        assert!(self.process.is_none(), "it runs");
        let mut command = Command::new(&self.program);
        let settings = [
            "max_connections=100",
            "shared_buffers=32MB",
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "jit=off",
            "logging_collector=off",
        ];
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        command.args(["-p", &self.port.to_string()]).arg("-D").arg(&self.data);
        command.current_dir(&self.data).stdin(Stdio::null()).stdout(Stdio::null());
        let log =
            OpenOptions::new().create(true).append(true).open(self.data.with_extension("log"));
        command.stderr(log.expect("there is room for a log"));
        self.process = Some(command.spawn().expect("it can be started"));
        self.wait().await;
    }

    /// Stops the server immediately, as when its machine fails. Data that was not on disk is lost.
    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let _ = Command::new("kill").args(["-QUIT", &process.id().to_string()]).status();
        let _ = process.wait();
    }

    /// Starts another server on a copy of the data of this one, which is stopped. The two servers
    /// are independent of each other.
    pub async fn copy(&self) -> Self {
        assert!(self.process.is_none(), "it runs");
        let data = self.directory.path().join("copy");
        succeed(Command::new("cp").arg("-a").arg(&self.data).arg(&data));
        let _ = fs::remove_file(data.join("postmaster.pid"));
        let (program, directory) = (self.program.clone(), Arc::clone(&self.directory));
        let mut copy = Self { process: None, program, data, port: free_port(), directory };
        copy.configure("synchronous_standby_names = ''\n");
        copy.start().await;
        copy
    }

    /// Promotes a standby to primary.
    pub async fn promote(&self) {
        self.execute("SELECT pg_promote()").await;
        self.execute("ALTER SYSTEM RESET synchronous_standby_names").await;
        self.execute("SELECT pg_reload_conf()").await;
    }

    /// Runs a statement.
    pub async fn execute(&self, sql: &str) {
        self.connect().await.expect("it answers").batch_execute(sql).await.expect("it is executed");
    }

    /// Opens a connection to the server.
    pub async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Returns the URL of the database.
    pub fn url(&self) -> String {
        format!("postgres://galley@{}/postgres", self.address())
    }

    /// Returns host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the server's database as a test store.
    pub fn store(&self) -> TestStore {
        TestStore::at(DatabaseUrl::Postgres(self.url()))
    }

    /// Appends settings to the configuration file.
    fn configure(&self, settings: &str) {
        let file = OpenOptions::new().append(true).open(self.data.join("postgresql.conf"));
        file.and_then(|mut file| file.write_all(settings.as_bytes()))
            .expect("it can be configured");
    }

    async fn wait(&mut self) {
        let started = Instant::now();
        while let Err(error) = self.connect().await {
            let process = self.process.as_mut().expect("it was started");
            let ended = process.try_wait().expect("it is this process's child");
            assert!(
                ended.is_none() && started.elapsed() < START_TIMEOUT,
                "PostgreSQL is not there: {error}:\n{}",
                read(&self.data.with_extension("log"))
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a port that was free at the time of the call.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default()
}

fn succeed(command: &mut Command) {
    let output = command.current_dir("/").output().expect("the program is there");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
