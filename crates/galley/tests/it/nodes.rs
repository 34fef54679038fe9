//! Three servers on one PostgreSQL behind a load balancer, killed and replaced one by one under
//! load.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use galley_testing::{TestStore, report_skipped};

use crate::kills::{CLIENTS, Load, assert_acknowledged_is_stored, receive_from, role};
use crate::program::{Program, free_port, galley, init_token};

/// The configuration that Galley ships.
const CONFIGURATION: &str = include_str!("../../../../deploy/haproxy.cfg");

/// HAProxy in front of the three nodes.
struct Balancer {
    child: Child,
    url: String,
    /// The socket for HAProxy's list of available nodes.
    socket: PathBuf,
}

/// The timeout for HAProxy to detect a node.
const DETECTION_TIMEOUT: Duration = Duration::from_mins(1);

impl Balancer {
    /// Starts HAProxy. Returns `None` if it isn't installed.
    async fn start(store: &TestStore, nodes: &[u16; 3]) -> Option<Self> {
        let Some(program) = std::env::var_os("GALLEY_TEST_HAPROXY") else {
            report_skipped("HAProxy: GALLEY_TEST_HAPROXY is not set (cargo xtask test sets it)");
            return None;
        };
        let port = free_port();
        let mut configuration =
            CONFIGURATION.replace("bind :80", &format!("bind 127.0.0.1:{port}"));
        for (number, node) in nodes.iter().enumerate() {
            let (named, own) =
                (format!("10.0.0.1{}:8080", number + 1), format!("127.0.0.1:{node}"));
            assert!(configuration.contains(&named), "it names three nodes");
            configuration = configuration.replace(&named, &own);
        }
        let socket = store.directory().join("haproxy.sock");
        let global = format!("global\n    stats socket {}\n", socket.display());
        let file = store.directory().join("haproxy.cfg");
        std::fs::write(&file, global + &configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("-db").arg("-f").arg(file).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut balancer = Self { child, url: format!("http://127.0.0.1:{port}"), socket };
        balancer.wait_for_all().await;
        Some(balancer)
    }

    /// Waits until HAProxy sends requests to all three nodes.
    async fn wait_for_all(&mut self) {
        let started = Instant::now();
        while self.count_up() < 3 {
            assert!(self.child.try_wait().unwrap().is_none(), "HAProxy ended");
            assert!(started.elapsed() < DETECTION_TIMEOUT, "HAProxy doesn't see all nodes");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the number of nodes that HAProxy sends requests to.
    fn count_up(&self) -> usize {
        let Ok(mut socket) = UnixStream::connect(&self.socket) else { return 0 };
        let mut table = String::new();
        socket.write_all(b"show stat\n").unwrap();
        socket.read_to_string(&mut table).unwrap();
        let is_up = |line: &&str| {
            let mut cells = line.split(',');
            let (backend, name, status) = (cells.next(), cells.next(), cells.nth(15));
            backend == Some("nodes") && name != Some("BACKEND") && status == Some("UP")
        };
        table.lines().filter(is_up).count()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node(store: &TestStore, port: u16) -> Program {
    let mut command = galley(store);
    // The stop delay that the configuration requires.
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_SHUTDOWN_DELAY", "4");
    command.env("GALLEY_INVITES_PER_HOUR", "1000000");
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
    Program::start(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_are_killed_and_replaced_one_after_another_under_load() {
    let Some(store) = TestStore::postgres().await else { return };
    let ports = [free_port(), free_port(), free_port()];
    let mut nodes = ports.map(|port| node(&store, port));
    let Some(mut balancer) = Balancer::start(&store, &ports).await else { return };
    let group = nodes[0].group().await;
    let receiver = receive_from(&nodes[0], &group).await;
    let load = Arc::new(Load::behind_balancer());
    let clients = load.start(&balancer.url, &group, &role(&nodes[0]).await);
    let failed = || load.failed.swap(0, Ordering::Relaxed);
    load.wait_for(20).await;
    assert_eq!(failed(), 0, "all are there");
    // Stop signals, as for an upgrade: no request fails.
    for (node_of, port) in nodes.iter_mut().zip(ports) {
        assert!(node_of.terminate().success());
        *node_of = node(&store, port);
        balancer.wait_for_all().await;
        load.wait_for(10).await;
        assert_eq!(failed(), 0, "a node was replaced in order");
    }
    let (mut kills, mut most) = (0, 0);
    for (node_of, port) in nodes.iter_mut().zip(ports) {
        load.wait_for(10).await;
        node_of.kill();
        kills += 1;
        load.wait_for(10).await;
        let failed = failed();
        assert!(failed <= CLIENTS, "{failed} failed, more than were in flight");
        most = most.max(failed);
        *node_of = node(&store, port);
        balancer.wait_for_all().await;
    }
    let acknowledged = load.end(clients).await;
    let twice = assert_acknowledged_is_stored(&store, &nodes[0], &receiver, &acknowledged).await;
    eprintln!(
        "three nodes: {} answered, 3 replaced in order with 0 requests failed, {kills} killed with at most {most}; \
         0 lost, {twice} deliveries twice",
        acknowledged.len()
    );
    assert!(twice <= kills * 24, "{twice} came twice, more than were under way at {kills} kills");
}
