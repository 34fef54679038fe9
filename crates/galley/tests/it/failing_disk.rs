//! A failing disk and a slow disk: strace injects errors or delays into system calls of a running
//! server.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use galley_testing::reliability_suite::report_figure;
use galley_testing::{TestStore, report_skipped};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::program::{Program, data_dir, piece};

/// The time limit for the server to accept writes again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// An injected fault, until this is dropped.
struct Fault(Child);

impl Fault {
    fn begin(strace: &Path, program: &Program, inject: &str) -> Self {
        let (calls, _) = inject.split_once(':').unwrap();
        let mut command = Command::new(strace);
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
        command.args(["-e", &format!("inject={inject}"), "-p", &program.child.id().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let fault = Self(command.spawn().unwrap());
        // The fault is active when every thread is traced.
        let tasks = PathBuf::from(format!("/proc/{}/task", program.child.id()));
        let is_traced = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            !status.contains("TracerPid:\t0\n")
        };
        let started = Instant::now();
        while !std::fs::read_dir(&tasks).unwrap().all(|task| is_traced(task.unwrap())) {
            assert!(started.elapsed() < RECOVERY_TIMEOUT, "strace does not come to the program");
            std::thread::sleep(Duration::from_millis(10));
        }
        fault
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        // A killed strace would leave the program stopped.
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.0.wait();
    }
}

/// The responses so far.
#[derive(Default)]
struct WriteResponses {
    made: Vec<String>,
    refused: usize,
    /// The reasons of the rejections.
    reasons: Vec<String>,
}

impl WriteResponses {
    async fn write(&mut self, program: &Program, group: &str, slug: &str) -> StatusCode {
        let body = piece(group, slug, &"<p>text</p>".repeat(200));
        let request = program.request(Method::POST, "/content-pieces").json(&body);
        let response = request.send().await.unwrap();
        let status = response.status();
        if status == StatusCode::CREATED {
            self.made.push(slug.to_owned());
            return status;
        }
        self.refused += 1;
        let retry_after = response.headers().contains_key("retry-after");
        let problem: Value = response.json().await.unwrap();
        let told = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INSUFFICIENT_STORAGE];
        assert!(told.contains(&status) && retry_after, "{status}: {problem}");
        self.reasons.push(problem["reason"].as_str().unwrap().to_owned());
        status
    }

    /// Checks that all acknowledged writes are stored. Rejected ones may be stored as well, if only
    /// their sync failed.
    async fn assert_acknowledged_is_stored(&self, program: &Program) {
        let pieces = program.pieces("").await;
        let kept: Vec<&str> = pieces.iter().map(|piece| piece["slug"].as_str().unwrap()).collect();
        for slug in &self.made {
            assert!(kept.contains(&slug.as_str()), "{slug} was answered and lost");
        }
        assert!(kept.len() <= self.made.len() + self.refused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_disk_loses_no_acknowledged_write() {
    let Some(strace) = std::env::var_os("GALLEY_TEST_STRACE").map(PathBuf::from) else {
        return report_skipped("strace: GALLEY_TEST_STRACE is not set (cargo xtask test sets it)");
    };
    let store = TestStore::sqlite();
    let program = Program::serve(&store, 0);
    let group = program.group().await;
    let mut told = WriteResponses::default();
    for (round, inject) in [
        "pwrite64:error=EIO",
        "fsync,fdatasync:error=EIO",
        "pwrite64:error=ENOSPC",
        "pwrite64:error=EIO:when=3+5",
        "fsync,fdatasync:error=EIO:when=1+2",
    ]
    .into_iter()
    .enumerate()
    {
        for number in 0..3 {
            let status = told.write(&program, &group, &format!("before-{round}-{number}")).await;
            assert_eq!(status, StatusCode::CREATED);
        }
        let fault = Fault::begin(&strace, &program, inject);
        let refused = told.refused;
        for number in 0..8 {
            told.write(&program, &group, &format!("during-{round}-{number}")).await;
            // Reads keep working.
            told.assert_acknowledged_is_stored(&program).await;
        }
        assert!(told.refused > refused, "{inject}: no write was refused");
        drop(fault);
        let healed = Instant::now();
        let mut number = 0;
        while told.write(&program, &group, &format!("after-{round}-{number}")).await
            != StatusCode::CREATED
        {
            assert!(healed.elapsed() < RECOVERY_TIMEOUT, "{inject}: it does not heal");
            number += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        told.assert_acknowledged_is_stored(&program).await;
    }
    // After a kill and a restart, the data is the same.
    drop(program);
    let program = Program::serve(&store, 0);
    told.assert_acknowledged_is_stored(&program).await;
    drop(program);
    let connection = rusqlite::Connection::open(data_dir(&store).join("galley.db")).unwrap();
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    told.reasons.sort();
    told.reasons.dedup();
    let found = format!(
        "{} writes answered, {} refused ({}); 0 lost, reads went on, healed by itself",
        told.made.len(),
        told.refused,
        told.reasons.join(", ")
    );
    eprintln!("{found}");
    report_figure("a disk that fails (EIO, ENOSPC)", found, "0 lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_delays_writes_but_not_reads() {
    let Some(strace) = std::env::var_os("GALLEY_TEST_STRACE").map(PathBuf::from) else {
        return report_skipped("strace: GALLEY_TEST_STRACE is not set (cargo xtask test sets it)");
    };
    const DELAY: Duration = Duration::from_millis(300);
    let store = TestStore::sqlite();
    let program = Program::serve(&store, 0);
    let group = program.group().await;
    let mut told = WriteResponses::default();
    told.write(&program, &group, "before").await;
    let fault = Fault::begin(&strace, &program, "fsync,fdatasync:delay_enter=300000");
    let read = async {
        let (mut slowest, mut quick) = (Duration::ZERO, 0);
        for _ in 0..100 {
            let started = Instant::now();
            program.get("/content-pieces/list").await;
            slowest = slowest.max(started.elapsed());
            quick += usize::from(started.elapsed() < DELAY / 3);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (slowest, quick)
    };
    let write = async {
        let started = Instant::now();
        for number in 0..3 {
            let status = told.write(&program, &group, &format!("during-{number}")).await;
            assert_eq!(status, StatusCode::CREATED);
        }
        started.elapsed()
    };
    let ((slowest_read, quick), written) = tokio::join!(read, write);
    drop(fault);
    assert!(written >= 3 * DELAY, "the disk was not slow: {written:?}");
    // A read that waited for a sync would take longer.
    assert!(quick > 50, "of 100 reads only {quick} were quick");
    told.assert_acknowledged_is_stored(&program).await;
    let found =
        format!("3 writes in {written:?}, 100 reads beside them, the slowest {slowest_read:?}");
    eprintln!("{found}");
    report_figure("a disk that takes 300 ms for each sync", found, "reads go on");
}
