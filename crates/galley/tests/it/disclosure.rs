//! Secrets and internals that must not leak through error responses or copies of the database.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::invites::code;
use crate::kills::role;
use crate::mails::in_outbox;
use crate::program::{
    KEY, Program, client, data_dir, execute, galley, init_token, piece, run, stderr,
};

/// The bytes of [`KEY`].
const KEY_BYTES: [u8; 32] = {
    let mut bytes = [0; 32];
    let mut place = 0;
    while place < 32 {
        bytes[place as usize] = place;
        place += 1;
    }
    bytes
};

/// The bytes of [`WEBHOOK_SECRET`].
const WEBHOOK_KEY: &[u8] = b"a key for signing of webhooks...";
const WEBHOOK_SECRET: &str = "whsec_YSBrZXkgZm9yIHNpZ25pbmcgb2Ygd2ViaG9va3MuLi4=";

/// Starts a server with the tests' key on either engine.
fn serve(store: &TestStore) -> Program {
    let mut command = galley(store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_KEY", KEY);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    Program::start(command)
}

/// Creates a resource, and returns the response.
async fn create(program: &Program, path: &str, body: &Value) -> Value {
    let key = format!("once for {path}");
    let request = program.request(Method::POST, path).header("idempotency-key", key);
    let answer = request.json(body).send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns all data that a thief of the database would have, by file or table.
async fn dump(store: &TestStore) -> Vec<(String, Vec<u8>)> {
    match &store.url {
        DatabaseUrl::Sqlite(_) => {
            let files = fs::read_dir(data_dir(store)).unwrap().map(|file| file.unwrap().path());
            let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
            let files = files.filter(|path| name(path).starts_with("galley.db"));
            files.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
        }
        DatabaseUrl::Postgres(url) => {
            let client = client(url).await;
            let sql = "SELECT table_name::text FROM information_schema.tables
                WHERE table_schema = 'public'";
            let mut all = Vec::new();
            for table in client.query(sql, &[]).await.unwrap() {
                let table: String = table.get(0);
                let rows = client.query(&format!("SELECT t::text FROM {table} t"), &[]).await;
                let rows = rows.unwrap().into_iter().map(|row| row.get::<_, String>(0));
                all.push((table, rows.collect::<Vec<_>>().join("\n").into_bytes()));
            }
            all
        }
    }
}

fn contains_bytes(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

/// Formats bytes as PostgreSQL does.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[on_both_engines]
async fn database_copies_contain_no_plaintext_secret(store: TestStore) {
    let mut program = serve(&store);
    let group = program.group().await;
    let content = piece(&group, "found-slug", "<p>found</p>");
    create(&program, "/content-pieces", &content).await;
    let token = create(&program, "/tokens", &json!({"name": "t", "permissions": []})).await;
    let webhook = json!({"url": "https://hooks.invalid/", "name": "w", "event": "memberInvited",
        "secret": WEBHOOK_SECRET});
    create(&program, "/webhooks", &webhook).await;
    let role = role(&program).await;
    let invite = json!({"email": "ann@example.org", "name": "Ann", "roleId": role});
    create(&program, "/workspace-memberships", &invite).await;
    let code = code(&in_outbox(&store, 1).await[0]);
    let acceptance = json!({"code": code, "username": "ann", "fullName": "Ann"});
    let member = create(&program, "/invites/accept", &acceptance).await;
    let text = |value: &Value| value["token"].as_str().unwrap().as_bytes().to_vec();
    let secrets = [
        init_token().into_bytes(),
        text(&token),
        text(&member),
        code.into_bytes(),
        WEBHOOK_SECRET.as_bytes().to_vec(),
        WEBHOOK_KEY.to_vec(),
        KEY.as_bytes().to_vec(),
        KEY_BYTES.to_vec(),
    ];
    let live = dump(&store).await;
    program.terminate();
    let mut all = dump(&store).await;
    all.extend(live);
    let backup = store.directory().join("store.backup");
    let bundle = store.directory().join("bundle");
    let bundle_folder = bundle.to_str().unwrap();
    for arguments in
        [&["backup", backup.to_str().unwrap()][..], &["export", bundle_folder, "--format", "json"]]
    {
        let output = run(galley(&store).env("GALLEY_KEY", KEY).args(arguments));
        assert!(output.status.success(), "{}", stderr(&output));
    }
    all.push(("the backup".to_owned(), fs::read(&backup).unwrap()));
    let mut exported = Vec::new();
    for (name, text) in crate::program::files(&bundle) {
        exported.extend_from_slice(text.as_bytes());
        all.push((name, text.into_bytes()));
    }
    // Known texts must be found, as otherwise the absence of secrets proves nothing.
    let whole: Vec<u8> = all.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    for found in ["found-slug", "hooks.invalid", "ann@example.org"] {
        assert!(contains_bytes(&whole, found.as_bytes()), "{found} is not seen");
        assert!(contains_bytes(&exported, found.as_bytes()), "{found} is not exported");
    }
    for (name, bytes) in &all {
        for secret in &secrets {
            let is_there =
                contains_bytes(bytes, secret) || contains_bytes(bytes, hex(secret).as_bytes());
            assert!(!is_there, "{:?} is in {name}", String::from_utf8_lossy(secret));
        }
    }
}

#[on_both_engines]
async fn internal_errors_disclose_no_details(store: TestStore) {
    let mut program = serve(&store);
    let group = program.group().await;
    let made = create(&program, "/content-pieces", &piece(&group, "one", "<p>one</p>")).await;
    let id = made["id"].as_str().unwrap();
    // Damage that no request can cause.
    execute(&store, "UPDATE content_piece_contents SET tree = '{\"broken-tree'").await;
    execute(&store, "ALTER TABLE tags RENAME TO gone").await;
    let mut ids = Vec::new();
    for (method, path, body) in [
        (Method::GET, format!("/content-pieces?id={id}&content=true&contentFormat=html"), None),
        (Method::GET, "/tags/list".to_owned(), None),
        (Method::POST, "/tags".to_owned(), Some(json!({"label": "x"}))),
    ] {
        let mut request = program.request(method, &path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        let problem: Value = answer.json().await.unwrap();
        let expected = json!({"type": "/problems/internal", "status": 500, "reason": "internal",
            "title": "Internal error", "instance": null,
            "detail": "the log contains the cause under this request's id",
            "message": "the log contains the cause under this request's id",
            "requestId": request_id});
        let known = |value: &Value| -> Value {
            let fields = value.as_object().unwrap().iter().filter(|(name, _)| *name != "code");
            fields
                .filter(|(_, value)| !value.is_null())
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        };
        assert_eq!(known(&problem), known(&expected), "{path}");
        ids.push(request_id);
    }
    assert!(program.get("/content-groups/list").await.is_array(), "the rest goes on");
    program.terminate();
    let log = program.rest_of_log();
    for id in ids {
        let told = log.lines().any(|line| line.contains(&id) && line.contains("ERROR"));
        assert!(told, "{id} has no cause in the log: {log}");
    }
}

#[on_both_engines]
async fn webhooks_follow_neither_redirects_nor_proxies(store: TestStore) {
    // This receiver must not get any request.
    let canary = Receiver::start(Behaviour::Status(200)).await;
    let address = canary.url.trim_end_matches("/hook");
    let mut command = galley(&store);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        command.env(name, address);
    }
    command.env_remove("no_proxy").env_remove("NO_PROXY");
    command.env("GALLEY_INIT_TOKEN", init_token()).args(["serve", "--listen", "127.0.0.1:0"]);
    let program = Program::start(command);
    let group = program.group().await;
    let url = &canary.url;
    let mut receivers = Vec::new();
    for head in [
        (301, format!("location: {url}")),
        (302, format!("location: {url}")),
        (303, format!("location: {url}")),
        (307, format!("location: {url}")),
        (308, format!("location: //{}", url.trim_start_matches("http://"))),
        (300, format!("location: {url}\r\nalternates: {{\"{url}\" 1.0}}")),
        (200, format!("refresh: 0; url={url}\r\nlink: <{url}>; rel=preload")),
        (401, format!("www-authenticate: Basic realm=\"x\"\r\nlocation: {url}")),
        (407, format!("proxy-authenticate: Basic realm=\"x\"\r\nlocation: {url}")),
        (305, format!("location: {url}")),
    ] {
        receivers.push(Receiver::start(Behaviour::Head(head.0, head.1)).await);
    }
    for receiver in &receivers {
        let webhook = json!({"url": receiver.url, "name": "w", "event": "contentPieceAdded",
            "metadata": {"contentGroupId": group}});
        let answer =
            program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    create(&program, "/content-pieces", &piece(&group, "one", "<p>one</p>")).await;
    for receiver in &receivers {
        receiver.wait_for(1).await;
    }
    // Then the server has seen each response.
    let started = Instant::now();
    loop {
        let deliveries = program.get("/webhooks/deliveries?perPage=100").await;
        let attempts = deliveries.as_array().unwrap().iter();
        let tried =
            attempts.filter(|one| one["attempts"].as_array().is_some_and(|all| !all.is_empty()));
        if tried.count() == receivers.len() {
            break;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{deliveries}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((canary.connections(), canary.count()), (0, 0));
}
