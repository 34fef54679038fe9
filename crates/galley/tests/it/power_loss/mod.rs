//! Power loss: the test records the disk operations of a server, and checks every state that a
//! power cut may leave.
//!
//! strace records each write, each change of a file's length or name, and each sync. After a cut,
//! synced data is on the disk. Of the rest, any part may be: some writes and not others, one of
//! them torn. Name changes persist in their order, as in the journals of file systems, but none is
//! certain before its directory was synced. Every write that was acknowledged before the cut must
//! be stored completely, with its events in sequence.

mod disk;
mod record;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, report_skipped};
use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::StdRng;
use reqwest::Method;
use serde_json::json;

use self::disk::{Cut, Disk};
use self::record::{Call, read_record, serve_recorded, stop};
use crate::program::{Program, data_dir, galley, init_token, piece};

const CLIENTS: u64 = 8;

/// The response header that identifies responses in the record.
const REQUEST_ID: &str = "x-request-id";

/// The change that one request made.
#[derive(Debug, Clone)]
enum Done {
    Made(String),
    Renamed(String),
}

/// Creates pieces and renames each, in bursts with checkpoints between them. Returns the change of
/// each request, by the number in its id.
async fn write(
    program: &Program,
    database: &Path,
    life: usize,
    rounds: usize,
) -> HashMap<u64, Done> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let group = program.group().await;
    let mut all = HashMap::new();
    for round in 0..rounds {
        let burst = (0..CLIENTS).map(|client| {
            let group = group.clone();
            async move {
                let mut done = Vec::new();
                for number in 0..3 {
                    let slug = format!("l{life}-r{round}-c{client}-{number}");
                    let body = piece(&group, &slug, &format!("<p>{slug}{}</p>", text(&slug)));
                    let id = NEXT.fetch_add(1, Ordering::Relaxed);
                    let request = program.request(Method::POST, "/content-pieces").json(&body);
                    let made =
                        request.header(REQUEST_ID, format!("ack-{id}")).send().await.unwrap();
                    assert_eq!(made.status(), 201);
                    let made: serde_json::Value = made.json().await.unwrap();
                    done.push((id, Done::Made(slug.clone())));
                    let id = NEXT.fetch_add(1, Ordering::Relaxed);
                    let change = json!({"id": made["id"], "title": format!("{slug} renamed")});
                    let request = program.request(Method::PUT, "/content-pieces").json(&change);
                    let changed =
                        request.header(REQUEST_ID, format!("ack-{id}")).send().await.unwrap();
                    assert_eq!(changed.status(), 204);
                    done.push((id, Done::Renamed(slug)));
                }
                done
            }
        });
        all.extend(futures_util::future::join_all(burst).await.into_iter().flatten());
        if round % 2 == 0 {
            folded_in(database).await;
        }
    }
    all
}

/// Waits until a checkpoint has copied the whole WAL to the database's file and synced it.
async fn folded_in(database: &Path) {
    // The offsets of two counters in the WAL index: the frames in the WAL, and the frames that
    // checkpoints have copied.
    const FRAMES: usize = 16;
    const FOLDED_IN: usize = 96;
    let index = database.with_extension("db-shm");
    let started = Instant::now();
    loop {
        let bytes = std::fs::read(&index).unwrap();
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        if number(FRAMES) == number(FOLDED_IN) {
            return;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "the log is not folded in");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn text(slug: &str) -> String {
    " word".repeat(if slug.ends_with('0') { 1_500 } else { 20 })
}

/// Checks that acknowledged writes are stored completely, and that each change has its event.
fn check(directory: &Path, answered: &[&Done]) {
    let file = directory.join("galley.db");
    if answered.is_empty() && !file.exists() {
        return;
    }
    let connection = rusqlite::Connection::open(&file).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let whole: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    // Before the first response, the schema may be missing.
    let tables = number("SELECT count(*) FROM sqlite_schema WHERE name = 'events'").unwrap();
    if answered.is_empty() && tables == 0 {
        return;
    }
    let sql = "SELECT p.slug, p.title, c.tree FROM content_pieces p
        JOIN content_piece_contents c ON c.workspace_id = p.workspace_id AND c.content_piece_id = p.id";
    let mut statement = connection.prepare(sql).unwrap();
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, String>(0)?, (row.get::<_, String>(1)?, row.get::<_, String>(2)?)))
    };
    let pieces: HashMap<String, (String, String)> =
        statement.query_map([], read).unwrap().map(Result::unwrap).collect();
    for done in answered {
        match done {
            Done::Made(slug) => assert!(pieces.contains_key(slug), "{slug} was answered and lost"),
            Done::Renamed(slug) => {
                assert_eq!(
                    pieces[slug].0,
                    format!("{slug} renamed"),
                    "its renaming was answered and lost"
                );
            }
        }
    }
    let mut renamed = 0;
    for (slug, (title, content)) in &pieces {
        assert!(content.contains(&text(slug)), "{slug} is half there");
        renamed += i64::from(title != slug);
    }
    assert_eq!(number("SELECT count(*) FROM content_pieces").unwrap(), pieces.len() as i64);
    let events = number("SELECT count(*) FROM events").unwrap();
    assert_eq!(events, pieces.len() as i64 + renamed, "an event for each change");
    assert_eq!(number("SELECT COALESCE(MAX(sequence), 0) FROM events").unwrap(), events);
}

/// Checks a state, and keeps its files if the check fails.
fn check_or_keep(left: &Path, answered: &[&Done], cut: &str, seed: u64) {
    if let Err(panic) = std::panic::catch_unwind(|| check(left, answered)) {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("power-cut-{seed}"));
        std::fs::rename(left, &kept).unwrap();
        eprintln!("{cut}: the files are in {}", kept.display());
        std::panic::resume_unwind(panic);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_loses_no_acknowledged_write() {
    let Some(strace) = std::env::var_os("GALLEY_TEST_STRACE").map(PathBuf::from) else {
        return report_skipped("strace: GALLEY_TEST_STRACE is not set (cargo xtask test sets it)");
    };
    let (rounds, wanted): (usize, usize) = size((2, 300), (4, 2_000), (12, 20_000));
    let seed = rand::rng().random::<u64>();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let store = TestStore::sqlite();
    let directory = data_dir(&store);
    let (mut calls, mut done) = (Vec::new(), HashMap::new());
    // The second run opens the database of the first one.
    for life in 0..2 {
        let log = store.directory().join(format!("record-{life}"));
        let program = serve_recorded(&strace, &store, &log);
        done.extend(write(&program, &directory.join("galley.db"), life, rounds).await);
        stop(program);
        read_record(&log, &directory, &mut calls);
    }
    let answers = calls.iter().filter(|call| matches!(call, Call::Answer { .. })).count();
    assert_eq!(answers, done.len(), "each answer is in the record");
    // The WAL restarts from its beginning after a checkpoint, so the record includes overwritten
    // frames.
    let begins_anew = |call: &&Call| matches!(call, Call::Write { path, offset: Some(0), .. } if path.ends_with("galley.db-wal"));
    let begun = calls.iter().filter(begins_anew).count();
    assert!(begun >= 3, "the log was begun anew {begun} times");
    // Cuts are made only where some state is uncertain.
    let mut disk = Disk::default();
    let mut places = 0;
    for (at, call) in calls.iter().enumerate() {
        disk.follow(at, call, &directory);
        places += usize::from(disk.is_open());
    }
    let cuts_each = wanted.div_ceil(places).max(1);
    let left = store.directory().join("left");
    let (mut disk, mut answered) = (Disk::default(), Vec::new());
    let (mut cuts, mut starts) = (0, 0);
    for (at, call) in calls.iter().enumerate() {
        disk.follow(at, call, &directory);
        if let Call::Answer { request } = call {
            answered.push(&done[request]);
        }
        if !disk.is_open() || random.random_range(0..places * cuts_each) >= wanted {
            continue;
        }
        for number in 0..cuts_each {
            let cut = match number {
                0 if cuts_each > 2 => Cut::Least,
                1 if cuts_each > 2 => Cut::All,
                _ => Cut::Some,
            };
            disk.leave(&left, cut, &mut random);
            cuts += 1;
            check_or_keep(&left, &answered, &format!("{cut:?} after call {at}, {call:?}"), seed);
            // Some states are opened by a server, not only by SQLite.
            if cuts % 500 == 0 && !answered.is_empty() {
                let mut command = galley(&store);
                command.env("GALLEY_DATA_DIR", &left).env("GALLEY_INIT_TOKEN", init_token());
                command.args(["serve", "--listen", "127.0.0.1:0"]);
                let program = Program::start(command);
                assert!(program.pieces("").await.len() * 2 >= answered.len());
                starts += 1;
            }
        }
    }
    assert!(cuts * 2 > wanted, "{cuts} cuts");
    let found = format!(
        "{cuts} cuts between {} calls of the system, {} answers; 0 lost, 0 half there; {starts} times a server went on",
        calls.len(),
        done.len()
    );
    eprintln!("{found}");
    report_figure("power cut: all that a disk may keep", found, "0 lost");
}
