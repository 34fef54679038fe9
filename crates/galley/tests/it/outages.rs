//! Acknowledged writes are kept, and their events are delivered, when PostgreSQL or connections to
//! it fail.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::{PostgresServer, Receiver, TestStore, report_skipped};

use crate::kills::{CLIENTS, Load, LoadClient, assert_acknowledged_is_stored, receive_from, role};
use crate::program::{Program, client, free_port, galley, run, stderr, stdout};

/// The timeout for expected changes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A server with clients that write to it.
struct LoadedServer {
    program: Program,
    receiver: Receiver,
    load: Arc<Load>,
    clients: Vec<LoadClient>,
}

impl LoadedServer {
    async fn start(store: &TestStore) -> Self {
        let program = Program::serve(store, free_port());
        let group = program.group().await;
        let receiver = receive_from(&program, &group).await;
        let load = Arc::new(Load::default());
        let clients = load.start(&program.url, &group, &role(&program).await);
        Self { program, receiver, load, clients }
    }

    /// Checks that nothing is lost. Returns the number of acknowledged writes, and of repeated
    /// deliveries.
    async fn end(self, store: &TestStore) -> (usize, usize) {
        let acknowledged = self.load.end(self.clients).await;
        let twice =
            assert_acknowledged_is_stored(store, &self.program, &self.receiver, &acknowledged)
                .await;
        (acknowledged.len(), twice)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_is_restarted_and_fails_over_under_load() {
    let Some((mut primary, standby)) = PostgresServer::with_standby().await else { return };
    // The client connects to the one of the two that accepts writes.
    let both = format!(
        "postgres://galley@{},{}/postgres?application_name=galley",
        primary.address(),
        standby.address()
    );
    let store = TestStore::at(DatabaseUrl::Postgres(both));
    let work = LoadedServer::start(&store).await;
    let load = &work.load;
    load.wait_for(50).await;
    let mut restarts = Vec::new();
    for _ in 0..2 {
        primary.stop();
        // Clients receive error responses.
        let (stopped, failed) = (Instant::now(), load.failed.load(Ordering::Relaxed));
        while load.failed.load(Ordering::Relaxed) < failed + 2 * CLIENTS {
            assert!(stopped.elapsed() < TIMEOUT, "clients are not told that it is away");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        primary.start().await;
        let started = Instant::now();
        load.wait_for(1).await;
        restarts.push(started.elapsed());
        load.wait_for(50).await;
    }
    primary.stop();
    standby.promote().await;
    let started = Instant::now();
    load.wait_for(1).await;
    let failover = started.elapsed();
    load.wait_for(50).await;
    let (count, twice) = work.end(&store).await;
    assert!(twice <= 3 * 24, "{twice} came twice, more than were under way");
    eprintln!(
        "{count} answered, 0 lost, {twice} delivered twice; served {restarts:?} after a restart, {failover:?} after the failover"
    );

    // A server without fsync may lose acknowledged writes at a power loss.
    let url = format!("postgres://galley@{}/postgres", standby.address());
    let database = client(&url).await;
    database.batch_execute("ALTER SYSTEM SET fsync = off").await.unwrap();
    database.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let started = Instant::now();
    while database.query_one("SHOW fsync", &[]).await.unwrap().get::<_, String>(0) == "on" {
        assert!(started.elapsed() < TIMEOUT, "it goes on to sync");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let unsynced = TestStore::at(DatabaseUrl::Postgres(url));
    for (command, status) in [("serve", 1), ("doctor", 2)] {
        let refused = run(galley(&unsynced).arg(command));
        assert_eq!(refused.status.code(), Some(status), "{command}: {refused:?}");
        let said = format!("{}{}", stdout(&refused), stderr(&refused));
        assert!(said.contains("fsync=off"), "{command}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_cut_during_transactions() {
    let Some(store) = TestStore::postgres().await else { return };
    let work = LoadedServer::start(&store).await;
    let load = &work.load;
    load.wait_for(20).await;
    let DatabaseUrl::Postgres(url) = &store.url else { unreachable!("it is one") };
    let client = client(url).await;
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let mut cuts = 0;
    for _ in 0..20 {
        load.wait_for(5).await;
        cuts += client.query_one(cut, &[]).await.unwrap().get::<_, i64>(0);
    }
    load.wait_for(20).await;
    let (count, twice) = work.end(&store).await;
    assert!(cuts >= 20, "{cuts}");
    eprintln!("{cuts} connections cut, {count} answered, 0 lost, {twice} delivered twice");
}

/// Debian's PgBouncer in front of a database. It stops when it is dropped.
struct PgBouncer {
    child: Child,
    url: String,
}

impl PgBouncer {
    /// Starts PgBouncer. Returns `None` if it isn't installed.
    async fn start(store: &TestStore) -> Option<Self> {
        let Some(program) = std::env::var_os("GALLEY_TEST_PGBOUNCER").map(PathBuf::from) else {
            report_skipped(
                "PgBouncer: GALLEY_TEST_PGBOUNCER is not set (cargo xtask test sets it)",
            );
            return None;
        };
        let DatabaseUrl::Postgres(url) = &store.url else { unreachable!("it is one") };
        let config: tokio_postgres::Config = url.parse().unwrap();
        let (name, server_port) = (config.get_dbname().unwrap(), config.get_ports()[0]);
        let port = free_port();
        let file = store.directory().join("pgbouncer.ini");
        let configuration = format!(
            "[databases]\n{name} = host=127.0.0.1 port={server_port} user=galley dbname={name}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = session\ndefault_pool_size = 50\nmax_client_conn = 200\n"
        );
        std::fs::write(&file, configuration).unwrap();
        let mut command = Command::new(program);
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            // PgBouncer doesn't run as root.
            command.args(["-u", "nobody"]);
        }
        let child = command.arg(file).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut bouncer = Self { child, url: format!("postgres://galley@127.0.0.1:{port}/{name}") };
        let started = Instant::now();
        while tokio_postgres::connect(&bouncer.url, tokio_postgres::NoTls).await.is_err() {
            let is_starting = bouncer.child.try_wait().unwrap().is_none();
            assert!(is_starting && started.elapsed() < TIMEOUT, "PgBouncer did not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(bouncer)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_works_through_pgbouncer() {
    let Some(store) = TestStore::postgres().await else { return };
    let Some(bouncer) = PgBouncer::start(&store).await else { return };
    let through = TestStore::at(DatabaseUrl::Postgres(bouncer.url.clone()));
    let work = LoadedServer::start(&through).await;
    let load = &work.load;
    load.wait_for(100).await;
    assert_eq!(load.failed.load(Ordering::Relaxed), 0);
    work.end(&store).await;
}
