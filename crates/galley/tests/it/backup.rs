//! Whole stores: copied between engines, backed up during writes, and restored.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use galley_storage::DatabaseUrl;
use galley_testing::reliability_suite::size;
use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{KEY, Program, data_dir, galley, init_token, piece, run, stderr, stdout};

const CLIENTS: usize = 8;

fn pieces() -> usize {
    size(40, 40, 100_000)
}

/// Returns a command on a store, always with the same key.
fn command(store: &TestStore) -> Command {
    let mut command = galley(store);
    command.env("GALLEY_KEY", KEY).env("GALLEY_INIT_TOKEN", init_token());
    command.env("GALLEY_WEBHOOKS_ALLOW", "127.0.0.0/8");
    command
}

fn serve(store: &TestStore) -> Program {
    let mut command = command(store);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    Program::start(command)
}

/// Returns an empty store of the same or the other engine.
async fn empty(like: &TestStore, same: bool) -> TestStore {
    match (&like.url, same) {
        (DatabaseUrl::Sqlite(_), false) | (DatabaseUrl::Postgres(_), true) => {
            // Without a PostgreSQL server for tests, the copy uses SQLite on both sides.
            TestStore::postgres().await.unwrap_or_else(TestStore::sqlite)
        }
        _ => TestStore::sqlite(),
    }
}

/// Returns the store's address for `--from` and `--to`.
fn url(store: &TestStore) -> String {
    match &store.url {
        DatabaseUrl::Sqlite(_) => format!("sqlite:{}", data_dir(store).display()),
        DatabaseUrl::Postgres(url) => url.clone(),
    }
}

fn copy(from: &TestStore, to: &TestStore) -> Command {
    let mut command = command(from);
    command.args(["copy", "--from", &url(from), "--to", &url(to)]);
    command
}

async fn send(program: &Program, method: Method, path: &str, body: &Value) -> Value {
    let request =
        program.request(method, path).json(body).header("prefer", "return=representation");
    let answer = request.send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{path} {body}: {status} {text}");
    serde_json::from_str(&text).unwrap()
}

async fn create(program: &Program, path: &str, body: &Value) -> String {
    send(program, Method::POST, path, body).await["id"].as_str().unwrap().to_owned()
}

/// Creates resources of every kind, with `count` pieces, each with a variant. The webhook is
/// disabled, so its deliveries to the receiver are paused.
async fn fill(program: &Program, count: usize, receiver: &Receiver) {
    let group = program.group().await;
    // A group whose parent was created after it.
    let older = create(program, "/content-groups", &json!({"name": "older"})).await;
    let younger =
        create(program, "/content-groups", &json!({"name": "younger", "ancestor": group})).await;
    send(program, Method::PUT, "/content-groups", &json!({"id": older, "ancestor": younger})).await;
    let tag = create(program, "/tags", &json!({"label": "\u{c4}"})).await;
    create(program, "/variants", &json!({"key": "de", "label": "Deutsch"})).await;
    let role = json!({"name": "Author", "permissions": ["contentPieces:write", "tags:read"]});
    let role = create(program, "/roles", &role).await;
    let person = json!({"email": "ann@example.org", "name": "Ann", "roleId": role});
    let member = create(program, "/workspace-memberships", &person).await;
    let token = json!({"name": "limited", "permissions": ["contentPieces:read"], "contentGroupIds": [older]});
    create(program, "/tokens", &token).await;
    let webhook = json!({"url": receiver.url, "name": "w", "event": "contentPieceAdded", "enabled": false,
        "metadata": {"contentGroupId": older}, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"});
    create(program, "/webhooks", &webhook).await;
    let (url, group) = (program.url.clone(), older);
    let clients = (0..CLIENTS).map(|client_number| {
        let (url, group, tag, member) = (url.clone(), group.clone(), tag.clone(), member.clone());
        tokio::spawn(async move {
            let client = Client::builder().no_proxy().build().unwrap();
            for number in (client_number..count).step_by(CLIENTS) {
                let mut body =
                    piece(&group, &format!("p{number}"), &format!("<p>{number} \u{e9}<br></p>"));
                body["tags"] = json!([tag]);
                body["members"] = json!([member]);
                body["customData"] = json!("{\"a\": 1.50}");
                let path = format!("{url}/content-pieces");
                let request = client.post(&path).bearer_auth(init_token()).json(&body);
                let made =
                    request.header("idempotency-key", format!("{number}")).send().await.unwrap();
                assert_eq!(made.status(), StatusCode::CREATED);
                let made: Value = made.json().await.unwrap();
                let change = json!({"id": made["id"], "variant": "de", "title": "Titel", "content": "<p>Text</p>"});
                let request = client.put(&path).bearer_auth(init_token());
                assert_eq!(
                    request.json(&change).send().await.unwrap().status(),
                    StatusCode::NO_CONTENT
                );
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

/// Returns all data that the API shows.
async fn seen(program: &Program) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/tags/list",
        "/variants/list",
        "/roles/list",
        "/tokens/list?perPage=100",
        "/webhooks/list",
        "/workspace-memberships/list-members",
        "/content-groups/list",
        "/profile",
        "/workspace",
        "/events?perPage=100",
    ] {
        let mut value = program.get(path).await;
        for one in value.as_array_mut().into_iter().flatten() {
            // The token of these requests is used between the comparisons.
            if let Some(one) = one.as_object_mut() {
                one.remove("lastUsedAt");
            }
        }
        all.push(value);
    }
    for query in ["content=true", "content=true&variant=de"] {
        all.push(Value::Array(program.pieces(query).await));
    }
    all
}

/// Returns a command's list of tables with their row counts and checksums.
fn tables(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let lines = stdout(output);
    let of_table = |line: &&str| line.split_whitespace().nth(2).is_some_and(|sum| sum.len() == 64);
    lines.lines().filter(of_table).map(ToOwned::to_owned).collect()
}

fn count(tables: &[String], name: &str) -> usize {
    let line = tables.iter().find(|line| line.split_whitespace().nth(1) == Some(name));
    line.map_or(0, |line| line.split_whitespace().next().unwrap().parse().unwrap())
}

/// Kills the command after some time. Returns true if it was still running.
fn kill_after(mut command: Command, time: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(time);
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    was_running
}

#[on_both_engines]
async fn a_store_is_copied_to_the_other_engine_and_back(store: TestStore) {
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let mut program = serve(&store);
    fill(&program, pieces(), &receiver).await;
    let before = seen(&program).await;
    let there = empty(&store, false).await;
    let refused = run(&mut copy(&store, &there));
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--live"), "{refused:?}");
    // A live copy is a snapshot. The later copy is from the stopped store.
    let living = TestStore::sqlite();
    let live = tables(&run(copy(&store, &living).arg("--live")));
    assert_eq!(count(&live, "content_pieces"), pieces());
    program.terminate();

    let first = tables(&run(&mut copy(&store, &there)));
    for (table, rows) in [
        ("content_pieces", pieces()),
        ("content_piece_variants", pieces()),
        ("content_piece_variant_contents", pieces()),
        ("content_piece_tags", pieces()),
        ("content_piece_members", pieces()),
        ("content_groups", 3),
        ("key_check", 1),
        ("idempotency_keys", pieces()),
    ] {
        assert_eq!(count(&first, table), rows, "{table}: {first:#?}");
    }
    assert!(count(&first, "events") > 2 * pieces(), "{first:#?}");
    assert!(count(&first, "event_matches") + count(&first, "deliveries") > 0, "{first:#?}");
    let again = run(&mut copy(&store, &there));
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("is not empty"), "{again:?}");

    let back = empty(&store, true).await;
    assert_eq!(tables(&run(&mut copy(&there, &back))), first);
    for copied in [&there, &back] {
        let mut program = serve(copied);
        for (now, before) in seen(&program).await.iter().zip(&before) {
            assert_eq!(now, before);
        }
        let webhook = program.get("/webhooks/list").await[0]["id"].clone();
        send(&program, Method::PUT, "/webhooks", &json!({"id": webhook, "enabled": true})).await;
        let came = receiver.wait_for(1).await;
        assert!(!came[0].field("webhook-signature").is_empty());
        program.terminate();
    }
}

#[on_both_engines]
async fn an_interrupted_copy_starts_over(store: TestStore) {
    let receiver = Receiver::start(Behaviour::Status(200)).await;
    let mut program = serve(&store);
    fill(&program, pieces(), &receiver).await;
    program.terminate();
    let there = empty(&store, false).await;
    let mut killed = 0;
    for ms in [1, 5, 10, 20, 40, 80] {
        if !kill_after(copy(&store, &there), Duration::from_millis(ms)) {
            break;
        }
        killed += 1;
    }
    assert!(killed > 0);
    // The copy is complete if the last kill came after its end. Otherwise the target is empty.
    let last = run(&mut copy(&store, &there));
    if !last.status.success() {
        assert!(stderr(&last).contains("is not empty"), "{last:?}");
    }
    let back = TestStore::sqlite();
    let copied = tables(&run(&mut copy(&there, &back)));
    assert_eq!(tables(&run(&mut copy(&store, &TestStore::sqlite()))), copied);
    assert!(
        !Path::new(&format!("{}.unfinished", data_dir(&back).join("galley.db").display())).exists()
    );
}

#[on_both_engines]
async fn a_backup_under_load_contains_all_acknowledged_writes(store: TestStore) {
    let program = serve(&store);
    let group = program.group().await;
    let stop = Arc::new(AtomicBool::new(false));
    let answered: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let clients: Vec<_> = (0..4)
        .map(|client_number| {
            let (url, group) = (program.url.clone(), group.clone());
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            tokio::spawn(async move {
                let client = Client::builder().no_proxy().build().unwrap();
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let body = piece(&group, &format!("c{client_number}-{number}"), "<p>text</p>");
                    let request =
                        client.post(format!("{url}/content-pieces")).bearer_auth(init_token());
                    let made = request.json(&body).send().await.unwrap();
                    assert_eq!(made.status(), StatusCode::CREATED);
                    let id = made.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
                    answered.lock().unwrap().push(id);
                }
            })
        })
        .collect();
    let mut backups = Vec::new();
    for number in 0..3 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let before = answered.lock().unwrap().clone();
        let file = store.directory().join(format!("{number}.backup"));
        let output = run(command(&store).arg("backup").arg(&file));
        assert!(output.status.success(), "{output:?}");
        assert!(stdout(&output).contains("The backup does not contain the key"), "{output:?}");
        backups.push((file, before));
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    drop(program);
    assert!(backups[1].1.len() > backups[0].1.len(), "it was written to");
    for (file, before) in &backups {
        let verified = run(command(&store).arg("verify").arg(file));
        let rows = count(&tables(&verified), "content_pieces");
        assert!(rows >= before.len(), "{verified:?}");
        for same in [true, false] {
            let target = empty(&store, same).await;
            let restored = run(command(&target).arg("restore").arg(file));
            assert!(restored.status.success(), "{restored:?}");
            let again = run(command(&target).arg("restore").arg(file));
            assert_eq!(again.status.code(), Some(1));
            assert!(stderr(&again).contains("is not empty"), "{again:?}");
            let program = serve(&target);
            let there = program.pieces("content=true").await;
            assert_eq!(there.len(), rows);
            let there: std::collections::HashSet<_> =
                there.iter().map(|piece| piece["id"].as_str().unwrap()).collect();
            assert!(before.iter().all(|id| there.contains(id.as_str())));
        }
    }
}

#[on_both_engines]
async fn concurrent_backups_to_one_file_leave_one_valid_backup(store: TestStore) {
    let program = serve(&store);
    let receiver = Receiver::start(Behaviour::Status(204)).await;
    fill(&program, 20, &receiver).await;
    let file = store.directory().join("same.galley-backup");
    for _ in 0..5 {
        let start = || {
            let mut command = command(&store);
            command
                .arg("backup")
                .arg(&file)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children: Vec<_> = (0..3).map(|_| start()).collect();
        let outputs: Vec<_> =
            children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        assert!(outputs.iter().any(|output| output.status.success()), "{outputs:?}");
        let verified = run(command(&store).arg("verify").arg(&file));
        assert!(verified.status.success(), "{verified:?} {outputs:?}");
        std::fs::remove_file(&file).unwrap();
        let left = store.directory().join("same.galley-backup.unfinished");
        // A leftover file of a killed backup is overwritten. Any other file stays untouched.
        std::fs::write(&left, "left behind").unwrap();
        assert!(run(command(&store).arg("backup").arg(&file)).status.success());
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(&file).unwrap();
        let precious = store.directory().join("precious");
        std::fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &left).unwrap();
        let refused = run(command(&store).arg("backup").arg(&file));
        assert!(
            stderr(&refused).contains("is a link or not a regular file: remove it"),
            "{refused:?}"
        );
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
        std::fs::remove_file(&left).unwrap();
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        let refused = run(command(&store).arg("backup").arg(&file));
        assert!(stderr(&refused).contains("the file exists already"), "{refused:?}");
        std::fs::remove_file(&file).unwrap();
        assert!(!store.directory().join("same.galley-backup.unfinished").exists());
    }
}

#[on_both_engines]
async fn invalid_backups_are_rejected_without_changes(store: TestStore) {
    let mut program = serve(&store);
    program.terminate();
    let file = store.directory().join("a.backup");
    assert!(run(command(&store).arg("backup").arg(&file)).status.success());
    let whole = std::fs::read(&file).unwrap();
    let again = run(command(&store).arg("backup").arg(&file));
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(std::fs::read(&file).unwrap(), whole, "it stays as it is");
    let other = TestStore::sqlite();
    let bad = store.directory().join("bad");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 4096].fill(0xff);
    let mut foreign = whole[..100].to_vec();
    foreign.extend(vec![0; 3996]);
    for bytes in [&b""[..], b"text", &whole[..whole.len() / 2], &damaged, &foreign] {
        std::fs::write(&bad, bytes).unwrap();
        for verb in ["verify", "restore"] {
            let output = run(command(&other).arg(verb).arg(&bad));
            assert_eq!(output.status.code(), Some(1), "{verb} {}: {output:?}", bytes.len());
            assert!(stderr(&output).contains("bad"), "{output:?}");
            assert_eq!(stderr(&output).trim().lines().count(), 1, "{output:?}");
        }
        assert!(!data_dir(&other).join("galley.db").exists());
    }
    // A changed letter of a text damages no page.
    let mut changed = whole.clone();
    let at = changed.windows(5).rposition(|bytes| bytes == b"Admin").unwrap();
    changed[at + 1] = b'D';
    std::fs::write(&bad, &changed).unwrap();
    for verb in ["verify", "restore"] {
        let output = run(command(&other).arg(verb).arg(&bad));
        assert_eq!(output.status.code(), Some(1), "{verb}: {output:?}");
        assert!(stderr(&output).contains("differs from its checksum"), "{output:?}");
    }
    assert!(!data_dir(&other).join("galley.db").exists());
    // Copies by other programs have no checksum.
    let unsealed = &whole[..whole.len() - 32];
    std::fs::write(&bad, unsealed).unwrap();
    let output = run(command(&other).arg("verify").arg(&bad));
    assert!(output.status.success() && stdout(&output).contains("no checksum"), "{output:?}");
    // A trigger in a backup would run in the server.
    rusqlite::Connection::open(&bad)
        .unwrap()
        .execute_batch("CREATE TRIGGER evil AFTER INSERT ON tokens BEGIN DELETE FROM events; END")
        .unwrap();
    for verb in ["verify", "restore"] {
        let output = run(command(&other).arg(verb).arg(&bad));
        assert_eq!(output.status.code(), Some(1), "{verb}: {output:?}");
        assert!(stderr(&output).contains("evil differs"), "{output:?}");
    }
    // Values whose type differs from their column's.
    std::fs::write(&bad, unsealed).unwrap();
    rusqlite::Connection::open(&bad)
        .unwrap()
        .execute_batch("UPDATE content_groups SET name = x'ff00'")
        .unwrap();
    for verb in ["verify", "restore"] {
        let output = run(command(&other).arg(verb).arg(&bad));
        assert_eq!(output.status.code(), Some(1), "{verb}: {output:?}");
    }
    assert!(!data_dir(&other).join("galley.db").exists());
    for wrong in ["mysql://u:s3cret@x", "POSTGRES://u:s3cret@x", "", "sqlite:"] {
        let output = run(command(&store).args(["copy", "--from", wrong, "--to", &url(&other)]));
        assert!(!stderr(&output).contains("s3cret"), "{output:?}");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    let output = run(command(&store).args(["copy", "--from", &url(&store), "--to", &url(&store)]));
    assert!(stderr(&output).contains("the same store"), "{output:?}");
    let missing = run(command(&other).arg("verify").arg("none"));
    assert!(stderr(&missing).contains("none"), "{missing:?}");
}
