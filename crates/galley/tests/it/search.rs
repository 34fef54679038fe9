//! The search index of a program that is killed, and the command `galley search`.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{
    KEY, Program, client, data_dir, execute, free_port, galley, init_token, piece, run, stderr,
    stdout,
};

const WRITERS: usize = 4;

/// The longest time without progress.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Returns the ids of the hits of a query.
async fn hits(program: &Program, query: &str) -> Vec<String> {
    let path = format!("/content-pieces/search?perPage=100&fields=id&query={query}");
    let found = program.get(&path).await;
    let found = found.as_array().unwrap().iter();
    found.map(|hit| hit["piece"]["id"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the index has all events.
async fn catch_up(program: &Program) {
    let last = async || {
        let mut after = 0;
        loop {
            let page = program.get(&format!("/events?perPage=1000&after={after}")).await;
            let Some(event) = page.as_array().unwrap().last() else { return after };
            after = event["sequence"].as_i64().unwrap();
        }
    };
    let (last, started) = (last().await, Instant::now());
    loop {
        let request = program.request(Method::GET, "/content-pieces/search");
        let response = request.send().await.unwrap();
        let sequence = response.headers()["search-sequence"].to_str().unwrap().to_owned();
        if sequence.parse::<i64>().unwrap() >= last {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "the index has {sequence} of {last} events");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn command(store: &TestStore, arguments: &[&str]) -> Command {
    let mut command = galley(store);
    command.env("GALLEY_KEY", KEY).env("GALLEY_INIT_TOKEN", init_token()).args(arguments);
    command
}

fn serve(store: &TestStore, port: u16) -> Program {
    Program::start(command(store, &["serve", "--listen", &format!("127.0.0.1:{port}")]))
}

fn run_well(store: &TestStore, arguments: &[&str]) -> String {
    let output = run(&mut command(store, arguments));
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

#[on_both_engines]
async fn pieces_are_found_by_the_command_and_after_a_restore(store: TestStore) {
    let program = serve(&store, free_port());
    let group = program.group().await;
    for (slug, content) in [("ferry", "<p>To the islands.</p>"), ("train", "<p>A \"fast\" one</p>")]
    {
        let request = program.request(Method::POST, "/content-pieces");
        let created = request.json(&piece(&group, slug, content)).send().await.unwrap();
        assert_eq!(created.status(), StatusCode::CREATED);
    }
    catch_up(&program).await;
    let found = run_well(&store, &["search", "islands ferry"]);
    assert!(
        found.starts_with("cp_") && found.contains("1       ferry\n    To the islands."),
        "{found}"
    );
    let found: Value =
        serde_json::from_str(&run_well(&store, &["search", "--json", "fast"])).unwrap();
    assert_eq!((&found["title"], &found["passage"]), (&json!("train"), &json!("A \"fast\" one")));
    assert_eq!(run_well(&store, &["search", "--view", "published", "fast"]), "");
    let rebuilt = run_well(&store, &["search", "rebuild"]);
    assert!(rebuilt.contains("2 pieces indexed"), "{rebuilt}");
    assert_eq!(hits(&program, "ferry").await.len(), 1);
    let other = run(&mut command(&store, &["search", "--variant", "de", "fast"]));
    assert!(!other.status.success() && stderr(&other).contains("variant"), "{}", stderr(&other));
    // A backup of PostgreSQL has no index. It is built again.
    let backup = store.directory().join("a.backup");
    let path = backup.to_str().unwrap();
    run_well(&store, &["backup", path]);
    drop(program);
    let restored = TestStore::sqlite();
    run_well(&restored, &["restore", path]);
    let found = run(&mut command(&restored, &["search", "islands"]));
    let has_index = store.engine() == "SQLite";
    assert_eq!(stdout(&found).contains("To the islands."), has_index, "{found:?}");
    assert_eq!(stderr(&found).contains("galley search rebuild"), !has_index, "{found:?}");
    // Without a server, the command itself rebuilds.
    let rebuilt = run_well(&restored, &["search", "rebuild"]);
    assert!(rebuilt.contains("2 pieces indexed"), "{rebuilt}");
    let program = serve(&restored, free_port());
    catch_up(&program).await;
    assert_eq!(hits(&program, "islands").await.len(), 1);
}

/// The work that the writers share.
#[derive(Debug, Default)]
struct Work {
    stop: AtomicBool,
    completed: AtomicUsize,
}

struct Writer {
    client: Client,
    url: String,
    group: String,
    work: Arc<Work>,
}

impl Writer {
    /// Creates, changes and deletes pieces until `stop` is set. Returns the last word of the title
    /// of each piece; `None` if it was deleted.
    async fn write(self, writer: usize) -> BTreeMap<String, Option<String>> {
        let mut words = BTreeMap::new();
        for number in 0.. {
            if self.work.stop.load(Ordering::Relaxed) {
                break;
            }
            let word = |version: usize| format!("w{writer}x{number}v{version}");
            let mut body = piece(&self.group, &word(0), "<p>Text of a piece</p>");
            let key = word(0);
            let created = self.send(Method::POST, "/content-pieces", &key, &body).await;
            let id = created["id"].as_str().unwrap().to_owned();
            for version in 1..number % 4 {
                body = json!({"id": id, "title": word(version)});
                self.send(Method::PUT, "/content-pieces", &key, &body).await;
            }
            let mut last = Some(word((number % 4).max(1) - 1));
            if number % 5 == 0 {
                let path = format!("/content-pieces?id={id}");
                self.send(Method::DELETE, &path, &key, &Value::Null).await;
                last = None;
            }
            words.insert(id, last);
            self.work.completed.fetch_add(1, Ordering::Relaxed);
        }
        words
    }

    /// Sends a request until there is a response.
    async fn send(&self, method: Method, path: &str, key: &str, body: &Value) -> Value {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < TIMEOUT, "there is no response");
            let request = self.client.request(method.clone(), format!("{}{path}", self.url));
            let mut request = request.bearer_auth(init_token());
            if method == Method::POST {
                request = request.header("idempotency-key", key);
            }
            if let Ok(response) = request.json(body).send().await {
                let status = response.status();
                // An earlier attempt may have deleted the piece.
                if status.is_success() || status == StatusCode::NOT_FOUND {
                    return response.json().await.unwrap_or_default();
                }
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Returns the numbers of documents, and of documents with terms.
async fn counts(store: &TestStore) -> (i64, i64) {
    let documents = "SELECT count(*) FROM search_documents";
    match &store.url {
        DatabaseUrl::Sqlite(_) => {
            let file = rusqlite::Connection::open(data_dir(store).join("galley.db")).unwrap();
            let count = |sql: &str| file.query_row(sql, [], |row| row.get(0)).unwrap();
            (count(documents), count("SELECT count(*) FROM search_terms_docsize"))
        }
        DatabaseUrl::Postgres(url) => {
            let client = client(url).await;
            let terms = "SELECT count(DISTINCT row_id) FROM search_terms";
            let documents = client.query_one(documents, &[]).await.unwrap().get(0);
            (documents, client.query_one(terms, &[]).await.unwrap().get(0))
        }
    }
}

/// Checks the hits of each word of a title.
async fn check(program: &Program, words: &BTreeMap<String, Option<String>>) {
    for (id, word) in words {
        if let Some(word) = word {
            assert_eq!(hits(program, word).await, [id.clone()], "{word}");
        }
    }
}

#[on_both_engines]
async fn after_kills_the_index_is_that_of_the_pieces(store: TestStore) {
    let (kills, pieces): (u64, usize) = size((3, 20), (10, 30), (100, 40));
    let port = free_port();
    let mut program = serve(&store, port);
    let (group, work) = (program.group().await, Arc::new(Work::default()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let client = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build();
            let (client, url, group) = (client.unwrap(), program.url.clone(), group.clone());
            tokio::spawn(Writer { client, url, group, work: Arc::clone(&work) }.write(number))
        })
        .collect();
    for round in 0..kills {
        let (before, started) = (work.completed.load(Ordering::Relaxed), Instant::now());
        while work.completed.load(Ordering::Relaxed) < before + pieces {
            assert!(started.elapsed() < TIMEOUT, "clients get no answers");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(round * 7 % 40)).await;
        program.kill();
        program = serve(&store, port);
    }
    work.stop.store(true, Ordering::Relaxed);
    let mut words = BTreeMap::new();
    for writer in writers {
        words.extend(writer.await.unwrap());
    }
    catch_up(&program).await;
    let left = words.values().flatten().count();
    let count = i64::try_from(left).unwrap();
    assert_eq!(counts(&store).await, (count, count));
    check(&program, &words).await;
    if matches!(store.url, DatabaseUrl::Sqlite(_)) {
        execute(&store, "INSERT INTO search_terms(search_terms) VALUES('integrity-check')").await;
    }
    run_well(&store, &["search", "rebuild"]);
    assert_eq!(counts(&store).await, (count, count));
    check(&program, &words).await;
    report_figure(
        &format!("{}: {kills} kills during indexing", store.engine()),
        format!("{left} pieces found by their last title, as after a rebuild"),
        "0 differences",
    );
}
