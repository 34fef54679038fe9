//! A disk that fills up under load: a small file system for the test.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use galley_testing::{TestStore, report_skipped};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::program::{Program, data_dir, galley, init_token, piece, under};

/// Returns true if this user can mount file systems.
pub(crate) fn may_mount() -> bool {
    let tried = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
        .output();
    let may = tried.is_ok_and(|output| output.status.success());
    if !may {
        report_skipped("a full disk: this user can't mount a file system (unshare --user --mount)");
    }
    may
}

/// Starts a server whose data directory is a file system of 8 MiB. A ballast file fills half of it.
fn serve_on_small_disk(store: &TestStore) -> Program {
    let data = data_dir(store);
    std::fs::create_dir_all(&data).unwrap();
    let script = "mount -t tmpfs -o size=8m,mode=700 tmpfs \"$GALLEY_DATA_DIR\" \
        && head -c 4194304 /dev/zero > \"$GALLEY_DATA_DIR/ballast\" \
        && exec \"$0\" serve --listen 127.0.0.1:0";
    let mut plain = galley(store);
    plain.env("GALLEY_INIT_TOKEN", init_token());
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    let command = under(command, &plain);
    Program::start(command)
}

/// Sends a fixed number of writes. Returns the acknowledged ones, and the number of rejected ones.
async fn fill(program: &Arc<Program>, group: &str, round: usize) -> (Vec<String>, usize) {
    let tasks: Vec<_> = (0..8)
        .map(|client| {
            let (program, group) = (Arc::clone(program), group.to_owned());
            tokio::spawn(async move {
                let (mut answered, mut refused) = (Vec::new(), 0);
                for number in 0..12 {
                    let slug = format!("r{round}-c{client}-{number}");
                    let body = piece(&group, &slug, &"<p>text</p>".repeat(1_000));
                    let request = program.request(Method::POST, "/content-pieces").json(&body);
                    let response = request.send().await.unwrap();
                    match response.status() {
                        StatusCode::CREATED => answered.push(slug),
                        StatusCode::INSUFFICIENT_STORAGE | StatusCode::SERVICE_UNAVAILABLE => {
                            let problem: Value = response.json().await.unwrap();
                            assert!(problem["reason"].is_string(), "{problem}");
                            refused += 1;
                        }
                        other => panic!("{other}: {:?}", response.text().await),
                    }
                }
                (answered, refused)
            })
        })
        .collect();
    let (mut answered, mut refused) = (Vec::new(), 0);
    for task in tasks {
        let (more, not) = task.await.unwrap();
        answered.extend(more);
        refused += not;
    }
    (answered, refused)
}

async fn assert_acknowledged_is_stored(program: &Program, answered: &[String]) {
    let pieces = program.pieces("").await;
    let kept: HashSet<&str> = pieces.iter().map(|piece| piece["slug"].as_str().unwrap()).collect();
    let answered: HashSet<&str> = answered.iter().map(String::as_str).collect();
    assert_eq!(kept, answered, "every answer agrees with the database");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_rejects_writes_and_recovers_once_space_is_free() {
    if !may_mount() {
        return;
    }
    let store = TestStore::sqlite();
    let program = Arc::new(serve_on_small_disk(&store));
    let group = program.group().await;
    let (mut answered, mut refused) = (Vec::new(), 0);
    for round in 0..6 {
        let (more, not) = fill(&program, &group, round).await;
        answered.extend(more);
        refused += not;
        assert_acknowledged_is_stored(&program, &answered).await;
    }
    assert!(!answered.is_empty() && refused > 0, "{} answered, {refused} refused", answered.len());
    // The server's own mount is reached through the root directory of its process.
    let inside = data_dir(&store).canonicalize().unwrap();
    let inside = inside.strip_prefix("/").unwrap();
    let root = PathBuf::from(format!("/proc/{}/root", program.child.id()));
    std::fs::remove_file(root.join(inside).join("ballast")).unwrap();
    let (more, _) = fill(&program, &group, 99).await;
    assert!(!more.is_empty(), "it heals when there is room");
    answered.extend(more);
    assert_acknowledged_is_stored(&program, &answered).await;
    eprintln!("full disk: {} answered, {refused} refused, all as in the database", answered.len());
}
