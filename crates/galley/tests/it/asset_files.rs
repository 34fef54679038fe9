//! The files of assets in backups, copies and the commands of `galley assets`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use galley_storage::DatabaseUrl;
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::program::{KEY, Program, data_dir, galley, init_token, piece, run, stderr, stdout};

/// An uploaded file, and the path of its address.
struct Uploaded {
    id: String,
    path: String,
    bytes: Vec<u8>,
}

async fn upload(program: &Program, filename: &str, bytes: Vec<u8>) -> Uploaded {
    let request = program.request(Method::POST, &format!("/assets?filename={filename}"));
    let request = request.header("prefer", "return=representation").body(bytes.clone());
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let asset: Value = response.json().await.unwrap();
    let url = asset["url"].as_str().unwrap();
    Uploaded {
        id: asset["id"].as_str().unwrap().to_owned(),
        path: url.strip_prefix(&program.url).unwrap().to_owned(),
        bytes,
    }
}

async fn status_of(program: &Program, path: &str) -> StatusCode {
    program.client.get(format!("{}{path}", program.url)).send().await.unwrap().status()
}

async fn assert_served(program: &Program, files: &[Uploaded]) {
    for file in files {
        let url = format!("{}{}", program.url, file.path);
        let response = program.client.get(url).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{}", file.path);
        assert_eq!(response.bytes().await.unwrap(), file.bytes);
    }
}

fn command(store: &TestStore, arguments: &[&str]) -> Command {
    let mut command = galley(store);
    command.env("GALLEY_KEY", KEY).env("GALLEY_INIT_TOKEN", init_token()).args(arguments);
    command
}

/// Runs a command that succeeds, and returns its output.
fn run_well(store: &TestStore, arguments: &[&str]) -> String {
    let output = run(&mut command(store, arguments));
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

/// Runs a command that fails, and returns its errors.
fn run_badly(store: &TestStore, arguments: &[&str]) -> String {
    let output = run(&mut command(store, arguments));
    assert!(!output.status.success(), "{arguments:?}: {}", stdout(&output));
    stderr(&output)
}

fn serve(store: &TestStore) -> Program {
    Program::start(command(store, &["serve", "--listen", "127.0.0.1:0"]))
}

/// Returns the files in the folder of the assets.
fn stored_files(store: &TestStore) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![data_dir(store).join("assets")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Returns a store of the other engine, as far as there is one.
async fn other(store: &TestStore) -> TestStore {
    match &store.url {
        DatabaseUrl::Sqlite(_) => TestStore::postgres().await.unwrap_or_else(TestStore::sqlite),
        DatabaseUrl::Postgres(_) => TestStore::sqlite(),
    }
}

async fn same(store: &TestStore) -> TestStore {
    match &store.url {
        DatabaseUrl::Sqlite(_) => TestStore::sqlite(),
        DatabaseUrl::Postgres(_) => TestStore::postgres().await.unwrap(),
    }
}

async fn three_files(program: &Program) -> Vec<Uploaded> {
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    vec![
        upload(program, "a.txt", b"a text".to_vec()).await,
        upload(program, "large.bin", large).await,
        upload(program, "empty.txt", Vec::new()).await,
    ]
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[on_both_engines]
async fn a_backup_has_the_files_of_assets(store: TestStore) {
    let program = serve(&store);
    let files = three_files(&program).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.backup");
    let printed = run_well(&store, &["backup", text(&path)]);
    assert!(printed.contains("3 files of assets"), "{printed}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    let again = run_badly(&store, &["backup", text(&path)]);
    assert!(again.contains("exists already"), "{again}");
    let late = upload(&program, "late.txt", b"late".to_vec()).await;

    let printed = run_well(&store, &["verify", text(&path)]);
    assert!(printed.contains("is intact") && printed.contains("3  files of assets"), "{printed}");
    let restored = same(&store).await;
    let printed = run_well(&restored, &["restore", text(&path)]);
    assert!(printed.contains("3 files restored"), "{printed}");
    let second = serve(&restored);
    assert_served(&second, &files).await;
    assert_eq!(status_of(&second, &late.path).await, StatusCode::NOT_FOUND);
    drop(second);
    assert!(run_badly(&restored, &["restore", text(&path)]).contains("not empty"));

    let mut damaged = std::fs::read(&path).unwrap();
    let at = damaged.windows(6).rposition(|bytes| bytes == b"a text").unwrap();
    damaged[at] = b'A';
    let damaged_path = folder.path().join("damaged.backup");
    std::fs::write(&damaged_path, damaged).unwrap();
    let problems = run_badly(&store, &["verify", text(&damaged_path)]);
    assert!(problems.contains("has another SHA-256"), "{problems}");

    let rows = folder.path().join("rows.backup");
    run_well(&store, &["backup", "--without-assets", text(&rows)]);
    assert!(std::fs::read(&rows).unwrap().starts_with(b"SQLite format 3\0"));
    let printed = run_well(&other(&store).await, &["restore", text(&rows)]);
    assert!(printed.contains("no files of assets"), "{printed}");

    // A file that is too short is left out, and all others are restored.
    let short = stored_files(&store)
        .into_iter()
        .find(|path| std::fs::read(path).is_ok_and(|bytes| bytes == b"a text"));
    std::fs::write(short.unwrap(), b"a").unwrap();
    let path = folder.path().join("short.backup");
    let problems = run_badly(&store, &["backup", text(&path)]);
    assert!(problems.contains("has another size in the store"), "{problems}");
    let third = TestStore::sqlite();
    assert!(run_badly(&third, &["restore", text(&path)]).contains("missing in the backup"));
    assert_served(&serve(&third), &files[1..]).await;
    let damaged = run_badly(&store, &["verify", text(&path)]);
    assert!(!damaged.contains("checksum"), "{damaged}");

    // A file that is lost.
    let lost = stored_files(&store)
        .into_iter()
        .find(|path| std::fs::read(path).is_ok_and(|bytes| bytes == b"late"));
    std::fs::remove_file(lost.unwrap()).unwrap();
    let path = folder.path().join("lost.backup");
    let problems = run_badly(&store, &["backup", text(&path)]);
    assert!(problems.contains("is missing in the store"), "{problems}");
    assert!(run_badly(&store, &["verify", text(&path)]).contains("missing in the backup"));
}

#[on_both_engines]
async fn a_copy_of_a_store_has_the_files_of_assets(store: TestStore) {
    let program = serve(&store);
    let files = three_files(&program).await;
    let (from, to) = (url(&store), TestStore::sqlite());
    let printed = run_well(&store, &["copy", "--live", "--from", &from, "--to", &url(&to)]);
    if matches!(store.url, DatabaseUrl::Sqlite(_)) {
        assert!(printed.contains("Copied 3 files"), "{printed}");
        assert_served(&serve(&to), &files).await;
        let Some(third) = TestStore::postgres().await else { return };
        let printed = run_well(&store, &["copy", "--live", "--from", &from, "--to", &url(&third)]);
        assert!(printed.contains("The files of assets stay in"), "{printed}");
        return;
    }
    // The settings' store is the source, and the folder beside the SQLite database is the target.
    assert!(printed.contains("Copied 3 files"), "{printed}");
    assert_served(&serve(&to), &files).await;
    // Nothing is copied, or created, without the store of the source.
    let (empty, third) = (tempfile::tempdir().unwrap(), TestStore::sqlite());
    let elsewhere = empty.path().join("none");
    let arguments = ["--data-dir", text(&elsewhere), "copy", "--live", "--from", &from];
    let refused = run_badly(&store, &[&arguments[..], &["--to", &url(&third)]].concat());
    assert!(refused.contains("none/assets, does not exist: name it"), "{refused}");
    assert!(!elsewhere.exists() && !data_dir(&third).join("galley.db").exists());
}

/// Returns the store's address for `--from` and `--to`.
fn url(store: &TestStore) -> String {
    match &store.url {
        DatabaseUrl::Sqlite(_) => format!("sqlite:{}", data_dir(store).display()),
        DatabaseUrl::Postgres(url) => url.clone(),
    }
}

#[on_both_engines]
async fn assets_are_listed_checked_moved_and_pruned_by_commands(store: TestStore) {
    let program = serve(&store);
    let files = three_files(&program).await;
    let group = program.group().await;
    let mut body = piece(&group, "used", "<p>x</p>");
    body["coverUrl"] = json!(format!("{}{}", program.url, files[0].path));
    let created = program.request(Method::POST, "/content-pieces").json(&body).send().await;
    assert_eq!(created.unwrap().status(), StatusCode::CREATED);

    let all = run_well(&store, &["assets", "list"]);
    let lines: Vec<_> = all.lines().collect();
    assert_eq!(lines.len(), 3, "{all}");
    assert!(lines[0].starts_with(&files[0].id) && lines[0].ends_with("a.txt"), "{all}");
    let unused = run_well(&store, &["assets", "list", "--unused", "--type", "application/"]);
    assert_eq!(unused.lines().count(), 2, "{unused}");
    let checked = run_well(&store, &["assets", "check", "--hashes"]);
    assert!(checked.contains("3 files") && checked.contains("0 with problems"), "{checked}");

    // Another store takes the files over, unless it is the same one by another name.
    let own = data_dir(&store).join("../data/assets");
    let refused = run_badly(&store, &["assets", "copy", "--to", text(&own)]);
    assert!(refused.contains("is the store of the settings itself"), "{refused}");
    let folder = tempfile::tempdir().unwrap();
    let moved = folder.path().join("moved");
    let printed = run_well(&store, &["assets", "copy", "--to", text(&moved)]);
    assert!(printed.contains("Copied 3 files") && printed.contains("asset-store-url"), "{printed}");
    let printed = run_well(&store, &["assets", "copy", "--to", text(&moved)]);
    assert!(printed.contains("Copied 0 files") && printed.contains("3 existed"), "{printed}");
    let mut second = command(&store, &["serve", "--listen", "127.0.0.1:0"]);
    if matches!(store.url, DatabaseUrl::Sqlite(_)) {
        drop(program);
    }
    second.env("GALLEY_ASSET_STORE_URL", &moved);
    let second = Program::start(second);
    assert_served(&second, &files).await;
    drop(second);

    // Recent uploads are kept unless the command says otherwise.
    let printed = run_well(&store, &["assets", "prune"]);
    assert_eq!(printed, "");
    let listed = run_well(&store, &["assets", "prune", "--older-than", "0", "--dry-run"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert_eq!(stored_files(&store).len(), 3);
    let pruned = run_well(&store, &["assets", "prune", "--older-than", "0"]);
    assert_eq!(pruned, listed);
    assert_eq!(stored_files(&store).len(), 1);
    assert_eq!(run_well(&store, &["assets", "list"]).lines().count(), 1);

    // A file without a row, a file of another workspace, and a changed file.
    let own = stored_files(&store).remove(0);
    let workspace = own.parent().unwrap().parent().unwrap();
    let orphan = workspace.join("af_00000000000000000000000001/original");
    let foreign = workspace
        .with_file_name("ws_00000000000000000000000001")
        .join("af_00000000000000000000000001/original");
    for path in [&orphan, &foreign] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "orphan").unwrap();
    }
    let printed = run_well(&store, &["assets", "check", "--remove-orphans"]);
    assert!(
        printed.contains("1 file belong to no workspace") || printed.contains("1 file with"),
        "{printed}"
    );
    assert!(orphan.exists(), "it is younger than a day: {printed}");
    let day = orphan.metadata().unwrap().modified().unwrap() - Duration::from_hours(25);
    std::fs::File::open(&orphan).unwrap().set_modified(day).unwrap();
    std::fs::File::open(&foreign).unwrap().set_modified(day).unwrap();
    let printed = run_well(&store, &["assets", "check"]);
    assert!(printed.contains("no asset has this file"), "{printed}");
    let printed = run_well(&store, &["assets", "check", "--remove-orphans"]);
    assert!(printed.contains("no asset has this file: removed"), "{printed}");
    assert!(!orphan.exists() && foreign.exists());
    std::fs::write(&own, "A text").unwrap();
    run_well(&store, &["assets", "check"]);
    assert!(run_badly(&store, &["assets", "check", "--hashes"]).contains("another SHA-256"));
    std::fs::write(&own, "short").unwrap();
    assert!(
        run_badly(&store, &["assets", "check"]).contains("has 5 bytes in the store instead of 6")
    );
    std::fs::remove_file(&own).unwrap();
    assert!(run_badly(&store, &["assets", "check"]).contains("is missing in the store"));
}
