//! Measures the gain of a second server, and the cost of a transaction that stays open.
//!
//! ```sh
//! cargo bench -p galley --bench nodes [two|open]…
//! ```
//!
//! The benchmark uses the PostgreSQL that `GALLEY_TEST_POSTGRES_URL` names. `GALLEY_BENCH_SECONDS`
//! is the time for which the transaction stays open, 120 by default.

#![allow(
    clippy::unwrap_used,
    clippy::assigning_clones,
    reason = "a benchmark ends where something is not as it expects"
)]

#[path = "../tests/it/program.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod program;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::{Behaviour, Receiver, TestStore};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::NoTls;

use program::{Program, free_port, galley, init_token, piece};

/// The latency of every packet to and from the database.
const LATENCY: Duration = Duration::from_millis(5);

/// The number of clients.
const CLIENTS: usize = 64;

/// The duration of one measurement.
const ROUND: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    if runs("two") {
        two().await;
    }
    if runs("open") {
        open().await;
    }
}

fn serve(url: &str, store: &TestStore) -> Program {
    let mut command = galley(store);
    command.env("GALLEY_DATABASE_URL", url).env("GALLEY_INIT_TOKEN", init_token());
    command.env("GALLEY_RESPONSE_CACHE_SIZE", "0");
    command.args(["serve", "--listen", &format!("127.0.0.1:{}", free_port())]);
    Program::start(command)
}

/// Measures one server and two, with a distant database: the connections limit the throughput of
/// one server.
async fn two() {
    let Some(store) = TestStore::postgres().await else { return };
    let DatabaseUrl::Postgres(url) = &store.url else { unreachable!("it is one") };
    let far = delayed(url).await;
    let nodes = [serve(&far, &store), serve(&far, &store)];
    let group = nodes[0].group().await;
    let mut ids = Vec::new();
    for number in 0..50 {
        let made = nodes[0].request(Method::POST, "/content-pieces");
        let made = made.json(&piece(&group, &format!("p{number}"), "<p>Text</p>")).send().await;
        let made: Value = made.unwrap().json().await.unwrap();
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    let ids = Arc::new(ids);
    let (mut gets, mut puts) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        for (writes, ratios) in [(false, &mut gets), (true, &mut puts)] {
            let one = load(&nodes[..1], &ids, writes).await;
            let both = load(&nodes, &ids, writes).await;
            ratios.push((one, both, both / one));
        }
    }
    for (name, ratios) in [("get", gets), ("new title", puts)] {
        for (one, both, ratio) in ratios {
            println!(
                "{name}, {LATENCY:?} each way to the database: one server {one:.0}/s, two {both:.0}/s, {ratio:.2} times"
            );
        }
    }
}

/// Returns the number of requests per second. The clients are spread evenly over the nodes.
async fn load(nodes: &[Program], ids: &Arc<Vec<String>>, writes: bool) -> f64 {
    let client = Client::builder().no_proxy().build().unwrap();
    let (count, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let started = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (client, url) = (client.clone(), nodes[number % nodes.len()].url.clone());
            let (ids, count, ends) = (Arc::clone(ids), Arc::clone(&count), Arc::clone(&ends));
            tokio::spawn(async move {
                for turn in 0.. {
                    if ends.load(Ordering::Relaxed) {
                        return;
                    }
                    // Clients change different pieces, as far as there are enough of them.
                    let id = &ids[if writes {
                        number % ids.len()
                    } else {
                        (number * 31 + turn) % ids.len()
                    }];
                    let request = if writes {
                        let change = json!({"id": id, "title": format!("{number} {turn}")});
                        client.put(format!("{url}/content-pieces")).json(&change)
                    } else {
                        client.get(format!("{url}/content-pieces?id={id}&content=true"))
                    };
                    let response = request.bearer_auth(init_token()).send().await.unwrap();
                    assert!(response.status().is_success(), "{response:?}");
                    response.bytes().await.unwrap();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(ROUND).await;
    ends.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    per_second(count.load(Ordering::Relaxed), started.elapsed())
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Starts a proxy that adds latency to a database. Returns its URL.
async fn delayed(url: &str) -> String {
    let config: tokio_postgres::Config = url.parse().unwrap();
    let (name, port) = (config.get_dbname().unwrap().to_owned(), config.get_ports()[0]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            for stream in [&near, &far] {
                stream.set_nodelay(true).unwrap();
            }
            let ((near_read, near_write), (far_read, far_write)) =
                (near.into_split(), far.into_split());
            tokio::spawn(forward_delayed(near_read, far_write));
            tokio::spawn(forward_delayed(far_read, near_write));
        }
    });
    format!("postgres://galley@127.0.0.1:{own}/{name}")
}

/// Forwards data, each part after the latency.
async fn forward_delayed(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
) {
    let (send, mut due) = tokio::sync::mpsc::unbounded_channel::<(tokio::time::Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((at, bytes)) = due.recv().await {
            tokio::time::sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let at = tokio::time::Instant::now() + LATENCY;
        if send.send((at, buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}

/// The changes per second while deliveries are counted: about a quarter of the maximum.
const CHANGES: u32 = 200;

/// Measures deliveries per second under a steady load: before a transaction opens, while it is
/// open, and after it. The transaction has made a change and read everything, so no dead row of
/// that time can be removed.
async fn open() {
    let Some(store) = TestStore::postgres().await else { return };
    let DatabaseUrl::Postgres(url) = &store.url else { unreachable!("it is one") };
    let seconds = std::env::var("GALLEY_BENCH_SECONDS").ok();
    let open_for = Duration::from_secs(seconds.map_or(120, |text| text.parse().unwrap()));
    let program = serve(url, &store);
    let group = program.group().await;
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let webhook = json!({"url": receiver.url, "name": "w", "event": "contentPieceUpdated",
        "metadata": {"contentGroupId": group}});
    let made = program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
    assert!(made.status().is_success());
    let mut ids = Vec::new();
    for number in 0..8 {
        let made = program.request(Method::POST, "/content-pieces");
        let made = made.json(&piece(&group, &format!("p{number}"), "<p>Text</p>")).send().await;
        let made: Value = made.unwrap().json().await.unwrap();
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    let ends = Arc::new(AtomicBool::new(false));
    let changes = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = ids
        .into_iter()
        .map(|id| {
            let (url, ends, changes) =
                (program.url.clone(), Arc::clone(&ends), Arc::clone(&changes));
            tokio::spawn(async move {
                let client = Client::builder().no_proxy().build().unwrap();
                let mut due = tokio::time::interval(Duration::from_secs(8) / CHANGES);
                for turn in 0.. {
                    due.tick().await;
                    if ends.load(Ordering::Relaxed) {
                        return;
                    }
                    let change = json!({"id": id, "title": format!("{turn}")});
                    let change = client.put(format!("{url}/content-pieces")).json(&change);
                    change.bearer_auth(init_token()).send().await.unwrap();
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let deliveries = async |time: Duration| {
        let (before, started) = (receiver.count(), Instant::now());
        tokio::time::sleep(time).await;
        per_second(receiver.count() - before, started.elapsed())
    };
    deliveries(ROUND).await;
    let before = deliveries(6 * ROUND).await;
    let (foreign, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let touch = "BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE TABLE foreign_table (a INT);
        SELECT count(*) FROM events; SELECT count(*) FROM deliveries";
    foreign.batch_execute(touch).await.unwrap();
    let opened = Instant::now();
    while opened.elapsed() < open_for {
        let during = deliveries(6 * ROUND).await;
        println!(
            "deliveries beside a transaction that is open for {:.0} s: {during:.0}/s, before it {before:.0}/s, {:.2} of that; \
             {} changes are not delivered yet",
            opened.elapsed().as_secs_f64(),
            during / before,
            changes.load(Ordering::Relaxed).saturating_sub(receiver.count())
        );
    }
    foreign.batch_execute("ROLLBACK").await.unwrap();
    drop(foreign);
    connection.await.unwrap().unwrap();
    let after = deliveries(6 * ROUND).await;
    println!("after it: {after:.0}/s, {:.2}", after / before);
    ends.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
}
