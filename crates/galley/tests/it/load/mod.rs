//! Overload and idle connections: normal requests stay about as fast, excess requests are rejected,
//! and afterwards the server recovers.

mod sender;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::open_loop::per_second;
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use self::sender::{HEALTHY_RATE, LoadSender, RequestResults, answer, healthy, send_at_rate};
use crate::kills::receive_from;
use crate::program::{Program, client, data_dir, galley, init_token, piece};

/// The maximum slowdown of healthy requests during overload, as a factor.
const SLOWDOWN_LIMIT: f64 = 3.0;

/// Returns a value of the process's status, in KiB.
pub(crate) fn status(program: &Program, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches([':', '\t', ' ']).split(' ').next().unwrap().parse().unwrap()
}

/// Returns the number of open files and connections of the process.
fn handles(program: &Program) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", program.child.id())).unwrap().count()
}

fn mebibytes(kib: u64) -> u64 {
    kib / 1_024
}

/// Sends one request, and leaves the connection open.
async fn idle(address: String) -> TcpStream {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(&mut stream).await;
    stream
}

/// Sends a request header byte by byte, until the server closes the connection.
async fn slow(address: String, hung_up: Arc<AtomicUsize>) {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!("GET /content-pieces/list HTTP/1.1\r\nHost: {address}\r\nX-Slow: ");
    let mut bytes = head.into_bytes().into_iter().chain(std::iter::repeat(b'a'));
    let mut end = [0];
    loop {
        let byte = bytes.next().unwrap();
        tokio::select! {
            _ = stream.read(&mut end) => break,
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        if stream.write_all(&[byte]).await.is_err() {
            break;
        }
    }
    hung_up.fetch_add(1, Ordering::Relaxed);
}

/// Waits until a condition holds.
async fn until(time_max: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < time_max, "{what} doesn't come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[on_both_engines]
async fn idle_connections_do_not_delay_other_clients(store: TestStore) {
    let (idle_count, slow_count, seconds) =
        size((200, 50, 1), (2_000, 300, 5), (10_000, 1_000, 20));
    let time = Duration::from_secs(seconds);
    // The idle timeout of a connection.
    let kept = time + Duration::from_secs(10);
    let mut command = galley(&store);
    command.env("GALLEY_INIT_TOKEN", init_token()).args(["serve", "--listen", "127.0.0.1:0"]);
    command.env("GALLEY_RECEIVE_TIMEOUT", kept.as_secs().to_string());
    let program = Program::start(command);
    let sender = LoadSender::new(&program).await;
    let alone = healthy(&sender, time).await;
    let (handles_before, memory_before) = (handles(&program), status(&program, "VmRSS"));

    let address = &sender.address;
    let mut idlers = Vec::new();
    for _ in 0..idle_count {
        idlers.push(idle(address.clone()).await);
    }
    let hung_up = Arc::new(AtomicUsize::new(0));
    for _ in 0..slow_count {
        tokio::spawn(slow(address.clone(), Arc::clone(&hung_up)));
    }
    let all = handles_before + idle_count + slow_count;
    until(Duration::from_secs(20), "all connections", || handles(&program) >= all).await;
    let beside = healthy(&sender, time).await;
    let memory = status(&program, "VmRSS").saturating_sub(memory_before);
    assert_eq!(beside.refused, 0);
    assert!(memory < (all as u64) * 64 + 32 * 1_024, "{memory} KiB for {all} connections");

    // All of them are closed eventually.
    until(kept * 3, "the end of slow clients", || hung_up.load(Ordering::Relaxed) == slow_count)
        .await;
    until(kept * 3, "the end of idle connections", || handles(&program) <= handles_before + 64)
        .await;
    drop(idlers);
    let slower = beside.p99() / alone.p99();
    let found = format!(
        "p99 {:.1} ms, {slower:.2} times that without ({:.1} ms); {} MiB more; all were hung up on",
        beside.p99(),
        alone.p99(),
        mebibytes(memory)
    );
    let what =
        format!("{}: {idle_count} idle connections, {slow_count} slow clients", store.engine());
    report_figure(&what, &found, "p99 within 3 times");
    let bar = size(f64::INFINITY, f64::INFINITY, SLOWDOWN_LIMIT);
    assert!(slower <= bar, "{found}");
}

#[on_both_engines]
async fn excess_writes_are_rejected(store: TestStore) {
    /// The time until the server treats the load as sustained, not as a burst.
    const SETTLING_TIME: Duration = Duration::from_secs(3);
    /// The maximum number of writes in one SQLite commit.
    const CLIENTS: u32 = 128;
    const PIECES: usize = 500;
    let (measured, loaded) = size((1, 4), (3, 10), (20, 300));
    let (measured, loaded) = (Duration::from_secs(measured), Duration::from_secs(loaded));
    let program = Program::serve(&store, 0);
    let sender = LoadSender::new(&program).await;
    for number in 0..PIECES {
        assert!(sender.write(&format!("rewritten-{number}")).await);
    }
    let pieces = program.pieces("").await;
    let pieces = pieces.iter().map(|piece| piece["id"].as_str().unwrap().to_owned());
    let pieces: Arc<Vec<String>> = Arc::new(pieces.collect());
    let words: Arc<str> = "<p>Some words.</p>".repeat(300).into();
    let events = sender.last_event().await;
    let before = healthy(&sender, measured).await;

    let started = Instant::now();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (sender, pieces, words) =
            (Arc::clone(&sender), Arc::clone(&pieces), Arc::clone(&words));
        clients.spawn(async move {
            let mut times = Vec::new();
            for number in (client..).step_by(CLIENTS as usize) {
                let asked = started.elapsed();
                assert!(sender.rewrite(&pieces, number, &words).await, "refused");
                times.push((asked, started.elapsed().saturating_sub(asked)));
                if started.elapsed() > measured {
                    break;
                }
            }
            times
        });
    }
    let done = clients.join_all().await.into_iter().flatten().collect();
    let at_capacity = RequestResults { done, refused: 0 };
    let capacity = per_second(at_capacity.done.len(), started.elapsed());

    let memory_before = status(&program, "VmRSS");
    let beyond = send_at_rate(2.0 * capacity, loaded, |number| {
        let (sender, pieces, words) =
            (Arc::clone(&sender), Arc::clone(&pieces), Arc::clone(&words));
        // Each text differs from the previous one, so that every request is a change.
        async move { sender.rewrite(&pieces, 1_000_000 + number, &words).await }
    })
    .await;
    let memory = status(&program, "VmHWM").saturating_sub(memory_before);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = healthy(&sender, measured).await;
    assert_eq!((before.refused, after.refused), (0, 0));
    // Acknowledged writes were applied, and rejected ones were not.
    let done = [&before, &at_capacity, &beyond, &after].map(|outcome| outcome.done.len());
    let changes = done[0].div_ceil(10) + done[1] + done[2] + done[3].div_ceil(10);
    assert_eq!(sender.last_event().await, events + changes);

    // A slow client may not reach twice the rate within seconds.
    assert!(beyond.refused > 0 || size(true, false, false), "nothing was refused");
    let slower = beyond.p99_after(SETTLING_TIME) / at_capacity.p99();
    let after_slower = after.p99() / before.p99();
    let found = format!(
        "{capacity:.0} a second at capacity, p99 {:.0} ms; of twice as many {} done, p99 {:.2} times that, {} refused; \
         at the most {} MiB more; 5 s later p99 {after_slower:.2} times that before",
        at_capacity.p99(),
        beyond.done.len(),
        slower,
        beyond.refused,
        mebibytes(memory)
    );
    let what =
        format!("{}: twice the writes that it can do, for {} s", store.engine(), loaded.as_secs());
    report_figure(&what, &found, "p99 within 3 times, normal after 5 s");
    assert!(memory < 256 * 1_024, "{found}");
    let bar = size(f64::INFINITY, f64::INFINITY, SLOWDOWN_LIMIT);
    assert!(slower <= bar && after_slower <= bar, "{found}");
}

#[on_both_engines]
async fn expansion_bombs_use_bounded_memory(store: TestStore) {
    // The number of concurrent requests of each kind.
    let at_once = size(1, 2, 8);
    let program = Program::serve(&store, 0);
    let sender = LoadSender::new(&program).await;
    let time = Duration::from_secs(size(1, 2, 5));
    let alone = healthy(&sender, time).await;
    let before = status(&program, "VmRSS");
    let whole = |json: String| ("POST /content-pieces", json);
    let content = |html: String| {
        ("POST /content-pieces?dryRun=true", piece(&sender.group, "bomb", &html).to_string())
    };
    let many = 8 * 1_024 * 1_024 - 100;
    let bombs = [
        whole(format!("{{\"a\":{}", "[".repeat(many))),
        whole(format!("{{\"a\":[{}0]}}", "0,".repeat(many / 2))),
        whole(format!("{{\"a\":[{}0]}}", "0,".repeat(900_000))),
        whole(format!("{{\"a\":[{}0]}}", "{},".repeat(many / 3))),
        whole(format!("{{\"a\":[{}0]}}", "\"\\u0041\",".repeat(900_000))),
        whole((0..400_000).fold("{".to_owned(), |text, key| text + &format!("\"{key}\":{{}},"))),
        whole(format!("{{\"a\":{}}}", "9".repeat(many))),
        content("<p>".repeat(600_000)),
        content("<b>".repeat(600_000)),
        content("<table><tr><td>".repeat(120_000)),
        content("<ul><li>".repeat(250_000)),
        content("<p>&amp;".repeat(250_000)),
        content("<a href=x><p>".repeat(150_000)),
        content(format!("<p{}>", " a=1".repeat(500_000))),
        content("\u{1}&#x10ffff;<svg><math>".repeat(60_000)),
    ];
    // Only some of them in quick runs.
    let bombs: Vec<_> = bombs.into_iter().step_by(size(4, 3, 1)).collect();
    let mut tasks = JoinSet::new();
    let count = bombs.len() * at_once;
    for (what, bomb) in bombs {
        let bomb: Arc<str> = bomb.into();
        for _ in 0..at_once {
            let (sender, bomb) = (Arc::clone(&sender), Arc::clone(&bomb));
            tasks.spawn(async move {
                // The memory budget admits only some of them at a time.
                loop {
                    let answer = sender.exchange(what, &bomb).await;
                    if !answer.starts_with("HTTP/1.1 503 ") {
                        break answer[9..12].to_owned();
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            });
        }
    }
    let beside = healthy(&sender, time).await;
    let mut statuses = BTreeMap::<String, usize>::new();
    for status in tasks.join_all().await {
        *statuses.entry(status).or_default() += 1;
    }
    let memory = status(&program, "VmHWM").saturating_sub(before);
    let found = format!(
        "answers {statuses:?}; at the most {} MiB more; beside them p99 {:.1} ms, {:.2} times that without",
        mebibytes(memory),
        beside.p99(),
        beside.p99() / alone.p99()
    );
    report_figure(&format!("{}: {count} bombs at once", store.engine()), &found, "less than 1 GiB");
    let expected = ["200", "400", "413"];
    assert!(statuses.keys().all(|status| expected.contains(&status.as_str())), "{found}");
    assert!(memory < 1_024 * 1_024, "{found}");
}

#[on_both_engines]
async fn resource_usage_does_not_grow_over_time(store: TestStore) {
    let seconds = size(4, 20, 3_600);
    let program = Program::serve(&store, 0);
    let sender = LoadSender::new(&program).await;
    let receiver = receive_from(&program, &sender.group).await;
    let handles_before = handles(&program);
    let made: Arc<Mutex<VecDeque<String>>> = Arc::default();
    let changes = Arc::new(AtomicUsize::new(0));
    let (mut taken, mut all) = (Vec::new(), RequestResults::default());
    for _ in 0..4 {
        let quarter = send_at_rate(HEALTHY_RATE, Duration::from_secs(seconds) / 4, |number| {
            let (sender, made, changes) =
                (Arc::clone(&sender), Arc::clone(&made), Arc::clone(&changes));
            async move {
                let is_change = sender.send_mixed_request(number, &made).await;
                changes.fetch_add(usize::from(is_change), Ordering::Relaxed);
                true
            }
        })
        .await;
        all.done.extend(quarter.done);
        // The client's connections are closed. Those to the receiver vary.
        sender.free.lock().unwrap().clear();
        until(Duration::from_secs(20), "the end of its handles", || {
            handles(&program) <= handles_before + 32
        })
        .await;
        taken.push(ResourceUsage::of(&program, &store).await);
    }
    // Each change is delivered to one of the webhooks.
    receiver.wait_for(changes.load(Ordering::Relaxed)).await;

    let [first, second, third, last] = &taken[..] else { panic!("there are four quarters") };
    let (earlier, later) =
        (second.disk.saturating_sub(first.disk), last.disk.saturating_sub(third.disk));
    let found = format!(
        "{} requests, p99 {:.1} ms, {} changes delivered; after a quarter and at the end {} and {} MiB of memory, \
         {} and {} handles; in the second and the last quarter {} and {} MiB more on disk",
        all.done.len(),
        all.p99(),
        changes.load(Ordering::Relaxed),
        mebibytes(first.memory),
        mebibytes(last.memory),
        first.handles,
        last.handles,
        mebibytes(earlier),
        mebibytes(later)
    );
    report_figure(
        &format!("{}: {seconds} s of everything", store.engine()),
        &found,
        "nothing grows",
    );
    assert!(last.memory < first.memory + first.memory / 5 + 16 * 1_024, "{found}");
    assert!(later < earlier + earlier / 2 + 16 * 1_024, "{found}");
    let longest_log = taken.iter().map(|usage| usage.log).max();
    assert!(longest_log < Some(96 * 1_024), "{longest_log:?} KiB of log; {found}");
}

/// The resources that a server uses.
struct ResourceUsage {
    /// Resident memory in KiB.
    memory: u64,
    handles: usize,
    /// Disk usage in KiB, without the log.
    disk: u64,
    /// SQLite's write-ahead log in KiB. Its file keeps its longest size and is used again, so it
    /// has a limit instead of a rate: 64 MiB, and the commits until the next restart.
    log: u64,
}

impl ResourceUsage {
    async fn of(program: &Program, store: &TestStore) -> Self {
        let mut log = 0;
        let bytes: u64 = match &store.url {
            DatabaseUrl::Sqlite(_) => {
                let mut others = 0;
                for file in std::fs::read_dir(data_dir(store)).unwrap() {
                    let file = file.unwrap();
                    let bytes = file.metadata().unwrap().len();
                    let is_log = file.file_name().to_string_lossy().ends_with("-wal");
                    *(if is_log { &mut log } else { &mut others }) += bytes;
                }
                others
            }
            DatabaseUrl::Postgres(url) => {
                let client = client(url).await;
                let sql = "SELECT pg_database_size(current_database())";
                u64::try_from(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)).unwrap()
            }
        };
        Self {
            memory: status(program, "VmRSS"),
            handles: handles(program),
            disk: bytes / 1_024,
            log: log / 1_024,
        }
    }
}
