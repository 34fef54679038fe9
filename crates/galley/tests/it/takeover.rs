//! Servers that are killed while they send. The next run or other servers send their deliveries
//! without delay.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{Behaviour, PostgresServer, Receiver, TestStore, free_port, on_both_engines};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{Program, init_token, piece};

/// The limit for the first delivery after the server is ready.
const FIRST_DELIVERY_LIMIT: Duration = Duration::from_secs(2);

/// The longest gap between deliveries of a webhook while servers are killed.
const DELIVERY_GAP_LIMIT: Duration = Duration::from_secs(3);

/// Both limits on a machine with other load: a sixth of a lease, for which deliveries would stall.
const LOADED_LIMIT: Duration = Duration::from_secs(10);

/// The same limit if a server ends for good, on a machine with other load: less than a lease, and
/// less than the timeout for a server that only stops responding.
const TAKEOVER_LIMIT: Duration = Duration::from_millis(5_500);

/// The maximum number of concurrent deliveries of a webhook.
const SLOTS: usize = 8;

/// The pause of a client between two pieces, long enough for the receivers to keep up.
const WRITE_INTERVAL: Duration = Duration::from_millis(20);

/// The timeout for expected deliveries: less than a lease.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(45);

/// The time without a delivery after which no more are expected.
const QUIET_PERIOD: Duration = Duration::from_secs(2);

/// The time within which requests of a killed server arrive.
const IN_FLIGHT_TIME: Duration = Duration::from_millis(150);

/// Clients that create pieces on any of several servers until `stop` is set.
struct Writers {
    stop: AtomicBool,
    created: Mutex<HashSet<String>>,
}

impl Writers {
    fn start(
        urls: &[String],
        group: &str,
        count: usize,
        pause: Duration,
    ) -> (Arc<Self>, Vec<tokio::task::JoinHandle<()>>) {
        let writers = Arc::new(Self { stop: AtomicBool::new(false), created: Mutex::default() });
        let write = |number: usize| {
            let (writers, urls) = (Arc::clone(&writers), urls.to_vec());
            let group = group.to_owned();
            tokio::spawn(async move {
                let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5));
                let client = client.build().unwrap();
                let mut attempt = number;
                let mut slug = 0;
                while !writers.stop.load(Ordering::Relaxed) {
                    let url = format!("{}/content-pieces", urls[attempt % urls.len()]);
                    let key = format!("w{number}-{slug}");
                    let body = piece(&group, &key, "<p>Text</p>");
                    let request = client.post(url).bearer_auth(init_token());
                    let sent = request.header("idempotency-key", key).json(&body).send().await;
                    match sent {
                        Ok(response) if response.status() == StatusCode::CREATED => {
                            // If the body was lost, the next attempt gets the stored response.
                            let Ok(created) = response.json::<Value>().await else { continue };
                            let id = created["id"].as_str().unwrap().to_owned();
                            writers.created.lock().unwrap().insert(id);
                            slug += 1;
                            tokio::time::sleep(pause).await;
                        }
                        _ => {
                            attempt += 1;
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                    }
                }
            })
        };
        let tasks = (0..count).map(write).collect();
        (writers, tasks)
    }

    /// Returns the pieces whose creation was acknowledged.
    fn created(&self) -> HashSet<String> {
        let created = self.created.lock().unwrap().clone();
        assert!(!created.is_empty(), "no piece was created");
        created
    }
}

async fn create_webhook(program: &Program, group: &str, receiver: &Receiver) {
    let webhook = json!({"url": receiver.url, "name": "w", "event": "contentPieceAdded",
        "metadata": {"contentGroupId": group}});
    let made = program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
}

async fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < DELIVERY_TIMEOUT, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    started.elapsed()
}

/// Waits until each of the pieces has reached the receiver, and no delivery has arrived for a
/// while, as repeats may be late. Comparing only counts would let an unacknowledged piece replace a
/// lost one.
async fn wait_until_delivered(created: &HashSet<String>, receiver: &Receiver) {
    let started = Instant::now();
    loop {
        let ids: HashSet<String> = receiver
            .received()
            .iter()
            .map(|one| one.json()["data"]["id"].as_str().unwrap().to_owned())
            .collect();
        let lost = created.difference(&ids).count();
        if lost == 0 {
            break;
        }
        assert!(
            started.elapsed() < DELIVERY_TIMEOUT,
            "{lost} of {} deliveries were lost",
            created.len()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut so_far = 0;
    while receiver.count() > so_far {
        assert!(started.elapsed() < DELIVERY_TIMEOUT, "deliveries are repeated without an end");
        so_far = receiver.count();
        tokio::time::sleep(QUIET_PERIOD).await;
    }
}

async fn wait_until_ready(program: &Program) {
    let started = Instant::now();
    loop {
        let ready = program.request(Method::GET, "/readyz").send().await;
        if ready.is_ok_and(|response| response.status() == StatusCode::OK) {
            return;
        }
        assert!(started.elapsed() < DELIVERY_TIMEOUT, "the server is not ready");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the number of received events, and of repeated deliveries.
fn count_deliveries(receiver: &Receiver) -> (usize, usize) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for received in receiver.received() {
        *times.entry(received.field("webhook-id").to_owned()).or_default() += 1;
    }
    (times.len(), times.values().map(|times| times - 1).sum())
}

#[on_both_engines]
async fn a_restarted_server_resumes_pending_deliveries(store: TestStore) {
    let kills = size(5, 20, 100);
    let port = free_port();
    let mut program = Program::serve(&store, port);
    let group = program.group().await;
    let receiver = Receiver::start(Behaviour::After(Duration::from_millis(20))).await;
    create_webhook(&program, &group, &receiver).await;
    let (writers, tasks) = Writers::start(&[program.url.clone()], &group, 6, Duration::ZERO);
    let mut slowest = Duration::ZERO;
    for round in 0..kills {
        let so_far = receiver.count();
        wait_until("nothing is sent", || receiver.count() >= so_far + 10).await;
        tokio::time::sleep(Duration::from_millis(round as u64 * 13 % 50)).await;
        program.kill();
        tokio::time::sleep(IN_FLIGHT_TIME).await;
        let so_far = receiver.count();
        program = tokio::task::block_in_place(|| Program::serve(&store, port));
        wait_until_ready(&program).await;
        let took = wait_until("nothing is sent", || receiver.count() > so_far).await;
        slowest = slowest.max(took);
    }
    writers.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let created = writers.created();
    wait_until_delivered(&created, &receiver).await;
    let (_, repeated) = count_deliveries(&receiver);
    let found = format!(
        "first delivery after {slowest:?}, {} pieces, 0 lost, {repeated} repeated",
        created.len()
    );
    let engine = store.engine();
    eprintln!("{engine}: {kills} kills: {found}");
    report_figure(&format!("{engine}: {kills} kills and restarts"), &found, "2 s, 0 lost");
    assert!(repeated <= kills * SLOTS, "{found}");
    assert!(slowest <= size(LOADED_LIMIT, LOADED_LIMIT, FIRST_DELIVERY_LIMIT), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_continue_while_one_of_three_servers_is_killed_each_second() {
    let Some(store) = TestStore::postgres().await else { return };
    let ports = [free_port(), free_port(), free_port()];
    let mut nodes: Vec<Program> = ports.iter().map(|port| Program::serve(&store, *port)).collect();
    let group = nodes[0].group().await;
    let mut receivers = Vec::new();
    for _ in 0..4 {
        let receiver = Receiver::start(Behaviour::After(Duration::from_millis(20))).await;
        create_webhook(&nodes[0], &group, &receiver).await;
        receivers.push(receiver);
    }
    let urls: Vec<String> = nodes.iter().map(|node| node.url.clone()).collect();
    let (writers, tasks) = Writers::start(&urls, &group, 6, WRITE_INTERVAL);
    let length = Duration::from_secs(size(12, 30, 120));
    for receiver in &receivers {
        wait_until("nothing is sent", || receiver.count() > 10).await;
    }
    let (started, mut kills) = (Instant::now(), 0);
    let killed_from = tokio::time::Instant::now();
    while started.elapsed() < length {
        let next = started + Duration::from_secs(kills as u64 + 1);
        let place = kills % nodes.len();
        nodes[place].kill();
        kills += 1;
        // The test's other threads keep running meanwhile.
        nodes[place] = tokio::task::block_in_place(|| Program::serve(&store, ports[place]));
        tokio::time::sleep(next.saturating_duration_since(Instant::now())).await;
    }
    let killed_until = tokio::time::Instant::now();
    writers.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let created = writers.created();
    let (mut longest, mut repeated) = (Duration::ZERO, 0);
    for receiver in &receivers {
        wait_until_delivered(&created, receiver).await;
        repeated += count_deliveries(receiver).1;
        let received = receiver.received();
        let mut times: Vec<_> = received.iter().map(|one| one.at).collect();
        times.retain(|at| (killed_from..killed_until).contains(at));
        times.extend([killed_from, killed_until]);
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]));
        longest = longest.max(gaps.max().unwrap_or(length));
    }
    let found = format!(
        "longest silence of a webhook {longest:?}, {} pieces for {} webhooks each, 0 lost, \
         {repeated} repeated",
        created.len(),
        receivers.len()
    );
    eprintln!("{kills} kills: {found}");
    report_figure(&format!("three servers, {kills} kills, one a second"), &found, "3 s, 0 lost");
    assert!(repeated <= kills * SLOTS * receivers.len(), "{found}");
    assert!(longest <= size(LOADED_LIMIT, LOADED_LIMIT, DELIVERY_GAP_LIMIT), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_of_a_dead_server_are_claimed_by_others() {
    let Some(store) = TestStore::postgres().await else { return };
    let mut nodes = vec![Program::serve(&store, free_port())];
    let group = nodes[0].group().await;
    // All deliveries take long, so that the killed server holds slots of every webhook.
    let mut receivers = Vec::new();
    for _ in 0..4 {
        let receiver = Receiver::start(Behaviour::After(Duration::from_millis(300))).await;
        create_webhook(&nodes[0], &group, &receiver).await;
        receivers.push(receiver);
    }
    // More deliveries are due than slots exist, so the first server claims all slots.
    let urls = [nodes[0].url.clone()];
    let (first, tasks) = Writers::start(&urls, &group, 4, Duration::ZERO);
    for receiver in &receivers {
        wait_until("nothing is sent", || receiver.count() > 20).await;
    }
    first.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    nodes.push(Program::serve(&store, free_port()));
    nodes[0].kill();
    let killed = tokio::time::Instant::now() + IN_FLIGHT_TIME;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let created = first.created();
    let mut longest = Duration::ZERO;
    for receiver in &receivers {
        wait_until_delivered(&created, receiver).await;
        assert!(count_deliveries(receiver).1 <= SLOTS);
        let received = receiver.received();
        let mut times: Vec<_> = received.iter().map(|one| one.at).collect();
        times.retain(|at| *at > killed && *at < killed + Duration::from_secs(6));
        times.sort_unstable();
        let first = times.first().map_or(Duration::from_secs(6), |first| *first - killed);
        longest = longest.max(first);
    }
    eprintln!("one of two servers ends for good: silence {longest:?}");
    report_figure("one of two servers ends for good", format!("silence {longest:?}"), "3 s");
    assert!(
        longest <= size(TAKEOVER_LIMIT, TAKEOVER_LIMIT, DELIVERY_GAP_LIMIT),
        "silent for {longest:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_of_a_paused_server_are_claimed_by_others_and_not_repeated() {
    let Some(store) = TestStore::postgres().await else { return };
    let mut nodes = vec![Program::serve(&store, free_port())];
    let group = nodes[0].group().await;
    let receiver = Receiver::start(Behaviour::After(Duration::from_millis(300))).await;
    create_webhook(&nodes[0], &group, &receiver).await;
    let urls = [nodes[0].url.clone()];
    let (writers, tasks) = Writers::start(&urls, &group, 4, Duration::ZERO);
    wait_until("nothing is sent", || receiver.count() > 20).await;
    writers.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    nodes.push(Program::serve(&store, free_port()));
    let signal = |signal: &str| {
        let pid = nodes[0].child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    tokio::time::sleep(IN_FLIGHT_TIME).await;
    let so_far = receiver.count();
    let silence = wait_until("nothing is sent", || receiver.count() > so_far).await;
    // Until then, the paused server keeps its leases.
    assert!(silence > Duration::from_secs(7), "a live server lost its leases after {silence:?}");
    assert!(
        silence < size(DELIVERY_TIMEOUT, DELIVERY_TIMEOUT, Duration::from_secs(12)),
        "{silence:?}"
    );
    signal("-CONT");
    let created = writers.created();
    wait_until_delivered(&created, &receiver).await;
    let (_, repeated) = count_deliveries(&receiver);
    report_figure(
        "a server is paused",
        format!("silence {silence:?}, {repeated} repeated"),
        "10 s",
    );
    assert!(repeated <= SLOTS, "{repeated} repeated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_outage_does_not_count_as_a_receiver_failure() {
    let Some((mut primary, _standby)) = PostgresServer::with_standby().await else { return };
    let store = primary.store();
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    let receiver = Receiver::start(Behaviour::After(Duration::from_secs(3))).await;
    create_webhook(&program, &group, &receiver).await;
    for number in 0..4 {
        let body = piece(&group, &format!("p{number}"), "<p>Text</p>");
        let made = program.request(Method::POST, "/content-pieces").json(&body).send().await;
        assert_eq!(made.unwrap().status(), StatusCode::CREATED);
    }
    wait_until("nothing is sent", || receiver.connections() > 0).await;
    primary.stop();
    tokio::time::sleep(Duration::from_secs(4)).await;
    primary.start().await;
    wait_until("a delivery was lost", || count_deliveries(&receiver).0 >= 4).await;
    let started = Instant::now();
    loop {
        let list = program.request(Method::GET, "/webhooks/deliveries").send().await;
        let list: Value = match list {
            Ok(response) if response.status() == StatusCode::OK => response.json().await.unwrap(),
            _ => Value::Null,
        };
        let deliveries = list.as_array().cloned().unwrap_or_default();
        for attempt in deliveries.iter().flat_map(|one| one["attempts"].as_array().unwrap()) {
            assert_eq!(attempt["error"], Value::Null, "the receiver is blamed: {attempt}");
        }
        if deliveries.len() == 4 && deliveries.iter().all(|one| one["status"] == "delivered") {
            break;
        }
        assert!(started.elapsed() < DELIVERY_TIMEOUT, "{list:#}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_released_if_the_database_ends_during_their_commit() {
    let Some((mut primary, mut standby)) = PostgresServer::with_standby().await else { return };
    let store = primary.store();
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    let receiver = Receiver::start(Behaviour::Status(503)).await;
    create_webhook(&program, &group, &receiver).await;
    let body = piece(&group, "p", "<p>Text</p>");
    let made = program.request(Method::POST, "/content-pieces").json(&body).send().await;
    assert_eq!(made.unwrap().status(), StatusCode::CREATED);
    let started = Instant::now();
    loop {
        let list = program.request(Method::GET, "/webhooks/deliveries").send().await.unwrap();
        let list: Value = list.json().await.unwrap();
        if list[0]["attempts"].as_array().is_some_and(|attempts| !attempts.is_empty()) {
            break;
        }
        assert!(started.elapsed() < DELIVERY_TIMEOUT, "no attempt is recorded: {list:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Without the standby, the commit of the next lease is on disk, but waits.
    standby.stop();
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let client = primary.connect().await.unwrap();
    while client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(started.elapsed() < DELIVERY_TIMEOUT, "no commit waits for the standby");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(receiver.count(), 1, "the delivery is sent before its lease is committed");
    receiver.set_behaviour(Behaviour::Status(200));
    primary.stop();
    primary.start().await;
    standby.start().await;
    wait_until("the delivery waits until its lease expires", || receiver.count() > 1).await;
}
