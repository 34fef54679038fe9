//! `galley doctor` and `galley upgrade`: they find problems, state remedies, and change nothing.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use galley_testing::{Behaviour, BucketServer, Receiver, TestStore, on_both_engines};
use serde_json::Value;

use crate::program::{
    Program, data_dir, execute, free_port, galley, init_token, run, stderr, stdout,
};

/// Runs `galley doctor --json`. Returns its exit status, and the severity and message of a check.
fn diagnose(doctor: &mut Command, check: &str) -> (Option<i32>, String, String) {
    let output = run(doctor.args(["doctor", "--json"]));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {output:?}");
    });
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["check"] == check);
    let found = found.unwrap_or_else(|| panic!("{report}"));
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (output.status.code(), text("severity"), text("message"))
}

/// Asserts that a check has this severity, which also decides the exit status, and this text.
fn assert_finding(doctor: &mut Command, check: &str, severity: &str, words: &str) {
    let (status, found, message) = diagnose(doctor, check);
    assert_eq!(found, severity, "{check}: {message}");
    assert!(message.contains(words), "{check}: {message}");
    let least = match severity {
        "failure" => 2,
        "warning" => 1,
        _ => 0,
    };
    assert!(status >= Some(least), "{status:?} for {check}: {message}");
}

#[on_both_engines]
async fn a_healthy_installation_has_no_findings(store: TestStore) {
    let before = run(galley(&store).arg("doctor"));
    assert!(before.status.success(), "{before:?}");
    assert!(run(galley(&store).arg("init")).status.success());
    let after = run(galley(&store).arg("doctor"));
    assert!(after.status.success(), "{after:?}");
    let text = stdout(&after);
    assert!(text.contains("with the workspace ws_"), "{text}");
    assert!(text.lines().all(|line| line.starts_with("ok ")), "{text}");
    let port = free_port();
    let mut command = galley(&store);
    command.env("GALLEY_INIT_TOKEN", init_token());
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
    let _program = Program::start(command);
    let beside = run(galley(&store).args(["doctor", "--listen", &format!("127.0.0.1:{port}")]));
    assert!(beside.status.success(), "{beside:?}");
}

#[test]
fn findings_about_files_state_their_remedy() {
    let store = TestStore::sqlite();
    assert!(Program::serve(&store, free_port()).terminate().success());
    let data = data_dir(&store);
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    assert_finding(&mut galley(&store), "data directory", "failure", "chmod 700");
    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(data.join("galley.key"), Permissions::from_mode(0o644)).unwrap();
    assert_finding(&mut galley(&store), "key", "failure", "chmod 600");
    fs::set_permissions(data.join("galley.key"), Permissions::from_mode(0o600)).unwrap();
    assert_finding(&mut galley(&store), "disk", "ok", "free in");
    let moved = data.join("elsewhere.db");
    fs::rename(data.join("galley.db"), &moved).unwrap();
    // A key alone may be one that was placed before the first start.
    let unused = TestStore::sqlite();
    fs::create_dir(data_dir(&unused)).unwrap();
    fs::set_permissions(data_dir(&unused), Permissions::from_mode(0o700)).unwrap();
    fs::copy(data.join("galley.key"), data_dir(&unused).join("galley.key")).unwrap();
    assert_finding(&mut galley(&unused), "database", "ok", "created at the first start");
    assert_finding(&mut galley(&store), "database", "failure", "restore the database");
    fs::write(data.join("galley.db"), "no database".repeat(100)).unwrap();
    assert_finding(&mut galley(&store), "database", "failure", "can't be opened");
}

#[test]
fn the_age_of_backups_is_checked() {
    let store = TestStore::sqlite();
    assert!(run(galley(&store).arg("init")).status.success());
    assert_finding(&mut galley(&store), "backups", "ok", "not checked");
    let folder = data_dir(&store).join("backups");
    fs::create_dir(&folder).unwrap();
    assert_finding(&mut galley(&store), "backups", "failure", "galley backup");
    fs::write(folder.join("notes.txt"), "no backup").unwrap();
    assert_finding(&mut galley(&store), "backups", "failure", "galley backup");
    let file = folder.join("a.backup");
    assert!(run(galley(&store).arg("backup").arg(&file)).status.success());
    assert_finding(&mut galley(&store), "backups", "ok", "seconds ago");
    let made = fs::metadata(&file).unwrap().modified().unwrap();
    let two_days_ago = made - Duration::from_hours(48);
    File::options().write(true).open(&file).unwrap().set_modified(two_days_ago).unwrap();
    assert_finding(&mut galley(&store), "backups", "failure", "2 days ago");
    let output = run(galley(&store).args(["doctor", "--backup-age", "49"]));
    assert!(output.status.success(), "{output:?}");
    // A folder that is named may have backups of other tools, and links to them.
    let others = store.directory().join("others");
    fs::create_dir(&others).unwrap();
    fs::write(store.directory().join("dump.gz"), "a dump").unwrap();
    std::os::unix::fs::symlink(store.directory().join("dump.gz"), others.join("latest")).unwrap();
    let output = run(galley(&store).args(["doctor", "--backups"]).arg(&others));
    assert!(output.status.success(), "{output:?}");
    let elsewhere = store.directory().join("elsewhere");
    let output = run(galley(&store).args(["doctor", "--backups"]).arg(&elsewhere));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stdout(&output).contains("correct --backups"), "{output:?}");
}

#[on_both_engines]
async fn a_clock_behind_the_last_event_is_a_failure(store: TestStore) {
    assert!(run(galley(&store).arg("init")).status.success());
    execute(
        &store,
        "INSERT INTO events (workspace_id, sequence, id, type, created_at_ms, data)
        SELECT id, 1000000, 'evt_x', 'tagAdded', 4102444800000, '{}' FROM workspaces",
    )
    .await;
    assert_finding(&mut galley(&store), "clock", "failure", "2100-01-01");
}

#[test]
fn addresses_behind_proxies_are_checked() {
    let store = TestStore::sqlite();
    let with = |url: &str| {
        let mut command = galley(&store);
        command.env("GALLEY_PUBLIC_URL", url);
        command
    };
    let https = "https://galley.example.org";
    assert_finding(&mut with(https), "proxy headers", "warning", "trusted-proxies");
    let mut trusting = with(https);
    trusting.env("GALLEY_TRUSTED_PROXIES", "127.0.0.1");
    assert_finding(&mut trusting, "proxy headers", "ok", "127.0.0.1");
    assert_finding(&mut with(https), "public address", "ok", "no server is running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_public_address_must_lead_to_the_server() {
    let store = TestStore::sqlite();
    let program = Program::serve(&store, free_port());
    let with = |url: &str| {
        let mut command = galley(&store);
        command.env("GALLEY_PUBLIC_URL", url);
        command.env("GALLEY_LISTEN", program.url.trim_start_matches("http://"));
        command
    };
    assert_finding(&mut with(&program.url), "public address", "ok", "responds");
    let other = Receiver::start(Behaviour::Status(200)).await;
    let elsewhere = url::Url::parse(&other.url).unwrap().origin().ascii_serialization();
    assert_finding(&mut with(&elsewhere), "public address", "failure", "check public-url");
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    assert_finding(&mut with(&nowhere), "public address", "failure", "check public-url");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_does_not_respond_is_a_failure() {
    let store = TestStore::sqlite();
    let bucket = BucketServer::start().await;
    let with = |url: &str| {
        let mut command = galley(&store);
        command.env("GALLEY_ASSET_STORE_URL", url);
        command.env("GALLEY_ASSET_STORE_ACCESS_KEY_ID", BucketServer::ACCESS_KEY_ID);
        command.env("GALLEY_ASSET_STORE_SECRET_ACCESS_KEY", BucketServer::SECRET_ACCESS_KEY);
        command
    };
    let sound = format!("s3://{}?endpoint={}&region=x", BucketServer::BUCKET, bucket.endpoint);
    assert_finding(&mut with(&sound), "asset store", "ok", "s3://");
    assert_eq!(fs::read_dir(bucket.objects()).unwrap().count(), 0);
    // A folder in place of the object that is tried, so that the write fails.
    let tried = bucket.objects().join("galley-doctor");
    fs::create_dir_all(tried.join("folder")).unwrap();
    assert_finding(&mut with(&sound), "asset store", "failure", "permissions of the bucket");
    fs::remove_dir_all(tried).unwrap();
    let folder = store.directory().join("unmounted");
    assert_finding(
        &mut with(folder.to_str().unwrap()),
        "asset store",
        "failure",
        "not a directory",
    );
    assert!(!folder.exists());
    let nowhere = format!("s3://bucket?endpoint=http://127.0.0.1:{}&region=x", free_port());
    assert_finding(&mut with(&nowhere), "asset store", "failure", "check asset-store-url");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_and_an_identity_provider_must_respond() {
    let store = TestStore::sqlite();
    assert_finding(&mut galley(&store), "traces", "ok", "not set");
    assert_finding(&mut galley(&store), "identity provider", "ok", "none");
    let with = |name: &str, url: &str| {
        let mut command = galley(&store);
        command.env(name, url).env("GALLEY_OPENID_CONNECT_CLIENT_ID", "galley");
        command
    };
    let origin = |url: &str| url::Url::parse(url).unwrap().origin().ascii_serialization();
    let service = Receiver::start(Behaviour::Status(200)).await;
    let (sound, nowhere) = (origin(&service.url), format!("http://127.0.0.1:{}", free_port()));
    let collector = "GALLEY_OTLP_ENDPOINT";
    assert_finding(&mut with(collector, &sound), "traces", "ok", "/v1/traces responds");
    let received = service.received().remove(0);
    assert!(received.request_line.starts_with("POST /v1/traces "), "{received:?}");
    assert_finding(&mut with(collector, &nowhere), "traces", "failure", "check otlp-endpoint");
    service.set_behaviour(Behaviour::Status(404));
    assert_finding(&mut with(collector, &sound), "traces", "failure", "status 404");
    let issuer = "GALLEY_OPENID_CONNECT_ISSUER";
    for url in [&nowhere, &sound] {
        let check = "identity provider";
        assert_finding(&mut with(issuer, url), check, "failure", "check openid-connect-issuer");
    }
    let metadata = serde_json::json!({
        "issuer": sound, "authorization_endpoint": format!("{sound}/authorize"),
        "token_endpoint": format!("{sound}/token"), "jwks_uri": format!("{sound}/keys"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"], "keys": [],
    });
    service.set_behaviour(Behaviour::Body(metadata.to_string().into_bytes()));
    assert_finding(&mut with(issuer, &sound), "identity provider", "ok", "responds");
}

#[test]
fn settings_that_cannot_be_read_are_a_failure() {
    let store = TestStore::sqlite();
    for (name, value) in [
        ("GALLEY_PUBLIC_URL", "nowhere"),
        ("GALLEY_OTLP_ENDPOINT", "http://user:s3cret@127.0.0.1:4318"),
        ("GALLEY_OTLP_ENDPOINT", "http://127.0.0.1:4318/v1/traces"),
        ("GALLEY_LOG", "a=b=c"),
    ] {
        let output = run(galley(&store).env(name, value).arg("doctor"));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stdout(&output).contains("FAILURE  settings: "), "{output:?}");
        assert!(!stdout(&output).contains("s3cret"), "{output:?}");
        assert_finding(galley(&store).env(name, value), "settings", "failure", "");
    }
    let mut invalid = galley(&store);
    invalid.env("GALLEY_CORS_ORIGINS", "example.org");
    assert_finding(&mut invalid, "settings", "failure", "cors-origins");
}

#[on_both_engines]
async fn a_database_of_a_later_program_is_a_failure(store: TestStore) {
    assert!(run(galley(&store).arg("init")).status.success());
    let current = run(galley(&store).args(["upgrade", "--check"]));
    assert!(current.status.success(), "{current:?}");
    assert!(stdout(&current).contains("nothing to upgrade"), "{current:?}");
    let later = "INSERT INTO schema_migrations
        (version, name, checksum, oldest_program, applied_at_ms) VALUES (999, 'x', 'x', '99.0.0', 1)";
    execute(&store, later).await;
    assert_finding(&mut galley(&store), "database", "failure", "requires galley 99.0.0 or later");
    let rejected = run(galley(&store).args(["upgrade", "--check"]));
    assert_eq!(rejected.status.code(), Some(1), "{rejected:?}");
    assert!(stderr(&rejected).contains("requires galley 99.0.0 or later"), "{rejected:?}");
}
