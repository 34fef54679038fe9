//! A store with a given number of pieces, created through the API.

use std::fs;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::Context;
use galley_domain::access_token::AccessToken;
use galley_testing::Numbers;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::client::SetupClient;
use crate::files::copy_files;
use crate::server::PinnedServer;

/// The number of tags. Every piece has two of them.
const TAGS: usize = 50;

/// The number of pieces that one request creates.
const BATCH: usize = 100;

/// The number of clients that create pieces.
const CLIENTS: usize = 4;

/// A data directory.
pub(crate) struct BenchStore {
    pub(crate) folder: PathBuf,
    pub(crate) token: String,
}

/// The ids that requests refer to.
pub(crate) struct StoreIds {
    pub(crate) group: String,
    pub(crate) tags: Vec<String>,
    pub(crate) member: String,
    /// Ids and order keys of pieces, in a scattered order.
    pub(crate) pieces: Vec<(String, String)>,
}

impl BenchStore {
    /// Returns the store with that many pieces in `folder`. `program` creates it unless it exists.
    pub(crate) fn of(folder: &Path, program: &Path, pieces: usize) -> anyhow::Result<Self> {
        let body =
            |number: usize, ids: &StoreIds| piece(number, &ids.group, &ids.tags, &ids.member);
        Self::with_pieces(folder.join(format!("{pieces}-pieces")), program, pieces, body)
    }

    /// Returns the store in `folder`. `program` creates it with the pieces of `body` unless it
    /// exists.
    pub(crate) fn with_pieces(
        folder: PathBuf,
        program: &Path,
        pieces: usize,
        body: impl Fn(usize, &StoreIds) -> Value + Sync,
    ) -> anyhow::Result<Self> {
        let token = AccessToken::from_random([7; 32]).reveal().to_owned();
        let store = Self { folder, token };
        let whole = store.folder.join("whole");
        if !whole.exists() {
            let _ = fs::remove_dir_all(&store.folder);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&store.folder)?;
            store.fill(program, pieces, body)?;
            fs::write(whole, "")?;
        }
        Ok(store)
    }

    /// Returns the path of the SQLite file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("galley.db")
    }

    /// Copies the store, so that writes leave the original unchanged.
    pub(crate) fn copy_to(&self, work: &Path) -> anyhow::Result<Self> {
        let folder = work.join("store");
        copy_files(&self.folder, &folder)?;
        Ok(Self { folder, token: self.token.clone() })
    }

    /// Starts Galley on the store.
    pub(crate) fn serve(
        &self,
        program: &Path,
        settings: &[(&str, String)],
    ) -> anyhow::Result<PinnedServer> {
        self.serve_by(&[], program, settings)
    }

    /// Starts Galley on the store under a wrapper such as strace.
    pub(crate) fn serve_by(
        &self,
        wrapper: &[&str],
        program: &Path,
        settings: &[(&str, String)],
    ) -> anyhow::Result<PinnedServer> {
        let mut environment = vec![
            ("GALLEY_INIT_TOKEN", self.token.clone()),
            ("GALLEY_DATA_DIR", self.folder.display().to_string()),
            ("GALLEY_WEBHOOKS_ALLOW", "127.0.0.0/8".to_owned()),
        ];
        environment.extend_from_slice(settings);
        let mut words: Vec<String> = wrapper.iter().map(|&word| word.to_owned()).collect();
        words.push(program.display().to_string());
        let first = words.remove(0);
        let arguments = |address: std::net::SocketAddr| {
            words.extend(["serve", "--listen"].map(ToOwned::to_owned));
            words.push(address.to_string());
            words
        };
        PinnedServer::start(first, arguments, &environment)
    }

    fn fill(
        &self,
        program: &Path,
        pieces: usize,
        body: impl Fn(usize, &StoreIds) -> Value + Sync,
    ) -> anyhow::Result<()> {
        let server = self.serve(program, &[])?;
        let mut client = SetupClient::connect(server.address, &self.token)?;
        let id = |made: Value| {
            made["id"].as_str().map(ToOwned::to_owned).context("the response has no id")
        };
        let group = id(client.post("/content-groups", &json!({"name": "All"}))?)?;
        let mut tags = Vec::new();
        for number in 0..TAGS {
            tags.push(id(client.post("/tags", &json!({"label": format!("Tag {number}")}))?)?);
        }
        let members = client.get("/workspace-memberships/list-members")?;
        let member = members[0]["id"].as_str().context("a member")?.to_owned();
        let ids = StoreIds { group, tags, member, pieces: Vec::new() };
        let next = AtomicUsize::new(0);
        let (started, shows_progress) = (Instant::now(), stderr().is_terminal());
        let work = || {
            let mut client = SetupClient::connect(server.address, &self.token)?;
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= pieces {
                    return Ok::<_, anyhow::Error>(());
                }
                let batch: Vec<_> =
                    (first..pieces.min(first + BATCH)).map(|number| body(number, &ids)).collect();
                client.post("/content-pieces/batch", &json!({"pieces": batch}))?;
                if shows_progress {
                    let seconds = started.elapsed().as_secs();
                    let _ = write!(stderr(), "\rcreated {first} of {pieces} pieces, {seconds} s ");
                }
            }
        };
        let done: anyhow::Result<()> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
            clients.into_iter().try_for_each(|client| client.join().expect("a client ends"))
        });
        eprintln!("created {pieces} pieces in {} s", started.elapsed().as_secs());
        done
    }

    /// Returns ids for requests, with at most `count` pieces, spread evenly over all.
    pub(crate) fn names(&self, count: usize) -> anyhow::Result<StoreIds> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = Connection::open_with_flags(self.file(), flags)?;
        let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
            database.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        };
        let all: Vec<(String, String)> = database
            .prepare("SELECT id, order_key FROM content_pieces")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        // A step coprime to the number of pieces visits each piece once.
        let first = all.len() * 618 / 1_000 + 1;
        let step = (first..first + all.len()).find(|&step| gcd(step, all.len()) == 1);
        let step = step.context("the store has no pieces")?;
        let nth = |number: usize| all[number * step % all.len()].clone();
        Ok(StoreIds {
            group: texts("SELECT id FROM content_groups WHERE name = 'All'")?.remove(0),
            tags: texts("SELECT id FROM tags ORDER BY id")?,
            member: texts("SELECT id FROM workspace_members ORDER BY id")?.remove(0),
            pieces: (0..count.min(all.len())).map(nth).collect(),
        })
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns text that differs from piece to piece and compresses like prose.
fn words(seed: usize, count: usize) -> String {
    const WORDS: [&str; 48] = [
        "the",
        "harbour",
        "of",
        "a",
        "small",
        "town",
        "at",
        "dawn",
        "and",
        "what",
        "editors",
        "write",
        "about",
        "it",
        "when",
        "boats",
        "come",
        "in",
        "with",
        "herring",
        "letters",
        "printed",
        "on",
        "paper",
        "that",
        "smells",
        "ink",
        "before",
        "anybody",
        "reads",
        "them",
        "over",
        "coffee",
        "galley",
        "proofs",
        "are",
        "corrected",
        "by",
        "hand",
        "then",
        "set",
        "again",
        "until",
        "every",
        "line",
        "holds",
        "its",
        "place",
    ];
    let mut numbers = Numbers(seed as u64 ^ 0x9e37_79b9_7f4a_7c15);
    let words: Vec<&str> = (0..count).map(|_| WORDS[numbers.below(WORDS.len())]).collect();
    words.join(" ")
}

/// Returns HTML of about 3 KB, whose tree has about 4 KB.
pub(crate) fn html(number: usize) -> String {
    let mut html = format!("<h2>{}</h2>", words(number, 6));
    for part in 0..6 {
        let seed = number * 16 + part;
        html.push_str(&format!(
            "<p>{} <strong>{}</strong> {} <a href=\"https://example.org/{seed}\">{}</a> {}</p>",
            words(seed, 40),
            words(seed + 1, 2),
            words(seed + 2, 12),
            words(seed + 3, 3),
            words(seed + 4, 10),
        ));
    }
    html
}

/// Returns the JSON that creates a piece.
pub(crate) fn piece(number: usize, group: &str, tags: &[String], member: &str) -> Value {
    json!({
        "title": format!("Piece {number}: {}", words(number, 5)),
        "slug": format!("piece-{number}"),
        "description": format!("<p>{}</p>", words(number + 7, 15)),
        "date": "2024-05-06T07:08:09Z",
        "contentGroupId": group,
        "tags": [tags[number % TAGS], tags[(number / TAGS + 1 + number) % TAGS]],
        "members": [member],
        "content": html(number),
    })
}
