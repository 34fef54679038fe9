//! Large and many uploads to a running server: constant memory, and no byte in the wrong place.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_domain::asset::FileHash;
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program::{KEY, Program, galley, init_token};

const MEBIBYTE: usize = 1024 * 1024;

/// The bytes by which the server's memory may grow during a transfer.
const GROWTH_LIMIT: u64 = 32 * 1024 * 1024;

/// The limit of the time for which an upload is repeated.
const TIMEOUT: Duration = Duration::from_mins(5);

fn serve(store: &TestStore) -> Program {
    let mut command: Command = galley(store);
    command.env("GALLEY_KEY", KEY).env("GALLEY_INIT_TOKEN", init_token());
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    Program::start(command)
}

/// Returns the bytes of a file at a multiple of a mebibyte. No two are equal.
fn block(number: usize, seed: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..MEBIBYTE).map(|at| ((at * 31 + at / 257 + seed) % 251).to_le_bytes()[0]).collect();
    bytes[..16].copy_from_slice(&[number.to_le_bytes(), seed.to_le_bytes()].concat());
    bytes
}

fn hexadecimal(hash: &[u8]) -> String {
    FileHash(hash.try_into().unwrap()).to_string()
}

async fn connect(program: &Program, head: &str) -> TcpStream {
    let address = program.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

/// Sends a file of so many mebibytes as a body, after so many other ones. Returns the response, and
/// the SHA-256 of the file.
async fn send(program: &Program, head: &str, before: usize, blocks: usize) -> (String, String) {
    let head = format!(
        "{head} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         prefer: return=representation\r\ntus-resumable: 1.0.0\r\nupload-offset: {}\r\n\
         content-type: application/offset+octet-stream\r\ncontent-length: {}\r\n\r\n",
        init_token(),
        before * MEBIBYTE,
        blocks * MEBIBYTE
    );
    let mut socket = connect(program, &head).await;
    let mut hash = Sha256::new();
    for number in 0..blocks {
        let block = block(number, 0);
        hash.update(&block);
        socket.write_all(&block).await.unwrap();
    }
    let mut response = String::new();
    socket.read_to_string(&mut response).await.unwrap();
    (response, hexadecimal(&hash.finalize()))
}

/// Returns the SHA-256 of a file as it is served.
async fn receive(program: &Program, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut socket = connect(program, &head).await;
    let (mut hash, mut buffer, mut head) = (Sha256::new(), vec![0; MEBIBYTE], Vec::new());
    loop {
        let read = socket.read(&mut buffer).await.unwrap();
        if read == 0 {
            return hexadecimal(&hash.finalize());
        }
        if head.ends_with(b"\r\n\r\n") {
            hash.update(&buffer[..read]);
            continue;
        }
        head.extend_from_slice(&buffer[..read]);
        let end = head.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        hash.update(&head[end..]);
        head.truncate(end);
    }
}

/// Begins a resumable upload of so many mebibytes. Returns its id.
async fn begin(program: &Program, blocks: usize) -> String {
    let create = program.request(Method::POST, "/assets/uploads").header("tus-resumable", "1.0.0");
    let create = create.header("upload-length", blocks * MEBIBYTE);
    let created = create.header("upload-metadata", "filename bGFyZ2UuYmlu").send().await.unwrap();
    let created: Value = created.json().await.unwrap();
    created["id"].as_str().unwrap().to_owned()
}

/// Uploads a file of so many mebibytes in one request and in parts, and reads it. Returns the peak
/// memory after each of the two.
async fn transfer(program: &Program, blocks: usize) -> [u64; 2] {
    let (response, hash) = send(program, "POST /assets?filename=large.bin", 0, blocks).await;
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    let asset: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{response}"));
    assert_eq!(asset["hash"], hash);
    let path = asset["url"].as_str().unwrap().strip_prefix(&program.url).unwrap();
    assert_eq!(receive(program, path).await, hash);
    let plain = program.peak_memory();
    let id = begin(program, blocks).await;
    let part = format!("PATCH /assets/uploads?id={id}");
    for (before, blocks) in [(0, 1), (1, blocks - 1)] {
        let (response, _) = send(program, &part, before, blocks).await;
        assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    }
    assert_eq!(program.get(&format!("/assets?id={id}")).await["size"], blocks * MEBIBYTE);
    [plain, program.peak_memory()]
}

#[on_both_engines]
async fn a_large_file_takes_little_memory(store: TestStore) {
    let blocks: usize = size(96, 192, 1_024);
    let program = serve(&store);
    // The first transfer loads the code.
    let [_, before] = transfer(&program, 2).await;
    let [plain, resumable] = transfer(&program, blocks).await.map(|peak| peak - before);
    assert!(plain <= GROWTH_LIMIT && resumable <= GROWTH_LIMIT, "{plain} {resumable} bytes");
    let found = format!("{} and {} MiB", plain / MEBIBYTE as u64, resumable / MEBIBYTE as u64);
    let title = format!("{}: growth of memory by {blocks} MiB up and down", store.engine());
    report_figure(&title, found, "32 MiB");
}

#[on_both_engines]
async fn many_uploads_at_once_are_stored_completely(store: TestStore) {
    let count: usize = size(100, 300, 1_000);
    let program = Arc::new(serve(&store));
    let client = Client::builder().no_proxy().timeout(Duration::from_mins(5)).build().unwrap();
    let mut uploads = tokio::task::JoinSet::new();
    for number in 0..count {
        let url = format!("{}/assets?filename=f{number}.bin", program.url);
        let request = client.post(url).bearer_auth(init_token());
        uploads.spawn(async move {
            let bytes = block(number, number);
            let hash = hexadecimal(&Sha256::digest(&bytes));
            let request = request.header("prefer", "return=representation").body(bytes);
            let started = Instant::now();
            let response = loop {
                let response = request.try_clone().unwrap().send().await.unwrap();
                // On a busy machine, some wait for their turn for more than a minute.
                if response.status() != StatusCode::SERVICE_UNAVAILABLE {
                    break response;
                }
                assert!(response.headers().contains_key("retry-after"), "{response:?}");
                assert!(started.elapsed() < TIMEOUT, "the server stays overloaded");
                tokio::time::sleep(Duration::from_secs(1)).await;
            };
            assert_eq!(response.status(), StatusCode::CREATED, "{:?}", response.text().await);
            let asset: Value = response.json().await.unwrap();
            assert_eq!(asset["hash"], hash);
            (asset["url"].as_str().unwrap().to_owned(), hash)
        });
    }
    let mut stored = 0;
    for (url, hash) in uploads.join_all().await {
        let response = program.client.get(url).send().await.unwrap();
        assert_eq!(hexadecimal(&Sha256::digest(response.bytes().await.unwrap())), hash);
        stored += 1;
    }
    let title = format!("{}: parallel uploads of 1 MiB", store.engine());
    report_figure(&title, format!("{stored} of {count} complete"), "all");
}
