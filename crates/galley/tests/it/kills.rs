//! Repeated kills under load: no acknowledged write is lost, none is partial, and a retry with its
//! `Idempotency-Key` is applied once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_domain::publication::ContentView;
use galley_storage::{DatabaseUrl, Error, Tx, events};
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{Behaviour, ReceivedRequest, Receiver, TestStore, on_both_engines};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{Program, data_dir, free_port, init_token, open_database, piece};

pub(crate) const CLIENTS: usize = 8;

/// The timeout of clients without a response, such as when the server doesn't restart.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);

/// The state that writing clients share.
#[derive(Debug, Default)]
pub(crate) struct Load {
    stop: AtomicBool,
    /// Requests go through HAProxy, which retries idempotent ones.
    has_balancer: bool,
    /// The number of acknowledged creations.
    answered: AtomicUsize,
    /// The number of these that were stored responses of an earlier request.
    replayed: AtomicUsize,
    /// The number of attempts without a response, or with an error response because the server was
    /// unavailable.
    pub(crate) failed: AtomicUsize,
}

/// The acknowledged changes of clients.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    /// The pieces, by id.
    pieces: HashMap<String, AcknowledgedPiece>,
    /// The number of renames.
    renames: usize,
    /// The addresses of invites.
    invited: Vec<String>,
}

/// A created piece.
#[derive(Debug)]
struct AcknowledgedPiece {
    slug: String,
    title: String,
    is_deleted: bool,
}

impl Acknowledged {
    /// Returns the number of changes.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len() + self.renames + self.deleted() + self.invited.len()
    }

    fn deleted(&self) -> usize {
        self.pieces.values().filter(|made| made.is_deleted).count()
    }
}

impl Load {
    /// Returns the load for servers behind HAProxy.
    pub(crate) fn behind_balancer() -> Self {
        Self { has_balancer: true, ..Self::default() }
    }

    /// Starts the clients, which write to a group and invite members with this role.
    pub(crate) fn start(self: &Arc<Self>, url: &str, group: &str, role: &str) -> Vec<LoadClient> {
        let start = |number| {
            let client =
                reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build();
            let writer = LoadWriter {
                client: client.unwrap(),
                url: url.to_owned(),
                group: group.to_owned(),
                role: role.to_owned(),
                load: Arc::clone(self),
            };
            tokio::spawn(async move { writer.write_on(number).await })
        };
        (0..CLIENTS).map(start).collect()
    }

    /// Waits for so many further creations.
    pub(crate) async fn wait_for(&self, count: usize) {
        let started = Instant::now();
        let before = self.answered.load(Ordering::Relaxed);
        while self.answered.load(Ordering::Relaxed) < before + count {
            assert!(started.elapsed() < RESPONSE_TIMEOUT, "clients get no answers");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stops the clients. Returns the acknowledged changes.
    pub(crate) async fn end(&self, clients: Vec<LoadClient>) -> Acknowledged {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Acknowledged::default();
        for client in clients {
            let Acknowledged { pieces, renames, invited } = client.await.unwrap();
            all.pieces.extend(pieces);
            all.renames += renames;
            all.invited.extend(invited);
        }
        all
    }
}

/// A writing client, which returns its acknowledged changes.
pub(crate) type LoadClient = tokio::task::JoinHandle<Acknowledged>;

/// Returns a piece's text. One in ten is long enough to span several pages of the database.
fn words(slug: &str) -> String {
    " word".repeat(if slug.ends_with('0') { 1_500 } else { 20 })
}

/// A client that creates pieces, individually and in batches, renames and deletes some, and invites
/// members.
struct LoadWriter {
    client: reqwest::Client,
    url: String,
    group: String,
    role: String,
    load: Arc<Load>,
}

impl LoadWriter {
    /// Writes until `stop` is set.
    async fn write_on(self, client_number: usize) -> Acknowledged {
        let mut all = Acknowledged::default();
        for number in 0.. {
            if self.load.stop.load(Ordering::Relaxed) {
                break;
            }
            let slug = format!("c{client_number}-{number}");
            let ids = if number % 16 == 5 {
                let slugs: Vec<String> = (0..3).map(|place| format!("{slug}-{place}")).collect();
                let pieces: Vec<Value> = slugs.iter().map(|slug| self.piece(slug)).collect();
                let made =
                    self.post("/content-pieces/batch", &slug, &json!({"pieces": pieces})).await;
                let ids = made["pieces"].as_array().unwrap().iter().map(id_of);
                ids.zip(slugs).collect()
            } else {
                let made = self.post("/content-pieces", &slug, &self.piece(&slug)).await;
                vec![(id_of(&made), slug.clone())]
            };
            for (id, slug) in &ids {
                let made = AcknowledgedPiece {
                    slug: slug.clone(),
                    title: slug.clone(),
                    is_deleted: false,
                };
                all.pieces.insert(id.clone(), made);
            }
            self.load.answered.fetch_add(1, Ordering::Relaxed);
            let last = ids.last().and_then(|(id, _)| all.pieces.get_mut(id)).unwrap();
            let id = &ids.last().unwrap().0;
            if number % 4 == 1 {
                last.title = format!("{slug} renamed");
                let change = json!({"id": id, "title": last.title});
                self.send(Method::PUT, "/content-pieces", None, Some(&change)).await;
                all.renames += 1;
            }
            if number % 8 == 3 {
                self.send(Method::DELETE, &format!("/content-pieces?id={id}"), None, None).await;
                last.is_deleted = true;
            }
            if number % 16 == 7 {
                let email = format!("{slug}@example.org");
                let invite = json!({"email": email, "name": "Somebody", "roleId": self.role});
                self.post("/workspace-memberships", &format!("invite {slug}"), &invite).await;
                all.invited.push(email);
            }
        }
        all
    }

    fn piece(&self, slug: &str) -> Value {
        piece(&self.group, slug, &format!("<p>{slug}{}</p>", words(slug)))
    }

    async fn post(&self, path: &str, key: &str, body: &Value) -> Value {
        serde_json::from_slice(&self.send(Method::POST, path, Some(key), Some(body)).await).unwrap()
    }

    /// Retries until there is a response. Earlier attempts may have been applied.
    async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Vec<u8> {
        for attempt in 0.. {
            let request = self.client.request(method.clone(), format!("{}{path}", self.url));
            let mut request = request.bearer_auth(init_token());
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            match request.send().await {
                // An earlier attempt deleted it, or HAProxy's retry after a node was killed. The
                // events prove later that each piece existed and was removed once.
                Ok(response)
                    if (attempt > 0 || self.load.has_balancer)
                        && method == Method::DELETE
                        && response.status() == StatusCode::NOT_FOUND =>
                {
                    return Vec::new();
                }
                Ok(response) if response.status().is_success() => {
                    let again = response.headers().contains_key("idempotency-replayed");
                    // A truncated response counts as no response.
                    if let Ok(body) = response.bytes().await {
                        self.load.replayed.fetch_add(usize::from(again), Ordering::Relaxed);
                        return body.into();
                    }
                }
                // The response of the server, or of a load balancer in front of it.
                Ok(response) => {
                    let unavailable = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_GATEWAY];
                    assert!(unavailable.contains(&response.status()), "{response:?}");
                }
                // The server is down at the moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
            self.load.failed.fetch_add(1, Ordering::Relaxed);
        }
        unreachable!("it is sent until there is an answer")
    }
}

fn id_of(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// The watched events of pieces.
const PIECE_EVENTS: [&str; 3] = ["contentPieceAdded", "contentPieceUpdated", "contentPieceRemoved"];

/// Waits until the receiver has all of these events, as long as deliveries continue. Returns the
/// number of repeated deliveries.
async fn assert_delivered(receiver: &Receiver, events: &[events::Event]) -> usize {
    let is_watched = |event: &&events::Event| PIECE_EVENTS.contains(&event.event_type.as_str());
    let watched: HashSet<String> =
        events.iter().filter(is_watched).map(|event| event.id.to_string()).collect();
    let (mut last_count, mut last_came) = (0, Instant::now());
    loop {
        if receiver.count() > last_count {
            (last_count, last_came) = (receiver.count(), Instant::now());
        }
        let is_over = last_came.elapsed() > Duration::from_mins(1);
        // The comparison is slow, so it waits for enough deliveries.
        if last_count >= watched.len() || is_over {
            let came = receiver.received();
            let id = |one: &ReceivedRequest| one.field("webhook-id").to_owned();
            let ids: HashSet<String> = came.iter().map(id).collect();
            let missing = watched.difference(&ids).count();
            if missing == 0 {
                assert_eq!(ids.len(), watched.len(), "something came that did not happen");
                return came.len() - ids.len();
            }
            assert!(!is_over, "{missing} of {} never came", watched.len());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn assert_whole(piece: &Value, made: &AcknowledgedPiece) {
    let slug = &made.slug;
    assert_eq!(piece["slug"], json!(slug));
    let html = format!("<p>{slug}{}</p>", words(slug));
    assert_eq!(piece["content"], json!(html), "{slug} is half there");
    assert_eq!(piece["title"], json!(made.title), "{slug} was renamed and is not");
}

/// Checks that each change has one event, and that the sequence has no gaps. Returns the events.
async fn assert_events(store: &TestStore, acknowledged: &Acknowledged) -> Vec<events::Event> {
    let database = open_database(store).await;
    let read = async |tx: &Tx<'_>| {
        let workspace = galley_storage::workspaces::list(tx).await?[0].0;
        let (found, _) = events::list_with_paths(
            tx,
            workspace,
            ContentView::Published,
            0,
            1_000_000,
            usize::MAX,
        )
        .await?;
        Ok(found.into_iter().map(|found| found.event).collect::<Vec<_>>())
    };
    let events = database.read_long::<_, Error, _>("events", read).await.unwrap();
    let numbers: Vec<i64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=events.len() as i64).collect::<Vec<_>>());
    database.close().await;
    let count = |name: &str| events.iter().filter(|event| event.event_type == name).count();
    let [added, updated, removed] = PIECE_EVENTS.map(count);
    assert_eq!((added, removed), (acknowledged.pieces.len(), acknowledged.deleted()));
    assert!(updated >= acknowledged.renames, "{updated} of {} renames", acknowledged.renames);
    events
}

/// Returns the role of the invites.
pub(crate) async fn role(program: &Program) -> String {
    let roles = program.get("/roles/list").await;
    id_of(roles.as_array().unwrap().iter().find(|role| role["name"] == "Viewer").unwrap())
}

/// Starts a receiver for the events of the group's pieces.
pub(crate) async fn receive_from(program: &Program, group: &str) -> Receiver {
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    for event in PIECE_EVENTS {
        let webhook = json!({"url": receiver.url, "name": "w", "event": event,
            "metadata": {"contentGroupId": group}});
        let made = program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
        assert_eq!(made.status(), StatusCode::CREATED);
    }
    receiver
}

/// Checks that each acknowledged change is stored once and completely, and has one delivered event.
/// Returns the number of repeated deliveries.
pub(crate) async fn assert_acknowledged_is_stored(
    store: &TestStore,
    program: &Program,
    receiver: &Receiver,
    acknowledged: &Acknowledged,
) -> usize {
    let pieces = program.pieces("content=true&contentFormat=html").await;
    let kept: HashMap<String, &Value> = pieces.iter().map(|piece| (id_of(piece), piece)).collect();
    for (id, made) in &acknowledged.pieces {
        match kept.get(id) {
            Some(piece) => {
                assert!(!made.is_deleted, "{} was deleted and is there", made.slug);
                assert_whole(piece, made);
            }
            None => assert!(made.is_deleted, "{} was answered and lost", made.slug),
        }
    }
    // Each creation was retried until its response, so an additional piece is a duplicate.
    assert_eq!(kept.len(), acknowledged.pieces.len() - acknowledged.deleted());
    let mut members: Vec<String> = Vec::new();
    loop {
        let path = format!(
            "/workspace-memberships/list-members?perPage=100&page={}",
            members.len() / 100 + 1
        );
        let page = program.get(&path).await;
        let page = page.as_array().unwrap();
        members.extend(page.iter().map(|member| member["email"].as_str().unwrap().to_owned()));
        if page.len() < 100 {
            break;
        }
    }
    let invited: HashSet<&String> = acknowledged.invited.iter().collect();
    assert_eq!(members.iter().filter(|email| invited.contains(email)).count(), invited.len());
    assert_eq!(members.len(), invited.len() + 1, "nobody is invited twice");
    let events = assert_events(store, acknowledged).await;
    assert_delivered(receiver, &events).await
}

#[on_both_engines]
async fn a_server_killed_under_load_keeps_acknowledged_writes(store: TestStore) {
    let (kills, changes): (usize, usize) = size((6, 10), (25, 20), (1_000, 100));
    let port = free_port();
    let mut program = Program::serve(&store, port);
    let group = program.group().await;
    let receiver = receive_from(&program, &group).await;
    let load = Arc::new(Load::default());
    let clients = load.start(&program.url, &group, &role(&program).await);
    let mut slowest = Duration::ZERO;
    for round in 0..kills {
        // Each kill comes after the clients have resumed, at a different time.
        load.wait_for(changes).await;
        tokio::time::sleep(Duration::from_millis(round as u64 * 7 % 40)).await;
        program.kill();
        program = Program::serve(&store, port);
        slowest = slowest.max(program.started_in);
    }
    let acknowledged = load.end(clients).await;
    let twice = assert_acknowledged_is_stored(&store, &program, &receiver, &acknowledged).await;
    let under_way = kills * 8 * PIECE_EVENTS.len();
    assert!(twice <= under_way, "{twice} came twice, more than were under way at {kills} kills");
    if let DatabaseUrl::Sqlite(_) = store.url {
        let connection = rusqlite::Connection::open(data_dir(&store).join("galley.db")).unwrap();
        let check: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    }
    let found = format!(
        "{} changes answered, {} of them a second time; 0 lost, 0 half there, 0 made twice; \
         {twice} deliveries repeated; slowest start {slowest:?}",
        acknowledged.len(),
        load.replayed.load(Ordering::Relaxed)
    );
    eprintln!("{}: {kills} kills, {found}", store.engine());
    report_figure(&format!("{}: {kills} kills under mixed load", store.engine()), found, "0 lost");
}
