//! Killed again and again under load: nothing that was answered is lost, nothing is half there, and
//! what is sent again with its `Idempotency-Key` is there once.
//!
//! `GALLEY_TEST_KILLS` says how often, `GALLEY_TEST_CHANGES` how many changes there are in between; a few
//! suffice to notice a mistake.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_domain::Timestamp;
use galley_storage::{Database, DatabaseUrl, Error, Options, Role, Tx, events};
use galley_testing::{Behaviour, Received, Receiver, TestStore, on_both_engines};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{Program, data_dir, free_port, init_token, piece};

pub(crate) const CLIENTS: usize = 8;

/// How long clients may get no answers, as when the server is gone for good.
const ANSWERED_MAX: Duration = Duration::from_mins(2);

/// What clients that write share.
#[derive(Debug, Default)]
pub(crate) struct Load {
    stop: AtomicBool,
    /// How often they were told that a piece was made.
    answered: AtomicUsize,
    /// How often of these by what an earlier request had made.
    replayed: AtomicUsize,
    /// How often there was no answer, or one that nobody could be asked.
    pub(crate) failed: AtomicUsize,
}

impl Load {
    /// Starts the clients.
    pub(crate) fn start(self: &Arc<Self>, url: &str, group: &str) -> Vec<Client> {
        let start = |number| {
            tokio::spawn(write_on(url.to_owned(), group.to_owned(), number, Arc::clone(self)))
        };
        (0..CLIENTS).map(start).collect()
    }

    /// Waits until so many more pieces are made.
    pub(crate) async fn wait_for(&self, count: usize) {
        let started = Instant::now();
        let before = self.answered.load(Ordering::Relaxed);
        while self.answered.load(Ordering::Relaxed) < before + count {
            assert!(started.elapsed() < ANSWERED_MAX, "clients get no answers");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends the clients; what they were told is there, by id.
    pub(crate) async fn end(&self, clients: Vec<Client>) -> HashMap<String, String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut acknowledged = HashMap::new();
        for client in clients {
            acknowledged.extend(client.await.unwrap());
        }
        acknowledged
    }
}

/// A client that writes; in the end, what it was told is there, by id.
pub(crate) type Client = tokio::task::JoinHandle<HashMap<String, String>>;

/// How long a piece's text is: now and then long enough to stand in several pages of the database.
fn words(slug: &str) -> String {
    " word".repeat(if slug.ends_with('0') { 1_500 } else { 20 })
}

/// Writes until told to stop; what was answered, by id.
async fn write_on(
    url: String,
    group: String,
    client_number: usize,
    load: Arc<Load>,
) -> HashMap<String, String> {
    let client =
        reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let mut acknowledged = HashMap::new();
    for number in 0.. {
        if load.stop.load(Ordering::Relaxed) {
            break;
        }
        let slug = format!("c{client_number}-{number}");
        let body = piece(&group, &slug, &format!("<p>{slug}{}</p>", words(&slug)));
        // Sent again until there is an answer: whether it was made before is not to be known.
        loop {
            let request = client.post(format!("{url}/content-pieces")).bearer_auth(init_token());
            let request = request.header("idempotency-key", &slug).json(&body);
            match request.send().await {
                Ok(response) if response.status() == StatusCode::CREATED => {
                    let again = response.headers().contains_key("idempotency-replayed");
                    // An answer that did not arrive whole is no answer.
                    if let Ok(body) = response.json::<Value>().await {
                        acknowledged.insert(body["id"].as_str().unwrap().to_owned(), slug);
                        load.answered.fetch_add(1, Ordering::Relaxed);
                        load.replayed.fetch_add(usize::from(again), Ordering::Relaxed);
                        break;
                    }
                }
                // Of the server, or of a balancer in front of it.
                Ok(response) => {
                    let unavailable = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_GATEWAY];
                    assert!(unavailable.contains(&response.status()), "{response:?}");
                }
                // Nobody is there at the moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
            load.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
    acknowledged
}

/// Waits until the receiver has got each of the pieces, as long as there come more; says how many came
/// more than once.
async fn assert_delivered(receiver: &Receiver, acknowledged: &HashMap<String, String>) -> usize {
    let (mut last_count, mut last_came) = (0, Instant::now());
    loop {
        if receiver.count() > last_count {
            (last_count, last_came) = (receiver.count(), Instant::now());
        }
        let is_over = last_came.elapsed() > Duration::from_mins(1);
        // They are not looked through in vain, which takes long.
        if last_count >= acknowledged.len() || is_over {
            let came = receiver.received();
            let id = |one: &Received| one.json()["data"]["id"].as_str().unwrap().to_owned();
            let ids: HashSet<String> = came.iter().map(id).collect();
            let missing = acknowledged.keys().filter(|id| !ids.contains(*id)).count();
            if missing == 0 {
                return came.len() - ids.len();
            }
            assert!(!is_over, "{missing} of {} never came", acknowledged.len());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn assert_whole(piece: &Value) {
    let slug = piece["slug"].as_str().unwrap();
    let html = format!("<p>{slug}{}</p>", words(slug));
    assert_eq!(piece["content"], json!(html), "{slug} is half there");
    assert_eq!(piece["title"], slug);
}

/// One event for each piece, and the numbers without a gap.
async fn assert_events(store: &TestStore, pieces: usize) {
    let url = match &store.url {
        DatabaseUrl::Sqlite(_) => DatabaseUrl::Sqlite(data_dir(store).join("galley.db")),
        postgres @ DatabaseUrl::Postgres(_) => postgres.clone(),
    };
    let options = Options {
        url,
        replica_url: None,
        role: Role::Command,
        program_version: "0.1.0",
        now: Timestamp::from_ms(0),
        connections: 2,
        write_wait_max: Duration::from_secs(10),
        statement_log: None,
    };
    let database = Database::open(options).await.unwrap();
    let read = async |tx: &Tx<'_>| {
        let workspace = galley_storage::workspaces::list(tx).await?[0].0;
        events::list(tx, workspace, 0, 1_000_000).await
    };
    let events = database.read_much::<_, Error, _>("events", read).await.unwrap();
    let numbers: Vec<i64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=pieces as i64).collect::<Vec<_>>());
    database.close().await;
}

/// A receiver of what happens to pieces of the group.
pub(crate) async fn receive_from(program: &Program, group: &str) -> Receiver {
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let webhook = json!({"url": receiver.url, "name": "w", "event": "contentPieceAdded",
        "metadata": {"contentGroupId": group}});
    let made = program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    receiver
}

/// What clients were told is there, once and whole, told of by one event each and delivered. Says how many deliveries
/// came more than once.
pub(crate) async fn assert_kept(
    store: &TestStore,
    program: &Program,
    receiver: &Receiver,
    acknowledged: &HashMap<String, String>,
) -> usize {
    let pieces = program.pieces("content=true&contentFormat=html").await;
    pieces.iter().for_each(assert_whole);
    let kept: HashMap<&str, &str> = pieces
        .iter()
        .map(|piece| (piece["id"].as_str().unwrap(), piece["slug"].as_str().unwrap()))
        .collect();
    for (id, slug) in acknowledged {
        assert_eq!(kept.get(id.as_str()), Some(&slug.as_str()), "{slug} was answered and lost");
    }
    // Each was sent until it was answered: what is there more often was made twice.
    assert_eq!(kept.len(), acknowledged.len());
    let twice = assert_delivered(receiver, acknowledged).await;
    assert_events(store, pieces.len()).await;
    twice
}

on_both_engines! {
    async fn a_server_killed_under_load_keeps_what_it_answered(store: TestStore) {
        let number = |name, usual| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
        let (kills, changes): (usize, usize) =
            (number("GALLEY_TEST_KILLS", 6), number("GALLEY_TEST_CHANGES", 10));
        let port = free_port();
        let mut program = Program::serve(&store, port);
        let group = program.group().await;
        let receiver = receive_from(&program, &group).await;
        let load = Arc::new(Load::default());
        let clients = load.start(&program.url, &group);
        let mut slowest = Duration::ZERO;
        for round in 0..kills {
            // Not before the clients are at it again, and at another moment each time.
            load.wait_for(changes).await;
            tokio::time::sleep(Duration::from_millis(round as u64 * 7 % 40)).await;
            program.kill();
            program = Program::serve(&store, port);
            slowest = slowest.max(program.started_in);
        }
        let acknowledged = load.end(clients).await;
        let twice = assert_kept(&store, &program, &receiver, &acknowledged).await;
        assert!(twice <= kills * 8, "{twice} came twice, more than were under way at {kills} kills");
        if let DatabaseUrl::Sqlite(_) = store.url {
            let connection = rusqlite::Connection::open(data_dir(&store).join("galley.db")).unwrap();
            let check: String =
                connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(check, "ok");
        }
        eprintln!(
            "{}: {kills} kills, {} answered, {} of them a second time, 0 lost, 0 twice, all delivered, \
             {twice} of them twice, slowest start {slowest:?}",
            store.engine(), acknowledged.len(), load.replayed.load(Ordering::Relaxed)
        );
    }
}
