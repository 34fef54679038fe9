//! Stale reads that a standby serves.

use std::time::{Duration, Instant};

use galley_testing::{PostgresServer, TestStore};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::program::{Program, free_port, galley, init_token, piece};

/// The timeout for expected changes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Starts a server with a response cache of `response_cache_size` MiB.
fn serve(store: &TestStore, replica: &PostgresServer, response_cache_size: &str) -> Program {
    let mut command = galley(store);
    command.env("GALLEY_RESPONSE_CACHE_SIZE", response_cache_size);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_DATABASE_READ_URL", replica.url());
    command.args(["serve", "--listen", &format!("127.0.0.1:{}", free_port())]);
    Program::start(command)
}

/// Sends a GET that allows a stale response of up to `max_age` seconds.
async fn get_stale(program: &Program, path: &str, max_age: u32) -> Response {
    stale_request(program, path, max_age).send().await.unwrap()
}

fn stale_request(program: &Program, path: &str, max_age: u32) -> RequestBuilder {
    program.request(Method::GET, path).header("Prefer", format!("max-age={max_age}"))
}

/// Returns the response's `Age`, which only responses of a standby have.
fn age(response: &Response) -> Option<u64> {
    let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap());
    let age = header("Age").map(|age| age.parse().unwrap());
    assert_eq!(age.is_some(), header("Preference-Applied").is_some());
    age
}

/// Repeats a request until a standby serves it.
async fn get_from_standby(program: &Program, path: &str, max_age: u32) -> Response {
    let started = Instant::now();
    for number in 0.. {
        // Each request differs, so that no response of the primary is served from the cache.
        let request =
            stale_request(program, path, max_age).header("Accept-Encoding", format!("x-{number}"));
        let response = request.send().await.unwrap();
        if age(&response).is_some() {
            return response;
        }
        assert!(started.elapsed() < TIMEOUT, "the standby is not read");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    unreachable!("it ends before")
}

async fn create_piece(program: &Program, group: &str, slug: &str) -> String {
    let made =
        program.request(Method::POST, "/content-pieces").json(&piece(group, slug, "<p>x</p>"));
    let made = made.send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    made.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
}

async fn title(response: Response) -> Value {
    assert_eq!(response.status(), StatusCode::OK);
    response.json::<Value>().await.unwrap()["title"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_reads_use_a_standby_within_the_staleness_bound() {
    let Some((primary, mut standby)) = PostgresServer::with_standby().await else { return };
    let store = primary.store();
    let program = serve(&store, &standby, "0");
    let group = program.group().await;
    let id = create_piece(&program, &group, "first").await;
    let path = format!("/content-pieces?id={id}");

    let response = get_from_standby(&program, &path, 30).await;
    assert_eq!(response.headers()["Preference-Applied"], "max-age=30");
    assert!(age(&response).unwrap() <= 30);
    let tag = response.headers()["ETag"].clone();
    assert_eq!(title(response).await, "first");
    // The same representation has the same tag, so the response is 304.
    let known = program.request(Method::GET, &path).header("If-None-Match", &tag);
    let known = known.header("Prefer", "max-age=30").send().await.unwrap();
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    assert!(age(&known).is_some());
    for list in ["/content-pieces/list", "/content-groups/list", "/tags/list", "/variants/list"] {
        assert!(age(&get_stale(&program, list, 30).await).is_some(), "{list}");
        assert_eq!(age(&program.request(Method::GET, list).send().await.unwrap()), None, "{list}");
    }
    // Only content is read from a standby.
    for other in
        ["/profile", "/roles/list", "/webhooks/list", "/workspace-memberships/list-members"]
    {
        assert_eq!(age(&get_stale(&program, other, 30).await), None, "{other}");
    }

    // From here on, the standby is paused.
    standby.execute("SELECT pg_wal_replay_pause()").await;
    let changed = program.request(Method::PUT, "/content-pieces");
    let changed = changed.json(&json!({"id": id, "title": "second"})).send().await.unwrap();
    assert_eq!(changed.status(), StatusCode::NO_CONTENT);
    let new = create_piece(&program, &group, "new").await;
    assert_eq!(title(get_stale(&program, &path, 60).await).await, "first");
    assert_eq!(title(program.request(Method::GET, &path).send().await.unwrap()).await, "second");
    assert_eq!(title(get_stale(&program, &path, 0).await).await, "second");
    // A resource that the standby lacks is read from the primary.
    let response = get_stale(&program, &format!("/content-pieces?id={new}"), 60).await;
    assert_eq!((age(&response), title(response).await), (None, json!("new")));
    // The standby is now too stale.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let response = get_stale(&program, &format!("{path}&content=true"), 2).await;
    assert_eq!((age(&response), title(response).await), (None, json!("second")));

    // Resources created just now are found.
    for (path, body) in [
        ("/tags", json!({"label": "new"})),
        ("/variants", json!({"key": "new", "label": "new"})),
        ("/content-groups", json!({"name": "new"})),
    ] {
        let made = program.request(Method::POST, path).json(&body).send().await.unwrap();
        let made: Value = made.json().await.unwrap();
        let path = format!("{path}?id={}", made["id"].as_str().unwrap());
        let response = get_stale(&program, &path, 60).await;
        assert_eq!((response.status(), age(&response)), (StatusCode::OK, None), "{path}");
    }

    // Tokens limited to groups read from the primary.
    let limited =
        json!({"name": "l", "permissions": ["contentPieces:read"], "contentGroupIds": [group]});
    let limited = program.request(Method::POST, "/tokens").json(&limited).send().await.unwrap();
    let limited: Value = limited.json().await.unwrap();
    let request = reqwest::Client::new().get(format!("{}{path}", program.url));
    let request = request.bearer_auth(limited["token"].as_str().unwrap());
    let response = request.header("Prefer", "max-age=60").send().await.unwrap();
    assert_eq!((age(&response), title(response).await), (None, json!("second")));

    // Permissions are never stale.
    let token = program
        .request(Method::POST, "/tokens")
        .json(&json!({"name": "t", "permissions": ["contentPieces:read"]}));
    let token: Value = token.send().await.unwrap().json().await.unwrap();
    let own = |request: RequestBuilder| request.bearer_auth(token["token"].as_str().unwrap());
    let ask = || {
        reqwest::Client::new().get(format!("{}{path}", program.url)).header("Prefer", "max-age=60")
    };
    assert_eq!(own(ask()).send().await.unwrap().status(), StatusCode::OK);
    let revoked = format!("/tokens?id={}", token["id"].as_str().unwrap());
    let revoked = program.request(Method::DELETE, &revoked).send().await.unwrap();
    assert_eq!(revoked.status(), StatusCode::NO_CONTENT);
    assert_eq!(own(ask()).send().await.unwrap().status(), StatusCode::UNAUTHORIZED);

    // The standby resumes.
    standby.execute("SELECT pg_wal_replay_resume()").await;
    assert_eq!(
        title(get_from_standby(&program, &format!("{path}&content=true"), 2).await).await,
        "second"
    );

    // Without a standby, all reads go to the primary.
    primary.execute("ALTER SYSTEM RESET synchronous_standby_names").await;
    standby.stop();
    let response = get_stale(&program, &format!("{path}&contentFormat=html"), 60).await;
    assert_eq!((age(&response), title(response).await), (None, json!("second")));
    // A restarted standby is used again.
    standby.start().await;
    get_from_standby(&program, &format!("/content-pieces?id={new}&content=true"), 60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_responses_are_not_cached() {
    let Some((primary, standby)) = PostgresServer::with_standby().await else { return };
    let program = serve(&primary.store(), &standby, "64");
    let group = program.group().await;
    let path = format!("/content-pieces?id={}", create_piece(&program, &group, "first").await);
    // The list is polled, so that the piece itself has not been requested yet.
    get_from_standby(&program, "/content-pieces/list", 30).await;
    standby.execute("SELECT pg_wal_replay_pause()").await;
    let id = path.split_once('=').unwrap().1;
    let changed = program.request(Method::PUT, "/content-pieces");
    let changed = changed.json(&json!({"id": id, "title": "second"})).send().await.unwrap();
    assert_eq!(changed.status(), StatusCode::NO_CONTENT);
    for _ in 0..3 {
        let response = get_stale(&program, &path, 60).await;
        assert!(age(&response).is_some());
        assert_eq!(title(response).await, "first");
    }
    for _ in 0..3 {
        let response = program.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(title(response).await, "second");
    }
    // The primary's response is cached, and newer.
    let response = get_stale(&program, &path, 60).await;
    assert_eq!((age(&response), title(response).await), (None, json!("second")));
}

/// A database of another installation, and a copy of the database itself. The copy has its own
/// history, although PostgreSQL gives it the same name and it has the same log position.
#[tokio::test(flavor = "multi_thread")]
async fn standbys_of_other_databases_are_not_used() {
    let Some(store) = TestStore::postgres().await else { return };
    let Some((mut primary, standby)) = PostgresServer::with_standby().await else { return };
    drop(Program::serve(&primary.store(), free_port()));
    primary.stop();
    let copy = primary.copy().await;
    primary.start().await;
    for store in [store, copy.store()] {
        let program = serve(&store, &standby, "0");
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3) {
            let response = get_stale(&program, "/content-pieces/list", 1_000).await;
            assert_eq!((response.status(), age(&response)), (StatusCode::OK, None));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
