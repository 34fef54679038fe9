//! Repeated kills while files are uploaded, in one request and in parts, rendered and deleted, in a
//! folder and in a bucket. No acknowledged asset is lost or torn, and no file stays without one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use galley_storage::{Affects, Error, WriteTx};
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{BucketServer, TestStore, on_both_engines};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use crate::program::{KEY, Program, data_dir, free_port, galley, init_token, open_database};

const CLIENTS: usize = 4;

/// The longest time without progress.
const TIMEOUT: Duration = Duration::from_mins(2);

/// An image, which bytes may follow.
const IMAGE: &[u8] = include_bytes!("../../../../docs/images/console-phone-list-light.png");

/// An asset whose creation was acknowledged.
struct StoredAsset {
    id: String,
    /// The path of its address.
    path: String,
    bytes: Vec<u8>,
    is_image: bool,
    is_deleted: bool,
}

/// The work that the clients share.
#[derive(Debug, Default)]
struct Work {
    stop: AtomicBool,
    completed: AtomicUsize,
    /// The uploads that continued after an interruption.
    resumed: AtomicUsize,
}

struct Uploader {
    client: Client,
    url: String,
    work: Arc<Work>,
}

impl Uploader {
    /// Uploads, renders and deletes files until `stop` is set.
    async fn run(self, client_number: usize) -> Vec<StoredAsset> {
        let mut stored: Vec<StoredAsset> = Vec::new();
        for number in 0.. {
            if self.work.stop.load(Ordering::Relaxed) {
                break;
            }
            let is_image = number % 4 == 0;
            let name = format!("c{client_number}-{number}");
            let mut bytes = if is_image { IMAGE.to_vec() } else { Vec::new() };
            let size = (number * 7_919 + client_number * 104_729) % 1_500_000;
            bytes.extend(name.bytes().cycle().take(size + name.len()));
            let id = match number % 2 {
                0 => self.upload(&name, &bytes).await,
                _ => self.upload_in_parts(&name, &bytes).await,
            };
            let shown = self.send(|| self.request(Method::GET, &format!("/assets?id={id}"))).await;
            let asset: Value = serde_json::from_slice(&shown.1).unwrap();
            // The server's port, and so its address, is the same after each kill.
            let path = asset["url"].as_str().unwrap().strip_prefix(&self.url).unwrap().to_owned();
            stored.push(StoredAsset { id, path, bytes, is_image, is_deleted: false });
            if number % 3 == 2 {
                let earlier = &mut stored[number / 2];
                if !earlier.is_deleted {
                    let path = format!("/assets?id={}", earlier.id);
                    self.send(|| self.request(Method::DELETE, &path)).await;
                    earlier.is_deleted = true;
                }
            }
            let image = stored.iter().rev().find(|asset| asset.is_image && !asset.is_deleted);
            if let Some(image) = image {
                let width = [320, 640, 960][number % 3];
                let path = format!("{}?w={width}", image.path);
                let rendered = self.send(|| self.request(Method::GET, &path)).await;
                assert!(rendered.1.starts_with(b"RIFF"), "{path} is no WebP");
            }
            self.work.completed.fetch_add(1, Ordering::Relaxed);
        }
        stored
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.bearer_auth(init_token())
    }

    /// Uploads a file in one request. Returns the id of the asset.
    async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        let request = || {
            let request = self.request(Method::POST, &format!("/assets?filename={name}"));
            request.header("idempotency-key", name).body(bytes.to_vec())
        };
        let (_, created) = self.send(request).await;
        id_of(&created)
    }

    /// Uploads a file in parts, and continues where an interruption has ended one.
    async fn upload_in_parts(&self, name: &str, bytes: &[u8]) -> String {
        let metadata = format!("filename {}", BASE64_STANDARD.encode(name));
        let tus = |method, path: &str| self.request(method, path).header("tus-resumable", "1.0.0");
        let create = || {
            let request = tus(Method::POST, "/assets/uploads");
            request.header("upload-length", bytes.len()).header("upload-metadata", &metadata)
        };
        let id = id_of(&self.send(create).await.1);
        let path = format!("/assets/uploads?id={id}");
        let (mut offset, started) = (0, Instant::now());
        while offset < bytes.len() {
            let end = (offset + 300_000).min(bytes.len());
            let part = tus(Method::PATCH, &path)
                .header("upload-offset", offset)
                .header("content-type", "application/offset+octet-stream")
                .body(bytes[offset..end].to_vec());
            if let Ok(response) = part.send().await {
                let status = response.status();
                if status == StatusCode::NO_CONTENT {
                    offset = offset_of(&response);
                    continue;
                }
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{:?}", response.text().await);
            }
            assert!(started.elapsed() < TIMEOUT, "the upload does not end");
            self.work.resumed.fetch_add(1, Ordering::Relaxed);
            let (headers, _) = self.send(|| tus(Method::HEAD, &path)).await;
            offset = headers["upload-offset"].to_str().unwrap().parse().unwrap();
        }
        id
    }

    /// Sends a request until there is a complete response. Only an earlier attempt may have deleted
    /// the asset.
    async fn send(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> (reqwest::header::HeaderMap, Vec<u8>) {
        let (started, mut is_repeated) = (Instant::now(), false);
        loop {
            assert!(started.elapsed() < TIMEOUT, "there is no response");
            let request = request().build().unwrap();
            let (method, url) = (request.method().clone(), request.url().clone());
            if let Ok(response) = self.client.execute(request).await {
                let (status, headers) = (response.status(), response.headers().clone());
                let is_gone =
                    is_repeated && method == Method::DELETE && status == StatusCode::NOT_FOUND;
                if status.is_success() || is_gone {
                    if let Ok(body) = response.bytes().await {
                        return (headers, body.into());
                    }
                } else {
                    let unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
                    assert!(unavailable, "{method} {url}: {status} {:?}", response.text().await);
                }
            }
            is_repeated = true;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn id_of(created: &[u8]) -> String {
    let created: Value = serde_json::from_slice(created).unwrap();
    created["id"].as_str().unwrap().to_owned()
}

fn offset_of(response: &Response) -> usize {
    response.headers()["upload-offset"].to_str().unwrap().parse().unwrap()
}

/// The place of the files.
enum FileStore {
    Folder(PathBuf),
    Bucket(BucketServer),
}

impl FileStore {
    fn serve(&self, store: &TestStore, port: u16) -> Program {
        let mut command = self.command(store);
        Program::start({
            command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
            command
        })
    }

    fn command(&self, store: &TestStore) -> Command {
        let mut command = galley(store);
        command.env("GALLEY_KEY", KEY).env("GALLEY_INIT_TOKEN", init_token());
        if let Self::Bucket(server) = self {
            let place = format!("s3://{}/a?endpoint={}", BucketServer::BUCKET, server.endpoint);
            command
                .env("GALLEY_ASSET_STORE_URL", format!("{place}&region=us-east-1"))
                .env("GALLEY_ASSET_STORE_ACCESS_KEY_ID", BucketServer::ACCESS_KEY_ID)
                .env("GALLEY_ASSET_STORE_SECRET_ACCESS_KEY", BucketServer::SECRET_ACCESS_KEY);
        }
        command
    }

    /// Returns the ids of all files, of which at least a part or a rendition is there.
    fn files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let top = match self {
            Self::Folder(folder) => folder.clone(),
            Self::Bucket(server) => server.objects(),
        };
        collect_files(&top, &mut found);
        found
    }
}

fn collect_files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect_files(&entry.path(), found);
        } else if let Some(name) = folder.file_name().and_then(|name| name.to_str())
            && name.starts_with("af_")
        {
            found.insert(name.to_owned());
        }
    }
}

/// Lets the files of interrupted uploads be due for their removal.
async fn let_leftovers_be_due(store: &TestStore) {
    let database = open_database(store).await;
    let update = async |tx: &WriteTx<'_>| {
        for sql in [
            "UPDATE asset_leftovers SET remove_at_ms = 0",
            "UPDATE asset_uploads SET expires_at_ms = 0",
        ] {
            tx.execute(sql, &[], Affects::Nothing).await?;
        }
        Ok(())
    };
    database.write::<_, Error, _>("test", update).await.unwrap();
    database.close().await;
}

async fn check(store: TestStore, files: FileStore, kind: &str) {
    let (kills, uploads): (u64, usize) = size((3, 8), (10, 10), (200, 15));
    let port = free_port();
    let mut program = files.serve(&store, port);
    let work = Arc::new(Work::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build();
            let (client, url, work) = (client.unwrap(), program.url.clone(), Arc::clone(&work));
            tokio::spawn(Uploader { client, url, work }.run(number))
        })
        .collect();
    for round in 0..kills {
        let (before, started) = (work.completed.load(Ordering::Relaxed), Instant::now());
        while work.completed.load(Ordering::Relaxed) < before + uploads {
            assert!(started.elapsed() < TIMEOUT, "clients get no answers");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(round * 7 % 40)).await;
        program.kill();
        program = files.serve(&store, port);
    }
    work.stop.store(true, Ordering::Relaxed);
    let mut stored = Vec::new();
    for client in clients {
        stored.extend(client.await.unwrap());
    }
    program.kill();
    let program = files.serve(&store, port);
    let mut kept = BTreeSet::new();
    for asset in &stored {
        let response = program.client.get(format!("{}{}", program.url, asset.path)).send().await;
        let response = response.unwrap();
        if asset.is_deleted {
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{}", asset.path);
        } else {
            assert_eq!(response.status(), StatusCode::OK, "{} is lost", asset.path);
            assert!(response.bytes().await.unwrap() == asset.bytes, "{} is torn", asset.path);
            kept.insert(asset.id.clone());
        }
    }
    // Each upload was repeated until its response, so another asset would be a duplicate.
    let mut listed = BTreeSet::new();
    let mut last = String::new();
    loop {
        let page = program.get(&format!("/assets/list?perPage=100&lastId={last}")).await;
        let ids = page.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        let ids: Vec<String> = ids.collect();
        let Some(newest) = ids.last() else { break };
        last.clone_from(newest);
        listed.extend(ids);
    }
    assert_eq!(listed, kept);
    let left = files.files().len() - kept.len();
    drop(program);
    let_leftovers_be_due(&store).await;
    let program = files.serve(&store, port);
    let (mut found, mut progress) = (files.files().len(), Instant::now());
    while found > kept.len() {
        assert!(progress.elapsed() < TIMEOUT, "{} files without an asset stay", found - kept.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = files.files().len();
        if now < found {
            (found, progress) = (now, Instant::now());
        }
    }
    assert_eq!(found, kept.len(), "an asset has lost its file");
    let mut command = files.command(&store);
    let output = command.args(["assets", "check", "--hashes"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && printed.contains("0 with problems"), "{output:?}");
    drop(program);
    let found = format!(
        "{} uploads answered, {} continued after an interruption, {} deletions; 0 lost, 0 torn; {left} \
         files of interrupted uploads and deletions removed",
        stored.len(),
        work.resumed.load(Ordering::Relaxed),
        stored.len() - kept.len()
    );
    eprintln!("{}, {kind}: {kills} kills, {found}", store.engine());
    report_figure(
        &format!("{}, {kind}: {kills} kills during uploads", store.engine()),
        found,
        "0 lost",
    );
}

#[on_both_engines]
async fn kills_lose_no_file_in_a_folder(store: TestStore) {
    let folder = data_dir(&store).join("assets");
    check(store, FileStore::Folder(folder), "folder").await;
}

#[on_both_engines]
async fn kills_lose_no_file_in_a_bucket(store: TestStore) {
    check(store, FileStore::Bucket(BucketServer::start().await), "bucket").await;
}
