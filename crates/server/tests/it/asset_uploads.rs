//! Resumable uploads by tus 1.0: parts, interruptions, concurrent requests, limits and expiry.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use galley_application::AssetSettings;
use galley_assets::{AssetStore, StoreLocation};
use galley_domain::Timestamp;
use galley_server::ServerLimits;
use galley_storage::{asset_uploads, assets};
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::assets::{fetch, files_in, url};
use crate::service::{Service, TestResponse};

const PATH: &str = "/assets/uploads";

/// Returns bytes that no part of equals another.
fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|number| (number / 251 + number) as u8).collect()
}

fn request(service: &Service, method: Method, path: &str) -> RequestBuilder {
    let request = service.request(method, path).bearer_auth(&service.home.token);
    request.header("tus-resumable", "1.0.0")
}

fn metadata(pairs: &[(&str, &str)]) -> String {
    let pairs =
        pairs.iter().map(|(name, value)| format!("{name} {}", BASE64_STANDARD.encode(value)));
    pairs.collect::<Vec<_>>().join(",")
}

/// Returns a request that begins an upload.
fn creation(service: &Service, size: usize) -> RequestBuilder {
    request(service, Method::POST, PATH)
        .header("upload-length", size)
        .header("upload-metadata", metadata(&[("filename", "film.bin"), ("alt", "A f\u{ef}lm")]))
}

/// Begins an upload. Returns its id.
async fn begin(service: &Service, size: usize) -> String {
    let created = TestResponse::of(creation(service, size)).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.header("tus-resumable"), "1.0.0");
    assert_eq!(created.header("upload-offset"), "0");
    assert!(created.header("upload-expires").ends_with(" GMT"), "{created:?}");
    let id = created.id();
    assert_eq!(created.header("location"), format!("{PATH}?id={id}"));
    id
}

fn part(service: &Service, id: &str, offset: usize, bytes: &[u8]) -> RequestBuilder {
    request(service, Method::PATCH, &format!("{PATH}?id={id}"))
        .header("upload-offset", offset)
        .header("content-type", "application/offset+octet-stream")
        .body(bytes.to_vec())
}

/// Sends a part. Returns the new position.
async fn send(service: &Service, id: &str, offset: usize, bytes: &[u8]) -> String {
    let sent = TestResponse::of(part(service, id, offset, bytes)).await;
    assert_eq!(sent.status, 204, "{sent:?}");
    sent.header("upload-offset").to_owned()
}

async fn state(service: &Service, id: &str) -> TestResponse {
    TestResponse::of(request(service, Method::HEAD, &format!("{PATH}?id={id}"))).await
}

/// Returns the state of an upload. A request that appends to it goes on.
async fn progress(service: &Service, id: &str) -> TestResponse {
    TestResponse::of(request(service, Method::GET, &format!("{PATH}?id={id}"))).await
}

/// Waits until an upload has this position, after a request whose response nothing receives.
async fn reaches(service: &Service, id: &str, offset: usize) -> bool {
    for _ in 0..500 {
        let known = progress(service, id).await;
        if known.header("upload-offset") == offset.to_string() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

/// Checks that the asset of an upload has these bytes, and that the store has no other file.
async fn assert_stored(service: &Service, id: &str, bytes: &[u8]) {
    let asset = service.get(&format!("/assets?id={id}")).await.body;
    assert_eq!(asset["size"], bytes.len(), "{asset}");
    assert_eq!(fetch(service, url(&asset)).await.bytes().await.unwrap(), bytes);
    for _ in 0..500 {
        if files_in(service.files.path()) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(files_in(service.files.path()), 1);
}

/// Connects, and sends the headers of a part to the end of the file.
async fn begin_part(service: &Service, id: &str, offset: usize, size: usize) -> TcpStream {
    let address = service.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "PATCH {PATH}?id={id} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         tus-resumable: 1.0.0\r\nupload-offset: {offset}\r\n\
         content-type: application/offset+octet-stream\r\ncontent-length: {}\r\n\r\n",
        service.home.token,
        size - offset
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

#[on_both_engines]
async fn an_interrupted_upload_continues_with_the_bytes_that_arrived(store: TestStore) {
    let service = Service::start(store).await;
    let whole = bytes(20_000_000);
    let id = begin(&service, whole.len()).await;
    assert_eq!(service.get(&format!("/assets?id={id}")).await.status, 404);
    assert_eq!(send(&service, &id, 0, &whole[..1_000]).await, "1000");
    // The connection ends within the body.
    let mut socket = begin_part(&service, &id, 1_000, whole.len()).await;
    socket.write_all(&whole[1_000..9_000_000]).await.unwrap();
    socket.shutdown().await.unwrap();
    assert!(reaches(&service, &id, 9_000_000).await, "{:?}", state(&service, &id).await);
    drop(socket);

    let known = state(&service, &id).await;
    assert_eq!(
        (known.header("upload-length"), known.header("cache-control")),
        ("20000000", "no-store")
    );
    let described = metadata(&[("filename", "film.bin"), ("alt", "A f\u{ef}lm")]);
    assert_eq!(known.header("upload-metadata"), described);
    // A proxy may reject PATCH.
    let rest = request(&service, Method::POST, &format!("{PATH}?id={id}"))
        .header("x-http-method-override", "PATCH")
        .header("upload-offset", 9_000_000)
        .header("content-type", "application/offset+octet-stream");
    let sent = rest.body(whole[9_000_000..].to_vec()).send().await.unwrap();
    assert_eq!(
        (sent.status(), &sent.headers()["upload-offset"]),
        (204.try_into().unwrap(), &"20000000".parse().unwrap())
    );

    assert_stored(&service, &id, &whole).await;
    let asset = service.get(&format!("/assets?id={id}")).await.body;
    assert_eq!((&asset["filename"], &asset["alt"]), (&json!("film.bin"), &json!("A f\u{ef}lm")));
    let events = service.events_after(0).await;
    let added: Vec<_> = events.iter().filter(|event| event.event_type == "assetAdded").collect();
    let [added] = added[..] else { panic!("{events:?}") };
    assert_eq!(serde_json::from_str::<Value>(&added.data).unwrap(), asset);
    // The client may not have received the last response.
    let ended = state(&service, &id).await;
    assert_eq!(
        (ended.header("upload-offset"), ended.header("upload-length")),
        ("20000000", "20000000")
    );
    assert_eq!(send(&service, &id, 20_000_000, b"").await, "20000000");
    let delete = request(&service, Method::DELETE, &format!("{PATH}?id={id}"));
    TestResponse::of(delete).await.assert_problem(409, "upload_offset_mismatch", &[]);
    assert_eq!(service.get("/assets/list").await.body.as_array().unwrap().len(), 1);
}

#[on_both_engines]
async fn wrong_requests_change_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let id = begin(&service, 10).await;
    assert_eq!(send(&service, &id, 0, b"abc").await, "3");
    let of = |method: Method, id: &str| request(&service, method, &format!("{PATH}?id={id}"));
    let metadata_of = |pairs: &[(&str, &str)]| {
        request(&service, Method::POST, PATH)
            .header("upload-length", 1)
            .header("upload-metadata", metadata(pairs))
    };
    let raw_metadata = |text: &str| {
        request(&service, Method::POST, PATH)
            .header("upload-length", 1)
            .header("upload-metadata", text)
    };
    let absent = "ast_00000000000000000000000000";
    let typed = |request: RequestBuilder, kind: &str| request.header("content-type", kind);
    let stream = "application/offset+octet-stream";
    for (request, status, reason, fields) in [
        (part(&service, &id, 2, b"c"), 409, "upload_offset_mismatch", vec![]),
        (part(&service, &id, 4, b"e"), 409, "upload_offset_mismatch", vec![]),
        (part(&service, &id, 3, b"defghijk"), 413, "payload_too_large", vec![]),
        (part(&service, absent, 0, b"a"), 404, "not_found", vec![]),
        (typed(of(Method::PATCH, &id), stream).body("d"), 400, "validation", vec!["Upload-Offset"]),
        (
            typed(of(Method::PATCH, &id), stream).header("upload-offset", "-3").body("d"),
            400,
            "validation",
            vec!["Upload-Offset"],
        ),
        (
            typed(of(Method::PATCH, &id), "image/png").header("upload-offset", 3).body("d"),
            415,
            "unsupported_media_type",
            vec![],
        ),
        (of(Method::DELETE, absent), 404, "not_found", vec![]),
        (request(&service, Method::POST, PATH), 400, "validation", vec!["Upload-Length"]),
        (creation(&service, 2).header("upload-concat", "partial"), 400, "validation", vec![]),
        (
            typed(creation(&service, 2), "image/png").body("ab"),
            415,
            "unsupported_media_type",
            vec![],
        ),
        (typed(creation(&service, 2), stream).body("abc"), 413, "payload_too_large", vec![]),
        (typed(creation(&service, 0), stream).body("a"), 413, "payload_too_large", vec![]),
        (creation(&service, usize::MAX >> 1), 413, "payload_too_large", vec![]),
        (metadata_of(&[("alt", "x")]), 400, "validation", vec!["Upload-Metadata.filename"]),
        (metadata_of(&[("filename", "a/b")]), 400, "validation", vec!["Upload-Metadata.filename"]),
        (
            metadata_of(&[("filename", "a"), ("contentGroupId", "cg_00000000000000000000000000")]),
            400,
            "unknown_reference",
            vec!["Upload-Metadata.contentGroupId"],
        ),
        (raw_metadata("filename \u{e9}"), 400, "validation", vec!["Upload-Metadata"]),
        (raw_metadata("filename ?"), 400, "validation", vec!["Upload-Metadata"]),
        (raw_metadata(&"x ,".repeat(3_000)), 400, "validation", vec!["Upload-Metadata"]),
    ] {
        let answer = TestResponse::of(request).await;
        answer.assert_problem(status, reason, &fields);
        assert_eq!(answer.header("tus-resumable"), "1.0.0");
    }
    for version in [None, Some("0.2.2")] {
        let mut request = service.request(Method::POST, PATH).bearer_auth(&service.home.token);
        if let Some(version) = version {
            request = request.header("tus-resumable", version);
        }
        let answer = TestResponse::of(request).await;
        answer.assert_problem(412, "unsupported_protocol", &[]);
        assert_eq!(answer.header("tus-version"), "1.0.0");
    }
    assert_eq!(state(&service, &id).await.header("upload-offset"), "3");
    assert_eq!(send(&service, &id, 3, b"defghij").await, "10");
    assert_stored(&service, &id, b"abcdefghij").await;
    assert_eq!(service.get("/assets/list").await.body.as_array().unwrap().len(), 1);
}

#[on_both_engines]
async fn concurrent_requests_of_one_position_store_one_part(store: TestStore) {
    let service = Service::start(store).await;
    let whole = bytes(1_000_000);
    let second = service.start_second_server().await;
    let id = begin(&service, whole.len()).await;
    let mut offset = 0;
    while offset < whole.len() {
        let end = offset + 250_000;
        let tries = (0..6).map(|number| {
            let request = part(&service, &id, offset, &whole[offset..end]);
            let request = match second.as_ref().filter(|_| number % 2 == 1) {
                Some(url) => {
                    let (client, request) = request.build_split();
                    let mut request = request.unwrap();
                    *request.url_mut() = format!("{url}{PATH}?id={id}").parse().unwrap();
                    RequestBuilder::from_parts(client, request)
                }
                None => request,
            };
            TestResponse::of(request)
        });
        let sent = futures_util::future::join_all(tries).await;
        let stored = sent.iter().filter(|answer| answer.status == 204).count();
        let is_last = end == whole.len();
        assert!(stored == 1 || is_last && stored > 0, "{sent:?}");
        for rejected in sent.iter().filter(|answer| answer.status != 204) {
            rejected.assert_problem(409, "upload_offset_mismatch", &[]);
        }
        offset = end;
    }
    assert_stored(&service, &id, &whole).await;
    let events = service.events_after(0).await;
    assert_eq!(events.iter().filter(|event| event.event_type == "assetAdded").count(), 1);
}

#[on_both_engines]
async fn a_client_continues_before_the_server_notices_the_lost_connection(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let whole = bytes(3_000_000);
    let id = begin(&service, whole.len()).await;
    let path = format!("{PATH}?id={id}");
    // The connection stays open, but brings no more bytes.
    let mut lost = begin_part(&service, &id, 0, whole.len()).await;
    lost.write_all(&whole[..1_000_000]).await.unwrap();
    wait_for_leftovers(&service, 1).await;
    // Progress is read, and another workspace asks: the request goes on.
    assert_eq!(progress(&service, &id).await.header("upload-offset"), "0");
    let foreign = service.request(Method::HEAD, &path).bearer_auth(&other.token);
    let foreign = TestResponse::of(foreign.header("tus-resumable", "1.0.0")).await;
    assert_eq!(foreign.status, 404);
    lost.write_all(&whole[1_000_000..2_000_000]).await.unwrap();
    // Some of the bytes may not have been received yet.
    let offset: usize = state(&service, &id).await.header("upload-offset").parse().unwrap();
    assert!(offset > 0 && offset <= 2_000_000, "{offset}");
    let mut answer = String::new();
    lost.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert!(answer.contains(&format!("upload-offset: {offset}")), "{answer}");
    assert_eq!(send(&service, &id, offset, &whole[offset..]).await, "3000000");
    assert_stored(&service, &id, &whole).await;

    // A deletion ends a request, too.
    let id = begin(&service, whole.len()).await;
    let mut lost = begin_part(&service, &id, 0, whole.len()).await;
    lost.write_all(&whole[..1_000_000]).await.unwrap();
    wait_for_leftovers(&service, 1).await;
    let delete = request(&service, Method::DELETE, &format!("{PATH}?id={id}"));
    assert_eq!(TestResponse::of(delete).await.status, 204);
    assert_eq!(state(&service, &id).await.status, 404);
    wait_for_leftovers(&service, 0).await;
    assert_eq!(files_in(service.files.path()), 1);
}

/// Waits until the store has this number of files without an asset.
async fn wait_for_leftovers(service: &Service, count: usize) {
    let mut found = usize::MAX;
    for _ in 0..500 {
        let late = Timestamp::from_ms(i64::MAX);
        found = service.read(async move |tx| assets::due_leftovers(tx, late, 9).await).await.len();
        if found == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(found, count);
}

#[on_both_engines]
async fn small_files_are_sent_with_the_creation(store: TestStore) {
    let service = Service::start(store).await;
    let properties = service.request(Method::OPTIONS, PATH).send().await.unwrap();
    assert_eq!(properties.headers()["tus-version"], "1.0.0");
    let extensions = properties.headers()["tus-extension"].to_str().unwrap();
    assert_eq!(extensions, "creation,creation-with-upload,expiration,termination");
    assert_eq!(properties.headers()["tus-max-size"], "1073741824");

    let with_file = creation(&service, 6).header("content-type", "application/offset+octet-stream");
    let created = TestResponse::of(with_file.body("abcdef")).await;
    assert_eq!((created.status.as_u16(), created.header("upload-offset")), (201, "6"));
    assert_stored(&service, &created.id(), b"abcdef").await;
    assert_eq!(service.delete(&format!("/assets?id={}", created.id())).await.status, 204);

    let with_part = creation(&service, 6).header("content-type", "application/offset+octet-stream");
    let created = TestResponse::of(with_part.body("abc")).await;
    assert_eq!((created.status.as_u16(), created.header("upload-offset")), (201, "3"));
    assert_eq!(send(&service, &created.id(), 3, b"def").await, "6");
    assert_stored(&service, &created.id(), b"abcdef").await;
    assert_eq!(service.delete(&format!("/assets?id={}", created.id())).await.status, 204);

    let empty = TestResponse::of(creation(&service, 0)).await;
    assert_eq!((empty.status.as_u16(), empty.header("upload-offset")), (201, "0"));
    assert_stored(&service, &empty.id(), b"").await;
}

#[on_both_engines]
async fn uploads_end_by_deletion_expiry_and_the_loss_of_their_parts(store: TestStore) {
    let service = Service::start(store).await;
    let deleted = begin(&service, 10).await;
    send(&service, &deleted, 0, b"abc").await;
    assert_eq!(files_in(service.files.path()), 1);
    let delete = request(&service, Method::DELETE, &format!("{PATH}?id={deleted}"));
    assert_eq!(TestResponse::of(delete).await.status, 204);
    assert_eq!(
        (state(&service, &deleted).await.status.as_u16(), files_in(service.files.path())),
        (404, 0)
    );

    // A restored database has uploads whose parts its store lacks.
    let lost = begin(&service, 6).await;
    send(&service, &lost, 0, b"abc").await;
    std::fs::remove_dir_all(service.files.path().join(service.home.made.workspace.to_string()))
        .unwrap();
    let last = TestResponse::of(part(&service, &lost, 3, b"def")).await;
    last.assert_problem(404, "not_found", &[]);
    assert_eq!(state(&service, &lost).await.status, 404);

    let expired = begin(&service, 10).await;
    send(&service, &expired, 0, b"abc").await;
    service.advance_clock(Duration::from_hours(7 * 24));
    let later = begin(&service, 10).await;
    assert_eq!(state(&service, &expired).await.status, 404);
    let rest = TestResponse::of(part(&service, &expired, 3, b"def")).await;
    rest.assert_problem(404, "not_found", &[]);
    // A server removes expired uploads at its start.
    let location = StoreLocation::Folder(service.files.path().to_owned());
    let assets =
        AssetSettings { store: AssetStore::open(&location).unwrap(), ..AssetSettings::default() };
    service.serve_again(ServerLimits { assets, ..ServerLimits::default() }).await;
    let workspace = service.home.made.workspace;
    for _ in 0..500 {
        let count =
            service.read(async move |tx| asset_uploads::count(tx, workspace, 9).await).await;
        if count == (1, 10) && files_in(service.files.path()) == 0 {
            assert_eq!(state(&service, &later).await.header("upload-offset"), "0");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} files are left", files_in(service.files.path()));
}

#[on_both_engines]
async fn uploads_reserve_their_size(store: TestStore) {
    let assets = AssetSettings { workspace_limit: Some(1_000), ..AssetSettings::default() };
    let service =
        Service::start_with(store, ServerLimits { assets, ..ServerLimits::default() }).await;
    let first = begin(&service, 600).await;
    let second = TestResponse::of(creation(&service, 600)).await;
    second.assert_problem(413, "asset_storage_exceeded", &[]);
    assert_eq!(send(&service, &first, 0, &bytes(600)).await, "600");
    let second = TestResponse::of(creation(&service, 600)).await;
    second.assert_problem(413, "asset_storage_exceeded", &[]);
    begin(&service, 400).await;
}
