//! Measures `galley import`, through a running server and directly, and its effect on concurrent
//! readers.
//!
//! ```sh
//! cargo bench -p galley --bench import [POSTS]
//! ```
//!
//! The yardstick is a plain loop of POSTs of the same posts by 8 clients, in the same run and with
//! the same readers.

#![allow(
    clippy::unwrap_used,
    clippy::assigning_clones,
    reason = "a benchmark ends where something is not as it expects"
)]

#[path = "../tests/it/program.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod program;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galley_testing::TestStore;
use galley_testing::open_loop::{CLIENTS, OpenLoopClient, per_second};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use program::{Program, free_port, galley, init_token, stdout, write};

/// The duration of reads without any import.
const IDLE: Duration = Duration::from_secs(8);

/// The number of pieces that the readers read.
const READ: usize = 200;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|name| !name.starts_with('-'));
    let posts = arguments.next().map_or(10_000, |count| count.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&TestStore::sqlite(), posts));
}

async fn measure(store: &TestStore, posts: usize) {
    let folder = store.directory().join("blog");
    for number in 0..posts {
        write(&folder.join(format!("{number:05}.md")), post_as_markdown(number));
    }
    let program = Program::serve(store, free_port());
    let reader = reader(&program).await;
    let peak = reader.peak();
    let rate = peak * 0.3;
    println!(
        "reads: {peak:.0}/s by {CLIENTS} clients in a closed loop; {rate:.0}/s in an open one:"
    );
    for round in ["first", "second", "third"] {
        let idle = reader.measure_during(rate, tokio::time::sleep(IDLE)).await.1;
        println!("  nothing else: {idle}");
        let (loop_rate, beside) = reader.measure_during(rate, plain_loop(&program, posts)).await;
        println!(
            "  beside a plain loop of {posts} POSTs by {CLIENTS} clients, {loop_rate:.0}/s: {beside}"
        );
        for how in [ImportPath::ByUrl, ImportPath::Directly] {
            let group = format!("{round} {how:?}");
            let made =
                program.request(Method::POST, "/content-groups").json(&json!({"name": group}));
            assert!(made.send().await.unwrap().status().is_success());
            let import = import(store, &program, &folder, &group, how);
            let ((import_rate, peak_kib), beside) = reader.measure_during(rate, import).await;
            let times = beside.p99.as_secs_f64() / idle.p99.as_secs_f64();
            println!(
                "  beside an import {how:?}, {import_rate:.0}/s = {:.2} of the loop, {peak_kib} KiB: {beside}, {times:.1} times",
                import_rate / loop_rate,
            );
        }
    }
    let few = store.directory().join("few");
    for number in 0..posts / 10 {
        write(&few.join(format!("{number:05}.md")), post_as_markdown(number));
    }
    for how in [ImportPath::ByUrl, ImportPath::Directly] {
        let (_, kib) = import(store, &program, &few, "Posts", how).await;
        println!("memory of an import of {}, {how:?}: {kib} KiB", posts / 10);
    }
}

/// The path of an import: through the server, or directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImportPath {
    ByUrl,
    Directly,
}

fn text(number: usize) -> String {
    format!("Post {number} is about *something* with `code` and a [link](https://example.org/{number}). ").repeat(15)
}

fn post_as_markdown(number: usize) -> String {
    let (tag, text) = (number % 20, text(number));
    format!(
        "---\ntitle: Post {number}\ndate: 2024-05-06\ntags: [t{tag}]\n---\n## About\n\n{text}\n\n{text}\n\n- one\n- two\n"
    )
}

fn post_as_json(group: &str, tags: &[Value], number: usize) -> Value {
    let paragraph = text(number)
        .replace("*something*", "<em>something</em>")
        .replace("`code`", "<code>code</code>");
    json!({
        "title": format!("Post {number}"), "slug": format!("{number:05}"), "date": "2024-05-06",
        "contentGroupId": group, "tags": [tags[number % tags.len()]], "members": [], "filename": format!("{number}.html"),
        "content": format!("<h2>About</h2><p>{paragraph}</p><p>{paragraph}</p><ul><li><p>one</p></li><li><p>two</p></li></ul>"),
    })
}

async fn plain_loop(program: &Program, posts: usize) -> f64 {
    let group = program.group().await;
    let mut tags = Vec::new();
    for number in 0..20 {
        let label = json!({"label": format!("x{number}")});
        let made = program.request(Method::POST, "/tags").json(&label).send().await.unwrap();
        tags.push(made.json::<Value>().await.unwrap()["id"].clone());
    }
    let bodies: Vec<String> =
        (0..posts).map(|number| post_as_json(&group, &tags, number).to_string()).collect();
    let (bodies, next) = (Arc::new(bodies), Arc::new(AtomicUsize::new(0)));
    let url = format!("{}/content-pieces", program.url);
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (bodies, next, url) = (Arc::clone(&bodies), Arc::clone(&next), url.clone());
        clients.spawn(async move {
            let client = Client::new();
            while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
                let request = client.post(&url).bearer_auth(init_token());
                let request = request.header("content-type", "application/json").body(body.clone());
                assert_eq!(request.send().await.unwrap().status(), 201);
            }
        });
    }
    clients.join_all().await;
    per_second(posts, started.elapsed())
}

/// Runs an import. Returns its rate and its peak memory.
async fn import(
    store: &TestStore,
    program: &Program,
    folder: &Path,
    group: &str,
    how: ImportPath,
) -> (f64, u64) {
    let started = Instant::now();
    let mut command = galley(store);
    command.args(["import", "--group", group]);
    if how == ImportPath::ByUrl {
        command.args(["--url", &program.url, "--token", &init_token()]);
    }
    let mut child = command.arg(folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(resident_kib(child.id()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let time = started.elapsed();
    let output = child.wait_with_output().unwrap();
    let said = stdout(&output);
    let count = said.split_whitespace().next().unwrap().parse().unwrap();
    assert!(output.status.success(), "{output:?}");
    (per_second(count, time), most)
}

fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Reads pieces by id.
async fn reader(program: &Program) -> OpenLoopClient {
    let group = program.group().await;
    let address = program.url.trim_start_matches("http://").to_owned();
    let tag = program.request(Method::POST, "/tags").json(&json!({"label": "read"}));
    let tag = tag.send().await.unwrap().json::<Value>().await.unwrap()["id"].clone();
    let mut requests = Vec::new();
    for number in 0..READ {
        let body = post_as_json(&group, std::slice::from_ref(&tag), number);
        let made = program.request(Method::POST, "/content-pieces").json(&body);
        let made: Value = made.send().await.unwrap().json().await.unwrap();
        let (id, token) = (made["id"].as_str().unwrap(), init_token());
        let request = format!(
            "GET /content-pieces?id={id}&content=true HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        requests.push(request.into_bytes());
    }
    OpenLoopClient::new(address, requests)
}
