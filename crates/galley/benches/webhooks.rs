//! Measures the latency and throughput of webhooks, and their effect on each other.
//!
//! ```sh
//! cargo bench -p galley --bench webhooks [latency|drain|dead|many|start|catalog]…
//! ```
//!
//! The benchmark runs on SQLite, and on PostgreSQL if `GALLEY_TEST_POSTGRES_URL` names a server.
//! While a backlog is drained, the program runs on the first core, if `taskset` is installed. Each
//! figure has a yardstick of the same run.

#![allow(
    clippy::unwrap_used,
    clippy::assigning_clones,
    reason = "a benchmark ends where something is not as it expects"
)]

#[path = "../tests/it/program.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod program;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::{Behaviour, Receiver, TestStore};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use program::{Program, data_dir, free_port, galley, init_token};

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for engine in ["SQLite", "PostgreSQL"] {
            println!("## {engine}");
            if runs("latency") {
                with(engine, latency).await;
            }
            if runs("drain") {
                with(engine, drain).await;
            }
            if runs("dead") {
                with(engine, dead).await;
            }
            if runs("many") {
                with(engine, many).await;
            }
            if runs("start") {
                with(engine, start).await;
            }
            if runs("catalog") {
                with(engine, catalog).await;
            }
        }
    });
}

/// Runs a measurement on a new store.
async fn with(engine: &str, measure: impl AsyncFn(&TestStore)) {
    let store = match engine {
        "SQLite" => Some(TestStore::sqlite()),
        _ => TestStore::postgres().await,
    };
    if let Some(store) = store {
        measure(&store).await;
    }
}

fn serve(store: &TestStore) -> Program {
    let mut command = galley(store);
    command.env("GALLEY_INIT_TOKEN", init_token());
    command.args(["serve", "--listen", &format!("127.0.0.1:{}", free_port())]);
    Program::start(command)
}

/// Starts the program on the first core only.
fn serve_on_one_core(store: &TestStore) -> Program {
    let plain = galley(store);
    let mut command = std::process::Command::new("taskset");
    let pinned = std::process::Command::new("taskset").arg("-h").output().is_ok();
    if pinned {
        command.args(["-c", "0"]).arg(plain.get_program());
        if let Some(directory) = plain.get_current_dir() {
            command.current_dir(directory);
        }
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    } else {
        command = plain;
    }
    command.env("GALLEY_INIT_TOKEN", init_token());
    command.args(["serve", "--listen", &format!("127.0.0.1:{}", free_port())]);
    Program::start(command)
}

async fn post(program: &Program, path: &str, body: &Value) -> Value {
    let response = program.request(Method::POST, path).json(body).send().await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
    response.json().await.unwrap()
}

async fn put(program: &Program, path: &str, body: &Value) {
    let response = program.request(Method::PUT, path).json(body).send().await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
}

async fn create_webhook(program: &Program, url: &str, enabled: bool) -> String {
    let body = json!({"url": url, "name": "w", "event": "contentGroupAdded", "secret": "s",
        "enabled": enabled});
    post(program, "/webhooks", &body).await["id"].as_str().unwrap().to_owned()
}

async fn add_group(program: &Program, name: &str) {
    post(program, "/content-groups", &json!({"name": name})).await;
}

fn percentile(times: &mut [Duration], part: f64) -> Duration {
    times.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list"
    )]
    let at = ((times.len() as f64 * part) as usize).min(times.len() - 1);
    times[at]
}

/// Measures the time from the response to a change until its event reaches an idle receiver.
async fn latency(store: &TestStore) {
    let program = serve(store);
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    create_webhook(&program, &receiver.url, true).await;
    let (mut lags, mut posts) = (Vec::new(), Vec::new());
    let client = Client::builder().no_proxy().build().unwrap();
    for number in 1..=300_usize {
        add_group(&program, &format!("{number}")).await;
        let answered = tokio::time::Instant::now();
        let came = receiver.wait_for(2 * number - 1).await[2 * number - 2].at;
        lags.push(came.saturating_duration_since(answered));
        let started = Instant::now();
        client.post(&receiver.url).body("x".repeat(1_024)).send().await.unwrap();
        posts.push(started.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!(
        "commit to receiver: p50 {:?}, p99 {:?}; a bare post: p50 {:?}, p99 {:?}",
        percentile(&mut lags, 0.5),
        percentile(&mut lags, 0.99),
        percentile(&mut posts, 0.5),
        percentile(&mut posts, 0.99)
    );
}

/// Measures a backlog for fifty healthy receivers.
async fn drain(store: &TestStore) {
    const RECEIVERS: usize = 50;
    const EVENTS: usize = 400;
    let all = RECEIVERS * EVENTS;
    let program = serve_on_one_core(store);
    let mut receivers = Vec::new();
    let mut webhooks = Vec::new();
    for _ in 0..RECEIVERS {
        let receiver = Receiver::start(Behaviour::Status(200)).await;
        webhooks.push(create_webhook(&program, &receiver.url, false).await);
        receivers.push(receiver);
    }
    // With its envelope, an event has about 1 KiB.
    let name = "n".repeat(240);
    for number in 0..EVENTS {
        add_group(&program, &format!("{number}{name}")).await;
    }
    loop {
        let last = format!("/webhooks/deliveries?status=held&perPage=1&page={all}");
        let held = program.get(&last).await;
        if !held.as_array().unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for webhook in &webhooks {
        put(&program, "/webhooks", &json!({"id": webhook, "enabled": true})).await;
    }
    let count = || receivers.iter().map(Receiver::count).sum::<usize>();
    // During these changes, deliveries yield to them. Deliveries up to this point don't count.
    let (before, started) = (count(), Instant::now());
    while count() < all {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(started.elapsed() < Duration::from_mins(2), "{} of {all}", count());
    }
    let drained = per_second(all - before, started.elapsed());
    assert_eq!(count(), all, "none twice");
    let bare = bare_loop(&receivers, all).await;
    println!(
        "backlog of {all} for {RECEIVERS} receivers: {drained:.0}/s; a bare client loop: {bare:.0}/s; \
         {:.2} of that",
        drained / bare
    );
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Measures a plain loop of POSTs of the same size, on a separate thread.
async fn bare_loop(receivers: &[Receiver], count: usize) -> f64 {
    let urls: Vec<String> = receivers.iter().map(|receiver| receiver.url.clone()).collect();
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let rate = runtime.block_on(async {
            let client = Client::builder().no_proxy().build().unwrap();
            let (next, body) = (Arc::new(AtomicUsize::new(0)), "x".repeat(1_024));
            let started = Instant::now();
            let posters: Vec<_> = (0..32)
                .map(|_| {
                    let (client, urls) = (client.clone(), urls.clone());
                    let (next, body) = (Arc::clone(&next), body.clone());
                    tokio::spawn(async move {
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= count {
                                return;
                            }
                            let url = &urls[number % urls.len()];
                            client.post(url).body(body.clone()).send().await.unwrap();
                        }
                    })
                })
                .collect();
            for poster in posters {
                poster.await.unwrap();
            }
            per_second(count, started.elapsed())
        });
        let _ = tell.send(rate);
    });
    told.await.unwrap()
}

/// Measures the effect of dead receivers on healthy ones.
async fn dead(store: &TestStore) {
    /// The number of events that are not measured, until connections are open and receivers known.
    const WARM_UP: usize = 20;
    let mut with_and_without = [Vec::new(), Vec::new()];
    // The runs alternate, as the store grows.
    for (place, dead) in [(0, 0), (1, 10), (0, 0), (1, 10)] {
        let program = serve(store);
        let mut healthy = Vec::new();
        for _ in 0..190 {
            let receiver = Receiver::start(Behaviour::Status(200)).await;
            create_webhook(&program, &receiver.url, true).await;
            healthy.push(receiver);
        }
        let mut others = Vec::new();
        for number in 0..10 {
            let behaviour = match (number < dead, number % 2) {
                (false, _) => Behaviour::Status(200),
                (true, 0) => Behaviour::Stall,
                (true, _) => Behaviour::SlowHead,
            };
            let receiver = Receiver::start(behaviour).await;
            create_webhook(&program, &receiver.url, true).await;
            others.push(receiver);
        }
        let mut answered = Vec::new();
        for number in 0..WARM_UP + 100 {
            add_group(&program, &format!("{number}")).await;
            answered.push(tokio::time::Instant::now());
            let begun = Instant::now();
            while healthy.iter().any(|receiver| receiver.count() <= number) {
                assert!(begun.elapsed() < Duration::from_mins(1), "event {number} has not come");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        for received in healthy.iter().flat_map(Receiver::received) {
            let number =
                received.json()["data"]["name"].as_str().unwrap().parse::<usize>().unwrap();
            let lag = received.at.saturating_duration_since(answered[number]);
            with_and_without[place].extend((number >= WARM_UP).then_some(lag));
        }
        // The next run creates its own webhooks.
        let all = program.get("/webhooks/list?perPage=1000").await;
        for webhook in all.as_array().unwrap() {
            let id = webhook["id"].as_str().unwrap();
            let path = format!("/webhooks?id={id}");
            program.request(Method::DELETE, &path).send().await.unwrap();
        }
    }
    let [without, with] = with_and_without.map(|mut lags| percentile(&mut lags, 0.99));
    println!(
        "190 receivers that are well: p99 {without:?}; beside 10 that are dead: p99 {with:?}, {:.2} times",
        with.as_secs_f64() / without.as_secs_f64()
    );
}

/// Lowers the thread's priority to idle CPU time: a real receiver runs on another machine.
fn lower_priority() {
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
    let Some(id) = thread.file_name() else { return };
    let _ = std::process::Command::new("chrt").args(["--idle", "--pid", "0"]).arg(id).output();
}

/// Measures the cost of a thousand webhooks for one event. They are first disabled, so that
/// deliveries are queued but not sent, then enabled for a receiver with its own thread.
async fn many(store: &TestStore) {
    let program = serve(store);
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        lower_priority();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let receiver = Receiver::start(Behaviour::Status(200)).await;
            let _ = tell.send(receiver.url.clone());
            std::future::pending::<()>().await;
        });
    });
    let url = told.await.unwrap();
    let measure = async || {
        let (mut writes, mut others) = (Vec::new(), Vec::new());
        for number in 0..60 {
            let started = Instant::now();
            add_group(&program, &format!("{number}")).await;
            writes.push(started.elapsed());
            for other in 0..20 {
                let started = Instant::now();
                let body = json!({"label": format!("{number} {other}")});
                post(&program, "/tags", &body).await;
                others.push(started.elapsed());
            }
        }
        (percentile(&mut writes, 0.5), percentile(&mut others, 0.99))
    };
    let (write, other) = measure().await;
    let mut webhooks = Vec::new();
    for _ in 0..1_000 {
        webhooks.push(create_webhook(&program, &url, false).await);
    }
    let show = |what: &str, (matched, beside): (Duration, Duration)| {
        println!(
            "an event for 1,000 webhooks, {what}: its write p50 {matched:?} (without {write:?}, {:.1} \
             times); other writes p99 {beside:?} (without {other:?}, {:.1} times)",
            matched.as_secs_f64() / write.as_secs_f64(),
            beside.as_secs_f64() / other.as_secs_f64()
        );
    };
    show("held", measure().await);
    for webhook in webhooks {
        put(&program, "/webhooks", &json!({"id": webhook, "enabled": true})).await;
    }
    while program.get("/webhooks/deliveries?status=pending").await != json!([]) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    show("sent", measure().await);
}

/// Measures the time from the start of the program to the first of a million deliveries.
async fn start(store: &TestStore) {
    let DatabaseUrl::Sqlite(_) = store.url else { return };
    let mut program = serve(store);
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let webhook = create_webhook(&program, &receiver.url, false).await;
    add_group(&program, "x").await;
    while program.get("/webhooks/deliveries").await.as_array().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    put(
        &program,
        "/webhooks",
        &json!({"id": webhook, "url": "http://127.0.0.1:1/", "enabled": true}),
    )
    .await;
    program.terminate();
    let connection = rusqlite::Connection::open(data_dir(store).join("galley.db")).unwrap();
    connection
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
             INSERT INTO deliveries (workspace_id, id, webhook_id, event_id, event_type, sequence,
                status, lane, due_at_ms, attempts, created_at_ms)
             SELECT workspace_id, substr(id, 1, 20) || printf('%010d', i), webhook_id,
                substr(event_id, 1, 20) || printf('%010d', i), event_type, sequence, 'pending', 1,
                created_at_ms, 0, created_at_ms
             FROM n, (SELECT * FROM deliveries LIMIT 1);
             UPDATE webhook_queues SET pending = 1000000, failures = 0, open_until_ms = NULL, next_at_ms = 1;",
        )
        .unwrap();
    let url = &receiver.url;
    connection.execute("UPDATE webhooks SET url = ?1", [url]).unwrap();
    drop(connection);
    let started = tokio::time::Instant::now();
    let program = serve(store);
    let first = receiver.wait_for(1).await[0].at.saturating_duration_since(started);
    println!(
        "start to the first of a million deliveries: {first:?} (it serves after {:?})",
        program.started_in
    );
}

/// Measures two hundred receivers with all kinds of misbehaviour at once.
async fn catalog(store: &TestStore) {
    const WEBHOOKS: usize = 200;
    let program = serve(store);
    let mut receivers = Vec::new();
    for (behaviour, _) in Behaviour::catalog().into_iter().cycle().take(WEBHOOKS) {
        let receiver = Receiver::start(behaviour).await;
        create_webhook(&program, &receiver.url, true).await;
        receivers.push(receiver);
    }
    let before = resident_kib(&program);
    add_group(&program, "x").await;
    let (started, mut most) = (Instant::now(), before);
    let longest = loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        most = most.max(resident_kib(&program));
        if started.elapsed() < Duration::from_secs(17) {
            continue;
        }
        let mut lasted: Vec<u64> = Vec::new();
        for page in 1..=WEBHOOKS / 100 {
            let path = format!("/webhooks/deliveries?perPage=100&page={page}");
            for delivery in program.get(&path).await.as_array().unwrap() {
                lasted.extend(delivery["attempts"][0]["durationMs"].as_u64());
            }
        }
        if lasted.len() == WEBHOOKS {
            break lasted.into_iter().max().unwrap();
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{} were attempted", lasted.len());
    };
    println!(
        "{WEBHOOKS} receivers of the catalog at once: the longest attempt {longest} ms; memory {before} KiB, at the \
         most {} KiB more",
        most - before
    );
}

/// Returns the program's resident memory in KiB.
fn resident_kib(program: &Program) -> u64 {
    let path = format!("/proc/{}/status", program.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
