//! Stores of every released schema with pending retries: this program continues with each. A start
//! that is killed during a migration is completed by the next one.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use galley_storage::DatabaseUrl;
use galley_testing::reliability_suite::report_figure;
use galley_testing::{Behaviour, Receiver, TestStore, on_both_engines, report_skipped};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{Program, client, data_dir, galley, init_token, piece, under};

/// The released schemas, each as the number of its last migration.
const RELEASED: [usize; 1] = [1];

/// Returns the migrations in their order.
fn changes() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../storage/migrations");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

const MIGRATIONS_TABLE: &str =
    "CREATE TABLE schema_migrations (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL,
    checksum TEXT NOT NULL, oldest_program TEXT NOT NULL, applied_at_ms BIGINT NOT NULL)";

/// Returns statements that copy the rows of a fully migrated store into one with fewer migrations.
/// Only the older tables and columns are copied.
fn copies(columns: &[(String, String)], from: &str, into: &str, version: usize) -> String {
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (table, column) in columns {
        tables.entry(table).or_default().push(column);
    }
    let copy = |(table, columns): (&str, Vec<&str>)| {
        let only = if table == "schema_migrations" {
            format!(" WHERE version <= {version}")
        } else {
            " WHERE 1 = 1".to_owned()
        };
        let values: Vec<_> = columns.iter().map(|column| format!("t.{column}")).collect();
        let (columns, values) = (columns.join(", "), values.join(", "));
        format!(
            "INSERT INTO {into}.{table} ({columns}) SELECT {values} FROM {from}.{table} t{only} ON CONFLICT DO NOTHING;"
        )
    };
    tables.into_iter().map(copy).collect()
}

/// Enables the parts of a migration for one engine, as the program does.
fn for_engine(change: &str, engine: &str) -> String {
    let mut text = String::new();
    let mut rest = change;
    while let Some((before, after)) = rest.split_once("/*") {
        let (only, after) = after.split_once("*/").unwrap();
        let (name, sql) = only.split_once(':').unwrap();
        text += before;
        text += if name == engine { sql } else { "" };
        rest = after;
    }
    text + rest
}

/// Converts a fully migrated store into one with only the first migrations.
async fn downgrade(store: &TestStore, version: usize) {
    let changes = &changes()[..version];
    match &store.url {
        DatabaseUrl::Sqlite(_) => {
            let file = data_dir(store).join("galley.db");
            let newer = file.with_extension("newer");
            let connection = rusqlite::Connection::open(&file).unwrap();
            connection.execute("VACUUM INTO ?1", [newer.to_str().unwrap()]).unwrap();
            drop(connection);
            for ending in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(file.with_extension(format!("db{ending}")));
            }
            let connection = rusqlite::Connection::open(&file).unwrap();
            connection
                .execute_batch(&format!("PRAGMA journal_mode = WAL; {MIGRATIONS_TABLE}"))
                .unwrap();
            for change in changes {
                connection.execute_batch(&for_engine(change, "sqlite")).unwrap();
            }
            // The search index is a virtual table. It is built again.
            let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
                WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE 'search%'";
            let mut statement = connection.prepare(sql).unwrap();
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let columns: Vec<_> =
                statement.query_map([], read).unwrap().map(Result::unwrap).collect();
            drop(statement);
            connection.execute("ATTACH ?1 AS newer", [newer.to_str().unwrap()]).unwrap();
            let copies = copies(&columns, "newer", "main", version);
            connection
                .execute_batch(&format!(
                    "PRAGMA foreign_keys = OFF; BEGIN; {copies} COMMIT; DETACH newer"
                ))
                .unwrap();
            drop(connection);
            std::fs::remove_file(newer).unwrap();
        }
        DatabaseUrl::Postgres(url) => {
            let client = client(url).await;
            let begin = "ALTER SCHEMA public RENAME TO newer; CREATE SCHEMA public;
                SET search_path = public; SET session_replication_role = replica;";
            client.batch_execute(&format!("{begin} {MIGRATIONS_TABLE}")).await.unwrap();
            for change in changes {
                let change = for_engine(change, "postgres");
                let change = change.replace(" TEXT", " TEXT COLLATE \"C\"");
                client.batch_execute(&change).await.unwrap();
            }
            let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns
                WHERE table_schema = 'public'";
            let rows = client.query(sql, &[]).await.unwrap();
            let columns: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            let copies = copies(&columns, "newer", "public", version);
            let end = format!("{copies} DROP SCHEMA newer CASCADE");
            client.batch_execute(&end).await.unwrap();
        }
    }
}

/// Fills a store with two pieces whose deliveries to the receiver have failed once. Both have a
/// member; in German the first overrides its title, and the second its content.
async fn fill(store: &TestStore, receiver: &Receiver) -> Vec<Value> {
    let mut program = Program::serve(store, 0);
    let group = program.group().await;
    let webhook = json!({"url": receiver.url, "name": "w", "event": "contentPieceAdded",
        "metadata": {"contentGroupId": group}});
    let made = program.request(Method::POST, "/webhooks").json(&webhook).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    let members = program.get("/workspace-memberships/list-members").await;
    for key in ["de", "fr"] {
        let variant = json!({"key": key, "label": key});
        let made = program.request(Method::POST, "/variants").json(&variant).send().await.unwrap();
        assert_eq!(made.status(), StatusCode::CREATED);
    }
    for (slug, overrides) in
        [("one", json!({"title": "Eins"})), ("two", json!({"content": "<p>zwei</p>"}))]
    {
        let mut body = piece(&group, slug, &format!("<p>{slug}</p>"));
        body["members"] = json!([members[0]["id"]]);
        body["customData"] = json!(format!("{{\"of\":\"{slug}\"}}"));
        let made =
            program.request(Method::POST, "/content-pieces").json(&body).send().await.unwrap();
        assert_eq!(made.status(), StatusCode::CREATED);
        let mut change = overrides;
        let made: Value = made.json().await.unwrap();
        (change["id"], change["variant"]) = (made["id"].clone(), json!("de"));
        let put = program.request(Method::PUT, "/content-pieces").json(&change).send().await;
        assert_eq!(put.unwrap().status(), StatusCode::NO_CONTENT);
    }
    // Each delivery was attempted at least once.
    receiver.wait_for(2).await;
    let failed = program.get("/webhooks/deliveries").await;
    assert_eq!(failed.as_array().unwrap().len(), 2);
    let pieces = program.pieces("content=true").await;
    program.terminate();
    pieces
}

/// The timeout for expected changes.
const TIMEOUT: Duration = Duration::from_mins(1);

fn serve_command(store: &TestStore) -> Command {
    let mut command = galley(store);
    command.env("GALLEY_INIT_TOKEN", init_token()).args(["serve", "--listen", "127.0.0.1:0"]);
    command
}

fn without_output(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null())
}

/// Starts this program on an empty PostgreSQL database while another transaction creates a table
/// of the schema. Kills the program while it waits for that, after a part of the schema.
async fn kill_while_waiting_for_lock(store: &TestStore, url: &str) {
    let (foreign, looker) = (client(url).await, client(url).await);
    foreign.batch_execute("BEGIN; CREATE TABLE webhook_queues (id BIGINT)").await.unwrap();
    let mut child = without_output(&mut serve_command(store)).spawn().unwrap();
    let waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND wait_event = 'transactionid'";
    let started = Instant::now();
    while looker.query(waits, &[]).await.unwrap().is_empty() {
        assert!(started.elapsed() < TIMEOUT, "it does not come to the table");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    foreign.batch_execute("ROLLBACK").await.unwrap();
}

/// Starts this program, and kills it at its nth write to a file. Returns the file's schema version
/// then, 0 without a schema, or `None` if the program completed its start.
fn kill_at_write(store: &TestStore, strace: &Path, nth: usize) -> Option<i64> {
    /// The time after which a server that makes fewer writes is killed.
    const START_TIMEOUT: Duration = Duration::from_secs(3);
    let calls = "pwrite64,fsync,ftruncate,unlink";
    let mut command = Command::new(strace);
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    command.args(["-e", &format!("inject={calls}:signal=KILL:when={nth}")]);
    command.args(["timeout", "--signal=KILL", &START_TIMEOUT.as_secs().to_string()]);
    let started = Instant::now();
    let status = without_output(&mut under(command, &serve_command(store))).status().unwrap();
    // strace exits with the signal of its child, and either kill is a SIGKILL.
    assert_eq!(status.signal(), Some(9), "strace itself failed: {status}");
    if started.elapsed() >= START_TIMEOUT {
        return None;
    }
    let file = data_dir(store).join("galley.db");
    if !file.exists() {
        return Some(0);
    }
    let connection = rusqlite::Connection::open(file).unwrap();
    let sql = "SELECT max(version) FROM schema_migrations";
    Some(connection.query_row(sql, [], |row| row.get(0)).unwrap_or(0))
}

/// Checks that this program continues with the store: the data is unchanged, and pending retries
/// are sent.
async fn assert_upgraded(store: &TestStore, version: usize, pieces: &[Value], receiver: &Receiver) {
    let before = receiver.count();
    let program = Program::serve(store, 0);
    let expected = pieces.to_vec();
    let found = program.pieces("content=true").await;
    assert_eq!(program.pieces("content=true&hasVariant=de").await, found, "schema {version}");
    assert_eq!(program.pieces("hasVariant=fr").await, [Value::Null; 0], "schema {version}");
    assert_eq!(found, expected, "schema {version}");
    let of_member =
        format!("content=true&memberId={}", pieces[0]["members"][0]["id"].as_str().unwrap());
    assert_eq!(program.pieces(&of_member).await, expected, "schema {version}");
    assert_first_revision(&program, &expected[0], version).await;
    let group = program.group().await;
    let body = piece(&group, &format!("after-{version}"), "<p>new</p>");
    let made = program.request(Method::POST, "/content-pieces").json(&body).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED, "schema {version}");
    // A slow machine has retried a delivery before the upgrade. Its next attempt is due only
    // after five minutes.
    let is_twice_failed =
        |one: &&Value| one["status"] == "pending" && one["attempts"].as_array().unwrap().len() > 1;
    let deliveries = program.get("/webhooks/deliveries").await;
    for delivery in deliveries.as_array().unwrap().iter().filter(is_twice_failed) {
        let retry = program.request(Method::POST, "/webhooks/deliveries/retry");
        let retried = retry.json(&json!({"id": delivery["id"]})).send().await.unwrap();
        assert_eq!(retried.status(), StatusCode::ACCEPTED, "schema {version}");
    }
    // The two failed deliveries, and the new one.
    receiver.wait_for(before + 3).await;
    let deliveries = program.get("/webhooks/deliveries").await;
    assert_eq!(deliveries.as_array().unwrap().len(), 3, "schema {version}");
}

/// Checks that a change of a piece from before the upgrade is a further revision.
async fn assert_first_revision(program: &Program, before: &Value, version: usize) {
    let id = before["id"].as_str().unwrap();
    let path = format!("/content-pieces/revisions?id={id}");
    let known = program.get(&path).await.as_array().unwrap().len();
    let change = json!({"id": id, "title": "changed", "content": "<p>changed</p>"});
    let put = program.request(Method::PUT, "/content-pieces").json(&change).send().await.unwrap();
    assert_eq!(put.status(), StatusCode::NO_CONTENT, "schema {version}");
    let listed = program.get(&path).await;
    assert_eq!(listed.as_array().unwrap().len(), known + 1, "schema {version}");
    let previous = listed[1]["id"].as_str().unwrap();
    let path = format!("/content-pieces/revision?id={id}&revision={previous}&content=true");
    let found = program.get(&path).await;
    for field in ["title", "content", "members"] {
        assert_eq!(found[field], before[field], "schema {version}");
    }
}

#[on_both_engines]
async fn stores_of_every_released_schema_are_upgraded(store: TestStore) {
    for version in RELEASED {
        let store = match store.url {
            DatabaseUrl::Sqlite(_) => TestStore::sqlite(),
            DatabaseUrl::Postgres(_) => TestStore::postgres().await.unwrap(),
        };
        let receiver = Receiver::start(Behaviour::Status(500)).await;
        let pieces = fill(&store, &receiver).await;
        downgrade(&store, version).await;
        receiver.set_behaviour(Behaviour::Status(200));
        assert_upgraded(&store, version, &pieces, &receiver).await;
    }
    let found = format!("{} schemas gone on with, mid-retry", RELEASED.len());
    report_figure(&format!("{}: stores of released schemas", store.engine()), found, "all");
}

#[on_both_engines]
async fn an_interrupted_migration_completes_at_the_next_start(store: TestStore) {
    let mut kills = 0;
    let store = match &store.url {
        DatabaseUrl::Sqlite(_) => {
            let Some(strace) = std::env::var_os("GALLEY_TEST_STRACE").map(PathBuf::from) else {
                return report_skipped(
                    "strace: GALLEY_TEST_STRACE is not set (cargo xtask test sets it)",
                );
            };
            // The kills come later and later, until the start completes. The schema is there as a
            // whole or not at all.
            let mut nth = 1;
            loop {
                let new = TestStore::sqlite();
                let Some(version) = kill_at_write(&new, &strace, nth) else { break new };
                assert!([0, changes().len() as i64].contains(&version), "write {nth}: {version}");
                Program::serve(&new, 0).group().await;
                kills += 1;
                nth += 1 + nth / 5;
            }
        }
        DatabaseUrl::Postgres(_) => {
            let new = TestStore::empty_postgres().await.unwrap();
            let DatabaseUrl::Postgres(url) = &new.url else { unreachable!() };
            for _ in 0..3 {
                kill_while_waiting_for_lock(&new, url).await;
                kills += 1;
            }
            new
        }
    };
    assert!(kills > 2, "killed {kills} times only");
    Program::serve(&store, 0).group().await;
    let found = format!("killed {kills} times while it changed, then finished");
    report_figure(&format!("{}: a schema change", store.engine()), found, "finished");
}
