//! Repeated kills while schedules run and revisions are restored. Each schedule runs once, each
//! restoration is applied once, and the published view is complete afterwards.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_application::Environment;
use galley_domain::Timestamp;
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{Program, free_port, init_token, piece};

const WRITERS: usize = 4;

/// The longest time without progress.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The work that the writers share.
#[derive(Debug, Default)]
struct Work {
    stop: AtomicBool,
    completed: AtomicUsize,
}

/// A piece whose schedule and restoration were acknowledged.
#[derive(Debug)]
struct ScheduledPiece {
    id: String,
    is_unpublished: bool,
    is_restored: bool,
}

/// A client that writes pieces through any of several servers.
struct Writer {
    client: Client,
    urls: Vec<String>,
    group: String,
    work: Arc<Work>,
}

impl Writer {
    /// Writes pieces until `stop` is set.
    async fn write(self, writer_number: usize) -> Vec<ScheduledPiece> {
        let mut written = Vec::new();
        for number in 0.. {
            if self.work.stop.load(Ordering::Relaxed) {
                break;
            }
            let key = format!("w{writer_number}-{number}");
            let mut new = piece(&self.group, &key, "<p>Text</p>");
            new["title"] = json!(format!("{key} first"));
            let created = self.send(Method::POST, "/content-pieces", &key, &new).await;
            let id = created["id"].as_str().unwrap().to_owned();
            let (is_unpublished, is_restored) = (number % 3 == 1, number % 2 == 1);
            let offset = 100 + i64::from(number * 37 % 900);
            let at = |offset: i64| {
                Timestamp::from_ms(Environment::default().now().ms() + offset).to_string()
            };
            let mut schedule = json!({"id": id, "at": at(offset)});
            if is_unpublished {
                schedule["unpublishAt"] = json!(at(offset + 200));
            }
            let path = "/content-pieces/publish";
            self.send(Method::POST, path, &format!("{key} schedule"), &schedule).await;
            let change = json!({"id": id, "title": format!("{key} second")});
            self.send(Method::PUT, "/content-pieces", &key, &change).await;
            if is_restored {
                let path = format!("/content-pieces/revisions?perPage=100&id={id}");
                let revisions = self.send(Method::GET, &path, &key, &Value::Null).await;
                let first = revisions.as_array().unwrap().last().unwrap()["id"].clone();
                let restoration = json!({"id": id, "revision": first});
                let path = "/content-pieces/restore";
                self.send(Method::POST, path, &format!("{key} restore"), &restoration).await;
            }
            written.push(ScheduledPiece { id, is_unpublished, is_restored });
            self.work.completed.fetch_add(1, Ordering::Relaxed);
        }
        written
    }

    /// Sends a request to one server after another until one responds.
    async fn send(&self, method: Method, path: &str, key: &str, body: &Value) -> Value {
        for attempt in key.len().. {
            let url = format!("{}{path}", self.urls[attempt % self.urls.len()]);
            let mut request = self.client.request(method.clone(), url).bearer_auth(init_token());
            if method == Method::POST {
                request = request.header("idempotency-key", key);
            }
            if method != Method::GET {
                request = request.json(body);
            }
            match request.send().await {
                Ok(response) if response.status().is_success() => {
                    if let Ok(body) = response.bytes().await {
                        return serde_json::from_slice(&body).unwrap_or_default();
                    }
                }
                Ok(response) => {
                    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{response:?}");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        unreachable!("it is sent until there is a response")
    }
}

/// Starts the writers.
fn start_writers(
    work: &Arc<Work>,
    urls: &[String],
    group: &str,
) -> Vec<tokio::task::JoinHandle<Vec<ScheduledPiece>>> {
    let start = |number| {
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build();
        let writer = Writer {
            client: client.unwrap(),
            urls: urls.to_vec(),
            group: group.to_owned(),
            work: Arc::clone(work),
        };
        tokio::spawn(writer.write(number))
    };
    (0..WRITERS).map(start).collect()
}

/// Waits for so many further pieces.
async fn wait_for(work: &Work, count: usize) {
    let (started, before) = (Instant::now(), work.completed.load(Ordering::Relaxed));
    while work.completed.load(Ordering::Relaxed) < before + count {
        assert!(started.elapsed() < TIMEOUT, "writers get no responses");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The published view as a site sees it.
struct Site {
    token: String,
    receiver: Receiver,
}

const PUBLISHED_EVENTS: [&str; 3] =
    ["contentPieceAdded", "contentPieceUpdated", "contentPieceRemoved"];

impl Site {
    async fn of(program: &Program, group: &str) -> Self {
        let create = async |path: &str, body: Value| {
            let created = program.request(Method::POST, path).json(&body).send().await.unwrap();
            assert_eq!(created.status(), StatusCode::CREATED, "{path}");
            created.json::<Value>().await.unwrap()
        };
        let permissions = ["contentPieces:read", "contentGroups:read"];
        let token = json!({"name": "site", "view": "published", "permissions": permissions});
        let token = create("/tokens", token).await["token"].as_str().unwrap().to_owned();
        let receiver = Receiver::start(Behaviour::Status(200)).await;
        for event in PUBLISHED_EVENTS {
            let webhook = json!({"url": receiver.url, "name": "w", "event": event,
                "metadata": {"contentGroupId": group}, "view": "published"});
            create("/webhooks", webhook).await;
        }
        Self { token, receiver }
    }

    async fn get(&self, program: &Program, path: &str) -> Option<Value> {
        let request = program.client.get(format!("{}{path}", program.url));
        let response = request.bearer_auth(&self.token).send().await.unwrap();
        if response.status() == StatusCode::NOT_FOUND {
            return None;
        }
        assert!(response.status().is_success(), "{path}: {response:?}");
        Some(response.json().await.unwrap())
    }
}

/// Returns how many events of each type each piece has, as `read` returns pages of them.
async fn count_events(read: impl AsyncFn(String) -> Value) -> HashMap<(String, String), usize> {
    let (mut counts, mut after) = (HashMap::new(), 0);
    loop {
        let page = read(format!("/events?perPage=1000&after={after}")).await;
        let page = page.as_array().unwrap();
        let Some(last) = page.last() else { return counts };
        after = last["sequence"].as_i64().unwrap();
        for event in page {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            *counts.entry((text(&event["type"]), text(&event["data"]["id"]))).or_default() += 1;
        }
    }
}

/// Checks that each schedule has run once, each restoration was applied once, and that the site
/// sees and was sent exactly the published pieces.
async fn assert_each_ran_once(program: &Program, site: &Site, written: &[ScheduledPiece]) {
    let (mut least, mut progressed) = (usize::MAX, Instant::now());
    loop {
        let pieces = program.pieces("fields=order,publication").await;
        let is_scheduled = |piece: &&Value| {
            let publication = &piece["publication"];
            !publication["publishAt"].is_null() || !publication["unpublishAt"].is_null()
        };
        let left = pieces.iter().filter(is_scheduled).count();
        if left == 0 {
            break;
        }
        if left < least {
            (least, progressed) = (left, Instant::now());
        }
        assert!(progressed.elapsed() < TIMEOUT, "{left} due schedules do not run");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let own = count_events(async |path| program.get(&path).await).await;
    let seen = count_events(async |path| site.get(program, &path).await.unwrap()).await;
    for ScheduledPiece { id, is_unpublished, is_restored } in written {
        let count = |counts: &HashMap<(String, String), usize>, event: &str| {
            counts.get(&(event.to_owned(), id.clone())).copied().unwrap_or_default()
        };
        let removed = usize::from(*is_unpublished);
        assert_eq!(count(&own, "contentPiecePublished"), 1, "{id}");
        assert_eq!(count(&own, "contentPieceUnpublished"), removed, "{id}");
        assert_eq!(count(&seen, "contentPieceAdded"), 1, "{id}");
        assert_eq!(count(&seen, "contentPieceRemoved"), removed, "{id}");
        let path = format!("/content-pieces/revisions?perPage=100&id={id}");
        let revisions = program.get(&path).await;
        assert_eq!(revisions.as_array().unwrap().len(), 2 + usize::from(*is_restored), "{id}");
        let current = program.get(&format!("/content-pieces?id={id}")).await;
        let title = current["title"].as_str().unwrap();
        assert!(title.ends_with(if *is_restored { "first" } else { "second" }), "{title}");
        let shown = site.get(program, &format!("/content-pieces?id={id}&content=true")).await;
        assert_eq!(shown.is_none(), *is_unpublished, "{id}");
        if let Some(shown) = shown {
            let revision = current["publication"]["revision"].as_str().unwrap();
            let path = format!("/content-pieces/revision?id={id}&revision={revision}&content=true");
            let published = program.get(&path).await;
            for field in ["title", "content", "slug"] {
                assert_eq!(shown[field], published[field], "{id}: {field}");
            }
        }
    }
    let expected: usize = PUBLISHED_EVENTS
        .iter()
        .flat_map(|event| seen.iter().filter(move |((found, _), _)| found == event))
        .map(|(_, count)| count)
        .sum();
    let started = Instant::now();
    loop {
        let received = site.receiver.received();
        let ids: std::collections::HashSet<_> =
            received.iter().map(|one| one.field("webhook-id").to_owned()).collect();
        assert!(ids.len() <= expected, "{} events of {expected} were sent", ids.len());
        if ids.len() == expected {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{} of {expected} events were sent", ids.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn end(
    work: &Work,
    writers: Vec<tokio::task::JoinHandle<Vec<ScheduledPiece>>>,
) -> Vec<ScheduledPiece> {
    work.stop.store(true, Ordering::Relaxed);
    let mut written = Vec::new();
    for writer in writers {
        written.extend(writer.await.unwrap());
    }
    written
}

#[on_both_engines]
async fn a_killed_server_runs_each_schedule_and_restoration_once(store: TestStore) {
    let (kills, pieces): (usize, usize) = size((4, 8), (12, 10), (200, 20));
    let port = free_port();
    let mut program = Program::serve(&store, port);
    let group = program.group().await;
    let site = Site::of(&program, &group).await;
    let work = Arc::new(Work::default());
    let writers = start_writers(&work, &[program.url.clone()], &group);
    for round in 0..kills {
        wait_for(&work, pieces).await;
        tokio::time::sleep(Duration::from_millis(round as u64 * 83 % 700)).await;
        program.kill();
        program = Program::serve(&store, port);
    }
    let written = end(&work, writers).await;
    assert_each_ran_once(&program, &site, &written).await;
    let found = format!("{} schedules; 0 lost, 0 run twice, 0 half done", written.len());
    eprintln!("{}: {kills} kills, {found}", store.engine());
    let condition = format!("{}: {kills} kills while schedules run", store.engine());
    report_figure(&condition, found, "0 lost, 0 run twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_run_each_schedule_once_while_they_are_killed() {
    let Some(store) = TestStore::postgres().await else { return };
    let (kills, pieces): (usize, usize) = size((3, 8), (9, 10), (200, 20));
    let ports = [free_port(), free_port(), free_port()];
    let mut nodes = ports.map(|port| Program::serve(&store, port));
    let group = nodes[0].group().await;
    let site = Site::of(&nodes[0], &group).await;
    let work = Arc::new(Work::default());
    let urls: Vec<_> = nodes.iter().map(|node| node.url.clone()).collect();
    let writers = start_writers(&work, &urls, &group);
    for round in 0..kills {
        wait_for(&work, pieces).await;
        let node = round % nodes.len();
        nodes[node].kill();
        nodes[node] = Program::serve(&store, ports[node]);
    }
    let written = end(&work, writers).await;
    assert_each_ran_once(&nodes[0], &site, &written).await;
    let found = format!("{} schedules; 0 lost, 0 run twice, 0 half done", written.len());
    eprintln!("three nodes: {kills} kills, {found}");
    let condition = format!("three nodes: {kills} kills while schedules run");
    report_figure(&condition, found, "0 lost, 0 run twice");
}
