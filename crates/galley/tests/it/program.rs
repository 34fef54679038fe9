//! Runs the binary for a test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use galley_domain::Timestamp;
use galley_storage::{Database, DatabaseUrl, Options, ProcessRole};
use galley_testing::TestStore;
pub(crate) use galley_testing::free_port;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

/// The key for tests on PostgreSQL, which requires one.
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The timeout of a start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// The access token of requests.
    pub(crate) token: String,
    /// The time from the start of the process to its log line `serving`.
    pub(crate) started_in: Duration,
    log: Mutex<Receiver<String>>,
    pub(crate) client: Client,
}

/// Returns a command of the binary on the test's store, without the `GALLEY_*` variables of the
/// test's own environment.
pub(crate) fn galley(store: &TestStore) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galley"));
    without_settings(&mut command);
    command.current_dir(store.directory()).env("GALLEY_DATA_DIR", data_dir(store));
    if let DatabaseUrl::Postgres(url) = &store.url {
        command.env("GALLEY_DATABASE_URL", url).env("GALLEY_KEY", KEY);
    }
    command
}

/// Returns the same command as an argument of another program, such as a wrapper.
pub(crate) fn under(mut outer: Command, plain: &Command) -> Command {
    outer.arg(plain.get_program()).args(plain.get_args());
    if let Some(directory) = plain.get_current_dir() {
        outer.current_dir(directory);
    }
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GALLEY_")) {
        command.env_remove(name);
    }
}

/// Returns the data directory of the test's server.
pub(crate) fn data_dir(store: &TestStore) -> std::path::PathBuf {
    store.directory().join("data")
}

/// Opens the database of the test's server, as a command does.
pub(crate) async fn open_database(store: &TestStore) -> Database {
    let url = match &store.url {
        DatabaseUrl::Sqlite(_) => DatabaseUrl::Sqlite(data_dir(store).join("galley.db")),
        postgres @ DatabaseUrl::Postgres(_) => postgres.clone(),
    };
    let options = Options {
        url,
        replica_url: None,
        role: ProcessRole::Command,
        program_version: "0.1.0",
        now: Timestamp::from_ms(0),
        connections: 2,
        write_timeout: Duration::from_secs(10),
        statement_log: None,
    };
    Database::open(options).await.unwrap()
}

/// Returns a valid token for `GALLEY_INIT_TOKEN`.
pub(crate) fn init_token() -> String {
    galley_domain::access_token::AccessToken::from_random([7; 32]).reveal().to_owned()
}

impl Program {
    /// Starts a server on `port`. The first token of a new store is [`init_token`].
    pub(crate) fn serve(store: &TestStore, port: u16) -> Self {
        let mut command = galley(store);
        command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_INVITES_PER_HOUR", "1000000");
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
        Self::start(command)
    }

    /// Starts `command`, which must serve, and waits for its log line `serving`.
    pub(crate) fn start(mut command: Command) -> Self {
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = lines(child.stderr.take().unwrap());
        let mut seen = Vec::new();
        let address = loop {
            match log.recv_timeout(START_TIMEOUT) {
                Ok(line) => {
                    let entry: Value = serde_json::from_str(&line).unwrap_or_default();
                    seen.push(line);
                    if entry["fields"]["message"] == "serving" {
                        break entry["fields"]["address"].as_str().unwrap().to_owned();
                    }
                }
                Err(_) => {
                    child.kill().unwrap();
                    panic!("the server did not start:\n{}", seen.join("\n"));
                }
            }
        };
        let client = Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{address}");
        let log = Mutex::new(log);
        Self { child, url, token: init_token(), started_in: started.elapsed(), log, client }
    }

    /// Builds a request with the first token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.url);
        self.client.request(method, url).bearer_auth(&self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let response = self.request(Method::GET, path).send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {response:?}");
        response.json().await.unwrap()
    }

    /// Returns the position of the newest event. It differs after any change.
    pub(crate) async fn position(&self) -> Value {
        self.get("/events/position").await
    }

    /// Returns the first content group's id.
    pub(crate) async fn group(&self) -> String {
        self.get("/content-groups/list").await[0]["id"].as_str().unwrap().to_owned()
    }

    /// Lists all pieces, page by page.
    pub(crate) async fn pieces(&self, query: &str) -> Vec<Value> {
        let (mut all, mut last) = (Vec::new(), String::new());
        loop {
            let path = format!("/content-pieces/list?perPage=100&{query}&lastOrder={last}");
            let page = self.get(&path).await;
            let page = page.as_array().unwrap();
            let Some(piece) = page.last() else { return all };
            last = piece["order"].as_str().unwrap().to_owned();
            all.extend(page.iter().cloned());
        }
    }

    /// Returns the log lines after `serving`, once the process has ended.
    pub(crate) fn rest_of_log(&self) -> String {
        self.log.lock().unwrap().iter().collect::<Vec<_>>().join("\n")
    }

    /// Waits for a log line that contains these words.
    pub(crate) async fn wait_for_log(&self, words: &str) {
        let started = Instant::now();
        while !self.log.lock().unwrap().try_iter().any(|line| line.contains(words)) {
            assert!(started.elapsed() < START_TIMEOUT, "{words:?} is not logged");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the greatest memory of the process so far in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Kills the process as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends the stop signal of a service manager, and waits for the process to end.
    pub(crate) fn terminate(&mut self) -> std::process::ExitStatus {
        self.send_stop_signal();
        self.child.wait().unwrap()
    }

    pub(crate) fn send_stop_signal(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines on a separate thread, so that the writer never blocks.
fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if line.contains(&init_token()) || line.contains(KEY) {
                // A panic would end only this thread.
                eprintln!("a secret stands in the log: {line}");
                std::process::abort();
            }
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// Returns a command's standard output.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns a command's standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Connects to a test's PostgreSQL database.
pub(crate) async fn client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Changes the test's database directly, without the server.
pub(crate) async fn execute(store: &TestStore, sql: &str) {
    match &store.url {
        DatabaseUrl::Sqlite(_) => {
            let path = data_dir(store).join("galley.db");
            rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
        }
        DatabaseUrl::Postgres(url) => client(url).await.batch_execute(sql).await.unwrap(),
    }
}

/// Writes a file, and creates its folders.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns the files of a folder with their texts, sorted by name.
pub(crate) fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Returns a piece's body with all required fields.
pub(crate) fn piece(group: &str, slug: &str, content: &str) -> Value {
    json!({
        "title": slug, "slug": slug, "tags": [], "members": [], "contentGroupId": group,
        "content": content,
    })
}
