//! Power loss: the test records the disk operations of a server, and checks every state that a
//! power cut may leave.
//!
//! strace records each write, each change of a file's length or name, and each sync. After a cut,
//! synced data is on the disk. Of the rest, any part may be: some writes and not others, one of
//! them torn. Name changes persist in their order, as in the journals of file systems, but none is
//! certain before its directory was synced. Every write that was acknowledged before the cut must
//! be stored completely, with its events in sequence.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, report_skipped};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use reqwest::Method;
use serde_json::json;

use crate::program::{Program, data_dir, galley, init_token, piece, under};

const CLIENTS: u64 = 8;

/// The unit that a disk writes atomically, in bytes.
const SECTOR: usize = 512;

/// The response header that identifies responses in the record.
const REQUEST_ID: &str = "x-request-id";

/// A system call of the program.
#[derive(Debug)]
enum Call {
    /// Opens a file, and creates or truncates it if the flags are set.
    Open {
        path: PathBuf,
        creates: bool,
        truncates: bool,
    },
    /// Writes bytes to a file; without an offset, at its end.
    Write {
        path: PathBuf,
        offset: Option<usize>,
        bytes: Vec<u8>,
    },
    Truncate {
        path: PathBuf,
        length: usize,
    },
    /// Begins a sync. `done` is the index at which it has ended.
    Sync {
        path: PathBuf,
        done: Option<usize>,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    /// Gives a file an additional name.
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Unlink {
        path: PathBuf,
    },
    /// Begins to send a response.
    Answer {
        request: u64,
    },
    /// An irrelevant call.
    Other,
}

/// Runs a server under strace, which writes the system calls to `log`. The file is complete once
/// the server has ended.
fn serve_recorded(strace: &Path, store: &TestStore, log: &Path) -> Program {
    let mut plain = galley(store);
    plain.env("GALLEY_INIT_TOKEN", init_token()).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new(strace);
    command.args(["-f", "-qq", "-yy", "-xx", "-s", "16777216", "-e", "signal=none", "-e"]);
    command.arg(
        "trace=openat,write,pwrite64,writev,pwritev,sendto,sendmsg,ftruncate,fallocate,fsync,fdatasync,rename,renameat,\
         renameat2,unlink,unlinkat,link,linkat",
    );
    command.arg("-o").arg(log);
    Program::start(under(command, &plain))
}

/// Sends a stop signal to the server behind strace, and waits for both.
fn stop(mut program: Program) {
    let strace = program.child.id();
    let children = std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children"));
    let server = children.unwrap().trim().to_owned();
    assert!(Command::new("kill").args(["-TERM", &server]).status().unwrap().success());
    assert!(program.child.wait().unwrap().success());
}

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

/// Returns the quoted texts of a line, in order.
fn quoted(line: &str) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('"') {
        let Some((text, after)) = after.split_once('"') else { break };
        let digits = text.as_bytes().chunks_exact(4);
        let byte = |one: &[u8]| {
            let digits = std::str::from_utf8(&one[2..]).unwrap();
            u8::from_str_radix(digits, 16).unwrap()
        };
        texts.push(digits.map(byte).collect());
        rest = after;
    }
    texts
}

/// Returns the text in the first angle brackets: the path of a file descriptor, or its description.
fn described(line: &str) -> Option<PathBuf> {
    let (_, after) = line.split_once('<')?;
    let (escaped, _) = after.split_once('>')?;
    if !escaped.starts_with("\\x") {
        return None;
    }
    let bytes = quoted(&format!("\"{escaped}\"")).pop()?;
    Some(PathBuf::from(String::from_utf8(bytes).ok()?))
}

fn path(text: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8(text.to_vec()).unwrap())
}

/// Parses a record. Omits calls on files outside of `directory`.
fn read_record(log: &Path, directory: &Path, calls: &mut Vec<Call>) {
    // Calls that another thread's call interrupted, by thread.
    let mut begun: HashMap<String, usize> = HashMap::new();
    for line in BufReader::new(std::fs::File::open(log).unwrap()).lines() {
        let line = line.unwrap();
        let Some((thread, line)) = line.split_once(' ') else { continue };
        let line = line.trim_start();
        if line.starts_with("<...") {
            if let Some(place) = begun.remove(thread)
                && line.ends_with("= 0")
            {
                let end = calls.len();
                if let Call::Sync { done, .. } = &mut calls[place] {
                    *done = Some(end);
                }
            }
            calls.push(Call::Other);
            continue;
        }
        let Some((name, arguments)) = line.split_once('(') else { continue };
        let is_unfinished = line.ends_with("<unfinished ...>");
        let failed = line.rsplit_once(" = ").is_some_and(|(_, result)| result.starts_with("-1"));
        let ours = |path: Option<PathBuf>| {
            let name = path.as_ref()?.file_name()?.to_str()?;
            let counts = !name.ends_with("-shm") && !name.ends_with(".lock");
            path.filter(|path| counts && path.starts_with(directory))
        };
        let numbers = || {
            let (inside, _) = arguments.rsplit_once(')').unwrap_or((arguments, ""));
            let inside = inside.trim_end_matches(" <unfinished ...>");
            inside.rsplit(", ").map(|one| one.trim().parse::<usize>()).collect::<Vec<_>>()
        };
        let call = match name {
            _ if failed => Call::Other,
            "openat" => match ours(quoted(arguments).first().map(|text| path(text))) {
                Some(path) => Call::Open {
                    path,
                    creates: arguments.contains("O_CREAT"),
                    truncates: arguments.contains("O_TRUNC"),
                },
                None => Call::Other,
            },
            "write" | "pwrite64" | "writev" | "pwritev" | "sendto" | "sendmsg" => {
                match ours(described(arguments)) {
                    Some(path) => {
                        assert!(
                            ["write", "pwrite64"].contains(&name),
                            "{name} of {}",
                            path.display()
                        );
                        let offset = (name == "pwrite64").then(|| *numbers()[0].as_ref().unwrap());
                        Call::Write { path, offset, bytes: quoted(arguments).concat() }
                    }
                    None => {
                        answer(arguments).map_or(Call::Other, |request| Call::Answer { request })
                    }
                }
            }
            "ftruncate" => match ours(described(arguments)) {
                Some(path) => Call::Truncate { path, length: *numbers()[0].as_ref().unwrap() },
                None => Call::Other,
            },
            "fsync" | "fdatasync" => match described(arguments)
                .filter(|path| path.starts_with(directory))
            {
                Some(path) => Call::Sync { path, done: (!is_unfinished).then_some(calls.len()) },
                None => Call::Other,
            },
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
                let paths: Vec<_> = quoted(arguments).iter().map(|text| path(text)).collect();
                match (ours(paths.first().cloned()), ours(paths.get(1).cloned())) {
                    (Some(from), Some(to)) if name.starts_with("link") => Call::Link { from, to },
                    (Some(from), Some(to)) => Call::Rename { from, to },
                    _ => Call::Other,
                }
            }
            "unlink" | "unlinkat" => match ours(quoted(arguments).first().map(|text| path(text))) {
                Some(path) => Call::Unlink { path },
                None => Call::Other,
            },
            "fallocate" => {
                assert_eq!(ours(described(arguments)), None, "{name} is not foreseen here");
                Call::Other
            }
            _ => Call::Other,
        };
        if is_unfinished {
            begun.insert(thread.to_owned(), calls.len());
        }
        calls.push(call);
    }
}

/// Returns the request's number if these are bytes of a response to one of the test's requests.
fn answer(arguments: &str) -> Option<u64> {
    let bytes = quoted(arguments).concat();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]).to_lowercase();
    let (_, after) =
        text.strip_prefix("http/1.1 20")?.split_once(&format!("{REQUEST_ID}: ack-"))?;
    after.split("\r\n").next()?.parse().ok()
}

/// A change of a file that may or may not be on the disk.
#[derive(Debug, Clone, Copy)]
enum Change<'c> {
    Bytes(usize, &'c [u8]),
    Length(usize),
}

impl Change<'_> {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bytes(offset, new) => {
                let end = offset + new.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[offset..end].copy_from_slice(new);
            }
            Self::Length(length) => bytes.resize(length, 0),
        }
    }

    /// Returns a random part of its sectors.
    fn torn(self, random: &mut impl Rng) -> Vec<Self> {
        match self {
            Self::Length(_) => Vec::new(),
            Self::Bytes(offset, bytes) => {
                let mut parts = Vec::new();
                let mut start = 0;
                while start < bytes.len() {
                    let end = (((offset + start) / SECTOR + 1) * SECTOR - offset).min(bytes.len());
                    if random.random() {
                        parts.push(Self::Bytes(offset + start, &bytes[start..end]));
                    }
                    start = end;
                }
                parts
            }
        }
    }
}

/// A file, independent of its names.
#[derive(Debug, Default)]
struct File<'c> {
    /// The content that is certain to be on the disk.
    kept: Vec<u8>,
    /// The later changes, each with its call's index.
    pending: Vec<(usize, Change<'c>)>,
    /// The length as the program sees it.
    length: usize,
}

/// A change of names.
#[derive(Debug, Clone)]
enum Naming {
    Made(PathBuf, usize),
    Moved(PathBuf, PathBuf),
    Gone(PathBuf),
}

type Names = BTreeMap<PathBuf, usize>;

fn rename(names: &mut Names, naming: &Naming) {
    match naming {
        Naming::Made(path, file) => {
            names.insert(path.clone(), *file);
        }
        Naming::Moved(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Naming::Gone(path) => {
            names.remove(path);
        }
    }
}

/// A disk with the files of one directory.
#[derive(Debug, Default)]
struct Disk<'c> {
    files: Vec<File<'c>>,
    /// The names as the program sees them.
    names: Names,
    /// The names that are certain to be on the disk. `pending` has the later changes.
    kept: Names,
    pending: Vec<(usize, Naming)>,
    /// The syncs in progress: the index of the end, the index of the start, and the path.
    syncs: Vec<(usize, usize, PathBuf)>,
}

impl<'c> Disk<'c> {
    fn name(&mut self, at: usize, naming: Naming) {
        rename(&mut self.names, &naming);
        self.pending.push((at, naming));
    }

    fn change(&mut self, at: usize, path: &Path, change: impl FnOnce(&File<'c>) -> Change<'c>) {
        let Some(&number) = self.names.get(path) else { return };
        let file = &mut self.files[number];
        let change = change(file);
        match change {
            Change::Bytes(offset, bytes) => file.length = file.length.max(offset + bytes.len()),
            Change::Length(length) => file.length = length,
        }
        file.pending.push((at, change));
    }

    /// Applies the call at this index.
    fn follow(&mut self, at: usize, call: &'c Call, directory: &Path) {
        match call {
            Call::Open { path, creates, truncates } => {
                if *creates && !self.names.contains_key(path) {
                    self.files.push(File::default());
                    self.name(at, Naming::Made(path.clone(), self.files.len() - 1));
                } else if *truncates {
                    self.change(at, path, |_| Change::Length(0));
                }
            }
            Call::Write { path, offset, bytes } => {
                self.change(at, path, |file| Change::Bytes(offset.unwrap_or(file.length), bytes));
            }
            Call::Truncate { path, length } => self.change(at, path, |_| Change::Length(*length)),
            Call::Link { from, to } => {
                if let Some(&file) = self.names.get(from) {
                    self.name(at, Naming::Made(to.clone(), file));
                }
            }
            Call::Rename { from, to } => self.name(at, Naming::Moved(from.clone(), to.clone())),
            Call::Unlink { path } => self.name(at, Naming::Gone(path.clone())),
            Call::Sync { path, done } => {
                if let Some(done) = done {
                    self.syncs.push((*done, at, path.clone()));
                }
            }
            Call::Answer { .. } | Call::Other => {}
        }
        let (ended, under_way) =
            std::mem::take(&mut self.syncs).into_iter().partition(|(done, ..)| *done <= at);
        self.syncs = under_way;
        for (_, began, path) in ended {
            if path == directory {
                let sure = self.pending.iter().take_while(|(at, _)| *at < began).count();
                for (_, naming) in self.pending.drain(..sure) {
                    rename(&mut self.kept, &naming);
                }
            } else if let Some(&number) = self.names.get(&path) {
                let File { kept, pending, .. } = &mut self.files[number];
                let sure = pending.iter().take_while(|(at, _)| *at < began).count();
                for (_, change) in pending.drain(..sure) {
                    change.apply(kept);
                }
            }
        }
    }

    /// Returns true if some state is uncertain after a cut.
    fn is_open(&self) -> bool {
        !self.pending.is_empty() || self.files.iter().any(|file| !file.pending.is_empty())
    }

    /// Writes a state that a cut may leave: only the certain state, all changes, or some of them.
    fn leave(&self, directory: &Path, cut: Cut, random: &mut impl Rng) {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory).unwrap();
        let mut names = self.kept.clone();
        let namings = match cut {
            Cut::Least => 0,
            Cut::All => self.pending.len(),
            Cut::Some => random.random_range(0..=self.pending.len()),
        };
        for (_, naming) in &self.pending[..namings] {
            rename(&mut names, naming);
        }
        for (path, number) in names {
            let File { kept, pending, .. } = &self.files[number];
            let mut bytes = kept.clone();
            // Often most changes are on the disk, or very few.
            let often = [0.1, 0.5, 0.9][random.random_range(0..3)];
            for (_, change) in pending {
                match cut {
                    Cut::All => change.apply(&mut bytes),
                    Cut::Some if random.random_bool(0.1) => {
                        change.torn(random).into_iter().for_each(|part| part.apply(&mut bytes));
                    }
                    Cut::Some if random.random_bool(often) => change.apply(&mut bytes),
                    Cut::Least | Cut::Some => {}
                }
            }
            std::fs::write(directory.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
}

/// The extent to which changes that were not synced survive.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Least,
    All,
    Some,
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
            let verdict = std::panic::catch_unwind(|| check(&left, &answered));
            if let Err(panic) = verdict {
                let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("power-cut-{seed}"));
                std::fs::rename(&left, &kept).unwrap();
                eprintln!(
                    "{cut:?} after call {at}, {call:?}: what was left is in {}",
                    kept.display()
                );
                std::panic::resume_unwind(panic);
            }
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
