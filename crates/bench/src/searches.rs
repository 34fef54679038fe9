//! Searches in real texts, beside the same by `LIKE`, and the index: its size, its speed, and the
//! requests that run beside it.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use galley_testing::Numbers;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::client::SetupClient;
use crate::server::PinnedServer;
use crate::store::BenchStore;
use crate::table::{self, median};

/// The size of the text of a piece in bytes, about 4 KB.
const TEXT_SIZE: usize = 4_000;

/// Every so many pieces, one counts for the frequencies of words.
const SAMPLED: usize = 10;

/// The number of queries of each kind.
const QUERIES: usize = 300;

/// The number of queries of each kind by `LIKE`, which takes long.
const LIKE_QUERIES: usize = 5;

/// The number of clients that search at the same time.
const CLIENTS: usize = 8;

/// The number of pieces that are read beside a rebuild.
const READ_PIECES: usize = 20_000;

/// The number of clients that create pieces.
const CREATING_CLIENTS: usize = 4;

/// The wait between two looks at the index.
const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A kind of query: words by the fraction of pieces that have them.
struct Kind {
    name: &'static str,
    fractions: (f64, f64),
    /// The limit on the median time in milliseconds.
    limit: f64,
    /// The fraction of such queries in the mix, in tenths.
    tenths: usize,
}

const KINDS: [Kind; 3] = [
    Kind { name: "rare, < 0.5 %", fractions: (0.0, 0.005), limit: 2.0, tenths: 4 },
    Kind { name: "medium, to 5 %", fractions: (0.005, 0.05), limit: 2.0, tenths: 4 },
    Kind { name: "common, to 40 %", fractions: (0.05, 0.4), limit: 25.0, tenths: 2 },
];

/// Texts that are made of the sentences of documents, in several alphabets.
pub(crate) struct GeneratedTexts {
    sentences: Vec<String>,
}

/// The alphabets. A substitution of letters keeps the frequencies of words.
const ALPHABETS: [&str; 3] =
    ["abcdefghijklmnopqrstuvwxyz", "ebcdifghojklmnupqrstavwxyz", "абцдефгхийклмнопкрстувшкыз"];

impl GeneratedTexts {
    /// Reads the sentences of the Markdown files in a folder.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut sentences = Vec::new();
        for file in markdown_files(folder)? {
            let text = fs::read_to_string(&file)?;
            for part in text.split("```").step_by(2) {
                let plain = part.replace(|c: char| "#>*`[]()_|<&".contains(c), " ");
                for sentence in plain.split_inclusive(['.', '!', '?']) {
                    let words: Vec<&str> = sentence.split_whitespace().collect();
                    let sentence = words.join(" ");
                    if (30..300).contains(&sentence.len()) && !sentence.contains("://") {
                        sentences.push(sentence);
                    }
                }
            }
        }
        ensure!(sentences.len() > 500, "{} has too few texts", folder.display());
        Ok(Self { sentences })
    }

    /// Returns the title and the sentences of a piece. Three in ten have the name of one of 60,000
    /// things.
    fn piece(&self, number: usize) -> (String, Vec<String>) {
        let mut numbers = Numbers(number as u64 ^ 0x9e37_79b9_7f4a_7c15);
        for _ in 0..4 {
            numbers.below(2);
        }
        // Six of ten are in the Latin alphabet.
        let alphabet = ALPHABETS[[0, 0, 0, 0, 0, 0, 1, 1, 2, 2][numbers.below(10)]];
        let sentence = |numbers: &mut Numbers| {
            let sentence = &self.sentences[numbers.below(self.sentences.len())];
            let mut words: Vec<&str> = sentence.split(' ').collect();
            let name = format!("nm{}", numbers.below(60_000));
            if numbers.below(10) < 3 {
                words.insert(numbers.below(words.len()), &name);
            }
            substituted(&words.join(" "), alphabet)
        };
        let title: String = sentence(&mut numbers).chars().take(60).collect();
        let (mut sentences, mut size) = (Vec::new(), 0);
        while size < TEXT_SIZE {
            let next = sentence(&mut numbers);
            size += next.len() + 1;
            sentences.push(next);
        }
        (title, sentences)
    }

    /// Returns the JSON that creates a piece.
    pub(crate) fn body(&self, number: usize, group: &str) -> Value {
        let (title, sentences) = self.piece(number);
        let paragraphs = sentences.chunks(5).map(|part| format!("<p>{}</p>", part.join(" ")));
        json!({
            "title": title, "slug": format!("text-{number}"), "contentGroupId": group, "tags": [],
            "members": [], "content": paragraphs.collect::<String>(),
        })
    }

    /// Returns words of each kind, by their frequency in a part of the pieces.
    fn words(&self, pieces: usize) -> [Vec<String>; 3] {
        let sampled = (0..pieces).step_by(SAMPLED);
        let (mut counts, count) = (HashMap::<String, usize>::new(), sampled.len() as f64);
        for number in sampled {
            let text = self.piece(number).1.join(" ").to_lowercase();
            let words = text.split(|c: char| !c.is_alphanumeric());
            let mut words: Vec<&str> = words.filter(|word| word.chars().count() > 2).collect();
            words.sort_unstable();
            words.dedup();
            for word in words {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort();
        let mut numbers = Numbers(5);
        KINDS.map(|kind| {
            let (least, most) = kind.fractions;
            let is_of_kind = |found: &usize| (least..most).contains(&(*found as f64 / count));
            let all: Vec<&String> = counts
                .iter()
                .filter(|(_, found)| is_of_kind(found))
                .map(|(word, _)| word)
                .collect();
            (0..QUERIES).map(|_| all[numbers.below(all.len())].clone()).collect()
        })
    }
}

fn substituted(text: &str, alphabet: &str) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let letter = |c: char| match c {
        'a'..='z' => letters[c as usize - 'a' as usize],
        'A'..='Z' => letters[c as usize - 'A' as usize].to_uppercase().next().unwrap_or(c),
        _ => c,
    };
    text.chars().map(letter).collect()
}

fn markdown_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(markdown_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A store that is searched.
pub(crate) struct Searches<'s> {
    pub(crate) store: &'s BenchStore,
    pub(crate) texts: &'s GeneratedTexts,
    pub(crate) pieces: usize,
}

impl Searches<'_> {
    /// Waits until all pieces are indexed. Returns the duration.
    pub(crate) fn wait_for_index(&self, galley: &PinnedServer) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let mut client = SetupClient::connect(galley.address, &self.store.token)?;
        let newest = client.get("/events/position")?;
        let newest = newest["sequence"].as_i64().context("the response has no position")?;
        loop {
            let (head, _) = client.send("GET", "/content-pieces/search?query=x&perPage=1", None)?;
            let sequence = head.lines().find_map(|line| line.strip_prefix("search-sequence: "));
            let sequence = sequence.context("the response has no Search-Sequence")?;
            if sequence.trim().parse::<i64>()? >= newest {
                return Ok(started.elapsed());
            }
            sleep(INDEX_POLL_INTERVAL);
        }
    }

    /// Measures queries of each kind by one client, and a mix of them by several.
    pub(crate) fn measure(
        &self,
        galley: &PinnedServer,
        like: Option<&Path>,
        factor: f64,
    ) -> anyhow::Result<()> {
        let words = self.texts.words(self.pieces);
        let mut lines = Vec::new();
        for (kind, words) in KINDS.iter().zip(&words) {
            // As after some time of operation, the pages are in memory.
            self.search(galley, words)?;
            let before = galley.cpu_seconds()?;
            let (mut times, hits) = self.search(galley, words)?;
            let cpu = (galley.cpu_seconds()? - before) * 1e3 / words.len() as f64;
            times.sort_by(f64::total_cmp);
            let p50 = times[times.len() / 2];
            let like = like.map(|file| like_time(file, &words[..LIKE_QUERIES])).transpose()?;
            lines.push(vec![
                kind.name.to_owned(),
                format!("{p50:.2}"),
                format!("{:.2}", times[times.len() * 95 / 100]),
                format!("{:.1}", kind.limit * factor),
                format!("{hits:.1}"),
                format!("{cpu:.2}"),
                like.map(|like| format!("{like:.0}")).unwrap_or_default(),
                like.map(|like| format!("{:.0}", like / p50)).unwrap_or_default(),
            ]);
        }
        let heads = [
            "words, by the fraction of pieces",
            "p50 ms",
            "p95 ms",
            "limit of p50",
            "hits of the page",
            "CPU ms",
            "LIKE, ms",
            "times as fast",
        ];
        table::print(&heads, &lines);
        let mix: Vec<String> = (0..QUERIES)
            .flat_map(|number| {
                KINDS.iter().zip(&words).flat_map(move |(kind, words)| {
                    words.iter().cycle().skip(number * kind.tenths).take(kind.tenths).cloned()
                })
            })
            .collect();
        let (before, started) = (galley.cpu_seconds()?, Instant::now());
        thread::scope(|scope| {
            let parts = mix.chunks(mix.len().div_ceil(CLIENTS));
            let clients: Vec<_> =
                parts.map(|part| scope.spawn(|| self.search(galley, part).map(drop))).collect();
            clients.into_iter().try_for_each(|client| client.join().expect("a client ends"))
        })?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{CLIENTS} clients: {:.0} searches per second, with {:.2} of one core.\n",
            mix.len() as f64 / seconds,
            (galley.cpu_seconds()? - before) / seconds,
        );
        Ok(())
    }

    /// Searches words. Returns the times in milliseconds, and the mean of hits.
    fn search(&self, galley: &PinnedServer, words: &[String]) -> anyhow::Result<(Vec<f64>, f64)> {
        let mut client = SetupClient::connect(galley.address, &self.store.token)?;
        let (mut times, mut hits) = (Vec::new(), 0);
        for word in words {
            let query: Vec<String> = word.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let query = query.concat();
            let started = Instant::now();
            let found =
                client.get(&format!("/content-pieces/search?query={query}&fields=title"))?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            hits += found.as_array().context("the response has no hits")?.len();
        }
        Ok((times, hits as f64 / words.len() as f64))
    }

    /// Prints the size of the index on SQLite beside that of the texts.
    pub(crate) fn print_size(&self) -> anyhow::Result<()> {
        let database = open(&self.store.file())?;
        let size = |sql: &str| database.query_row(sql, [], |row| row.get::<_, f64>(0));
        let index = size("SELECT sum(length(block)) * 1.0 FROM search_terms_data")?
            + size("SELECT sum(length(sz) + 8) * 1.0 FROM search_terms_docsize")?;
        let sampled = (0..self.pieces).step_by(SAMPLED);
        let (count, sizes) = (
            sampled.len() as f64,
            sampled.map(|number| {
                let (title, sentences) = self.texts.piece(number);
                title.len() + sentences.iter().map(|sentence| sentence.len() + 1).sum::<usize>()
            }),
        );
        let texts = sizes.sum::<usize>() as f64 * self.pieces as f64 / count;
        println!(
            "The index has {:.0} MB, {:.2} of the texts; limit 0.90.\n",
            index / 1e6,
            index / texts
        );
        Ok(())
    }

    /// Creates pieces for `seconds`, at most `rate` per second, and prints the largest lag of the
    /// index, and the time until it has all of them.
    pub(crate) fn create(
        &self,
        galley: &PinnedServer,
        metrics: SocketAddr,
        rate: Option<f64>,
        seconds: u64,
    ) -> anyhow::Result<()> {
        let (group, time) = (self.store.names(1)?.group, Duration::from_secs(seconds));
        let (created, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let started = Instant::now();
        let work = || {
            let mut client = SetupClient::connect(galley.address, &self.store.token)?;
            while started.elapsed() < time {
                let number = created.fetch_add(1, Ordering::Relaxed);
                let mut body = self.texts.body(number, &group);
                body["slug"] = json!(format!("new-{}-{number}", std::process::id()));
                client.post("/content-pieces", &body)?;
                if let Some(rate) = rate {
                    let due = Duration::from_secs_f64(number as f64 / rate);
                    sleep(due.saturating_sub(started.elapsed()));
                }
            }
            anyhow::Ok(())
        };
        let largest_lag = || {
            let (mut client, mut lag) = (SetupClient::connect(metrics, "")?, None::<f64>);
            while !ended.load(Ordering::Relaxed) {
                let text = client.get_text("/metrics")?;
                let line =
                    text.lines().find_map(|one| one.strip_prefix("galley_search_lag_seconds "));
                let found = line.map(|one| one.trim().parse::<f64>()).transpose()?;
                lag = found.map_or(lag, |found| Some(lag.unwrap_or(0.0).max(found)));
                sleep(INDEX_POLL_INTERVAL);
            }
            lag.context("the metrics have no lag of the index")
        };
        let lag = thread::scope(|scope| {
            let watch = scope.spawn(largest_lag);
            let clients: Vec<_> = (0..CREATING_CLIENTS).map(|_| scope.spawn(work)).collect();
            let done: anyhow::Result<()> =
                clients.into_iter().try_for_each(|client| client.join().expect("a client ends"));
            ended.store(true, Ordering::Relaxed);
            done.and_then(|()| watch.join().expect("a client ends"))
        })?;
        let rate = created.into_inner() as f64 / started.elapsed().as_secs_f64();
        let behind = self.wait_for_index(galley)?;
        println!(
            "{rate:.0} creates per second for {seconds} s: the index is at most {lag:.1} s behind, and \
             has all {:.1} s after the last.\n",
            behind.as_secs_f64()
        );
        Ok(())
    }

    /// Measures a rebuild, and gets of pieces beside it.
    pub(crate) fn rebuild(
        &self,
        program: &Path,
        galley: &PinnedServer,
        settings: &[(&str, String)],
    ) -> anyhow::Result<()> {
        let names = self.store.names(READ_PIECES)?;
        let ids: Vec<String> = names.pieces.into_iter().map(|(id, _)| id).collect();
        let rebuild = || {
            let started = Instant::now();
            let mut command = Command::new("taskset");
            command.args(["-c", crate::server::LOAD_CORE]).arg(program);
            command.args(["search", "rebuild", "--data-dir"]).arg(&self.store.folder);
            command.envs(settings.iter().map(|(name, value)| (name, value)));
            let output = command.output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            anyhow::Ok(started.elapsed().as_secs_f64())
        };
        let seconds = rebuild()?;
        let alone = self.gets(galley, &ids, &AtomicBool::new(true))?;
        let ended = AtomicBool::new(false);
        let (beside, seconds_beside) = thread::scope(|scope| {
            let reader = scope.spawn(|| self.gets(galley, &ids, &ended));
            let seconds = rebuild();
            ended.store(true, Ordering::Relaxed);
            anyhow::Ok((reader.join().expect("a reader ends")?, seconds?))
        })?;
        println!(
            "A rebuild takes {seconds:.0} s (limit 120 for 100,000 pieces), and \
             {seconds_beside:.0} s beside constant gets on the same core. A get beside it takes \
             {:.2} of its time alone; limit 1.50.\n",
            beside / alone,
        );
        Ok(())
    }

    /// Gets pieces until `ended` is set, each at least once. Returns the median time.
    fn gets(
        &self,
        galley: &PinnedServer,
        ids: &[String],
        ended: &AtomicBool,
    ) -> anyhow::Result<f64> {
        let mut client = SetupClient::connect(galley.address, &self.store.token)?;
        let (mut times, mut number) = (Vec::new(), 0);
        while number < ids.len() || !ended.load(Ordering::Relaxed) {
            let started = Instant::now();
            client.get(&format!("/content-pieces?id={}&content=true", ids[number % ids.len()]))?;
            times.push(started.elapsed().as_secs_f64());
            number += 1;
        }
        Ok(median(times))
    }
}

/// Returns the mean time of the same search by `LIKE` in milliseconds.
fn like_time(file: &Path, words: &[String]) -> anyhow::Result<f64> {
    let database = open(file)?;
    let sql = "SELECT p.id FROM content_pieces p JOIN content_piece_contents c
            ON c.workspace_id = p.workspace_id AND c.content_piece_id = p.id
        WHERE p.title LIKE ?1 OR c.tree LIKE ?1 ORDER BY p.order_key LIMIT 20";
    let started = Instant::now();
    for word in words {
        let mut statement = database.prepare_cached(sql)?;
        let found = statement.query_map([format!("%{word}%")], |row| row.get::<_, String>(0))?;
        found.collect::<Result<Vec<_>, _>>()?;
    }
    Ok(started.elapsed().as_secs_f64() * 1e3 / words.len() as f64)
}

fn open(file: &Path) -> anyhow::Result<Connection> {
    Ok(Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}
