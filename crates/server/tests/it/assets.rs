//! Assets: uploads, their public addresses, renditions, uses by pieces, and limits.

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use galley_application::AssetSettings;
use galley_assets::{AssetStore, StoreLocation};
use galley_domain::{AssetFileId, Timestamp};
use galley_server::ServerLimits;
use galley_storage::{WriteTx, assets};
use galley_testing::{TestStore, on_both_engines};
use image::{DynamicImage, ImageFormat, RgbImage};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::service::{ALL, SITE, Service, TestResponse, TokenKind};

/// Uploads a file by itself.
async fn upload(service: &Service, query: &str, bytes: impl Into<Vec<u8>>) -> TestResponse {
    upload_as(service, &service.home.token, query, bytes).await
}

async fn upload_as(
    service: &Service,
    token: &str,
    query: &str,
    bytes: impl Into<Vec<u8>>,
) -> TestResponse {
    let request = service.request(Method::POST, &format!("/assets?{query}")).bearer_auth(token);
    TestResponse::of(request.body(bytes.into())).await
}

/// Uploads a file, and returns the asset.
async fn asset(service: &Service, query: &str, bytes: impl Into<Vec<u8>>) -> Value {
    let created = upload(service, query, bytes).await;
    assert_eq!(created.status, 201, "{created:?}");
    service.get(&format!("/assets?id={}", created.id())).await.body
}

/// Requests a public address, without a token.
pub(crate) async fn fetch(service: &Service, url: &str) -> Response {
    fetch_with(service, url, &[]).await
}

async fn fetch_with(service: &Service, url: &str, headers: &[(&str, &str)]) -> Response {
    let path = url.strip_prefix(&service.url).expect("the address is below that of the service");
    let request = service.request(Method::GET, path);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap()
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

pub(crate) fn url(asset: &Value) -> &str {
    asset["url"].as_str().unwrap()
}

fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let image =
        RgbImage::from_fn(width, height, |x, y| image::Rgb([(x % 256) as u8, (y % 256) as u8, 90]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(image).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Returns the number of files below a folder, with the parts of unfinished ones.
pub(crate) fn files_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    entries.map(|entry| if entry.path().is_dir() { files_in(&entry.path()) } else { 1 }).sum()
}

#[on_both_engines]
async fn a_file_is_read_at_its_public_address_as_it_was_uploaded(store: TestStore) {
    let service = Service::start(store).await;
    let bytes = encoded(300, 200, ImageFormat::Jpeg);
    let asset = asset(&service, "filename=My%20photo.jpg&alt=A%20photo", bytes.clone()).await;
    let sha256 = Sha256::digest(&bytes);
    let hash: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    let shown = [
        ("filename", json!("My photo.jpg")),
        ("contentType", json!("image/jpeg")),
        ("size", json!(bytes.len())),
        ("width", json!(300)),
        ("height", json!(200)),
        ("hash", json!(hash)),
        ("alt", json!("A photo")),
        ("contentGroupId", Value::Null),
    ];
    for (name, value) in shown {
        assert_eq!(asset[name], value, "{name}");
    }
    assert!(asset["placeholder"].as_str().unwrap().len() > 10, "{asset}");
    assert!(url(&asset).ends_with("/My%20photo.jpg"), "{asset}");
    let response = fetch(&service, url(&asset)).await;
    assert_eq!(response.status(), 200);
    for (name, value) in [
        ("content-type", "image/jpeg"),
        ("cache-control", "public, max-age=31536000, immutable"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
        ("access-control-allow-origin", "*"),
        ("content-disposition", "inline; filename*=UTF-8''My%20photo%2Ejpg"),
        ("content-length", &bytes.len().to_string()),
        ("repr-digest", &format!("sha-256=:{}:", BASE64_STANDARD.encode(sha256))),
    ] {
        assert_eq!(header(&response, name), value, "{name}");
    }
    let tag = header(&response, "etag").to_owned();
    assert_eq!(response.bytes().await.unwrap(), bytes);
    let known = fetch_with(&service, url(&asset), &[("if-none-match", &tag)]).await;
    assert_eq!((known.status(), header(&known, "etag")), (StatusCode::NOT_MODIFIED, &*tag));
    // The name in the address has no effect.
    let (base, _) = url(&asset).rsplit_once('/').unwrap();
    assert_eq!(fetch(&service, &format!("{base}/other")).await.status(), 200);
    let head = service.request(Method::HEAD, url(&asset).strip_prefix(&service.url).unwrap());
    let head = head.send().await.unwrap();
    assert_eq!(header(&head, "content-length"), bytes.len().to_string());
    let events = service.events_after(0).await;
    let added = events.iter().find(|event| event.event_type == "assetAdded").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&added.data).unwrap(), asset);
}

#[on_both_engines]
async fn forms_and_headers_name_the_file(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.home.group.clone();
    let form = |parts: &[(&str, &str)]| {
        let mut body = String::new();
        for (disposition, text) in parts {
            body += &format!(
                "--xyz\r\ncontent-disposition: form-data; {disposition}\r\n\r\n{text}\r\n"
            );
        }
        body + "--xyz--\r\n"
    };
    let send = async |query: &str, body: String| {
        let request = service.request(Method::POST, &format!("/assets{query}"));
        let request = request.bearer_auth(&service.home.token);
        let request = request.header("content-type", "multipart/form-data; boundary=xyz");
        TestResponse::of(request.header("prefer", "return=representation").body(body)).await
    };
    let group_part = ("name=\"contentGroupId\"", group.as_str());
    let file = ("name=\"file\"; filename=\"a.txt\"", "The text");
    let made = send("", form(&[group_part, file, ("name=\"alt\"", "Alternative")])).await;
    assert_eq!(made.status, 201, "{made:?}");
    let shown = ["filename", "alt", "contentGroupId"].map(|name| made.body[name].clone());
    assert_eq!(shown, [json!("a.txt"), json!("Alternative"), json!(group)]);
    assert_eq!(made.body["contentType"], "text/plain;charset=utf-8");
    assert_eq!(made.header("location"), format!("/assets?id={}", made.id()));
    let text = fetch(&service, url(&made.body)).await;
    assert_eq!(header(&text, "content-disposition"), "attachment; filename*=UTF-8''a%2Etxt");
    assert_eq!(text.text().await.unwrap(), "The text");
    let other = ("name=\"title\"", "An unknown part is ignored");
    let named = send("?filename=b.txt", form(&[other, file])).await;
    assert_eq!(named.body["filename"], "b.txt", "the query names it");
    for (body, path) in [
        (form(&[("name=\"alt\"", "x")]), "filename"),
        (form(&[("name=\"alt\"", "x"), ("name=\"filename\"", "x")]), "file"),
        (form(&[file, file]), "file"),
        (form(&[file, ("name=\"contentGroupId\"", "cg_1")]), "contentGroupId"),
        (form(&[file, ("name=\"filename\"", "../x")]), "filename"),
        (form(&[("name=\"alt\"", &"x".repeat(20_000)), file]), "alt"),
    ] {
        let rejected = send("", body).await;
        assert_eq!(rejected.status, 400, "{rejected:?}");
        assert_eq!(rejected.body["issues"][0]["path"], json!([path]), "{rejected:?}");
    }
    let cut = form(&[file]).replace("--xyz--", "");
    send("", cut).await.assert_problem(400, "malformed_body", &[]);
    let request = service.request(Method::POST, "/assets").bearer_auth(&service.home.token);
    let request = request.header("content-disposition", "attachment; filename=\"c; d.txt\"");
    let raw = TestResponse::of(request.body("raw")).await;
    let found = service.get(&format!("/assets?id={}", raw.id())).await;
    assert_eq!(found.body["filename"], "c; d.txt");
    assert_eq!(files_in(service.files.path()), 2, "the rejected files are removed");
}

#[on_both_engines]
async fn a_file_in_memory_has_the_headers_of_the_one_in_the_store(store: TestStore) {
    let service = Service::start(store).await;
    let bytes = encoded(300, 200, ImageFormat::Jpeg);
    let asset = asset(&service, "filename=photo.jpg", bytes.clone()).await;
    let read = async |more: &[(&str, &str)]| {
        let response = fetch_with(&service, url(&asset), more).await;
        let mut headers = response.headers().clone();
        assert!(headers.remove("x-request-id").is_some() && headers.remove("date").is_some());
        (response.status(), headers, response.bytes().await.unwrap())
    };
    let first = read(&[("accept-encoding", "gzip, br")]).await;
    for _ in 0..3 {
        assert_eq!(read(&[("accept-encoding", "gzip, br")]).await, first);
    }
    let known = fetch_with(&service, url(&asset), &[("x-request-id", "of-the-client")]).await;
    assert_eq!(header(&known, "x-request-id"), "of-the-client");
    let (status, _, part) = read(&[("range", "bytes=1-2")]).await;
    assert_eq!((status.as_u16(), &*part), (206, &bytes[1..3]));
    // Other paths are no addresses, also of a file in memory.
    let path = url(&asset).rsplit_once('/').unwrap().0;
    for other in [path.to_owned(), format!("{path}/"), format!("{path}/a/b")] {
        assert_eq!(fetch(&service, &other).await.status(), 404, "{other}");
    }
    let delete = format!("/assets?id={}", asset["id"].as_str().unwrap());
    assert_eq!(service.delete(&delete).await.status, 204);
    assert_eq!(fetch(&service, url(&asset)).await.status(), 404);
}

#[on_both_engines]
async fn parts_of_a_large_file_are_read(store: TestStore) {
    let service = Service::start(store).await;
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let asset = asset(&service, "filename=data.bin", bytes.clone()).await;
    assert_eq!(asset["contentType"], "application/octet-stream");
    let whole = fetch(&service, url(&asset)).await;
    let tag = header(&whole, "etag").to_owned();
    assert_eq!(whole.bytes().await.unwrap(), bytes);
    let size = bytes.len();
    for (range, start, end) in
        [("bytes=0-0", 0, 1), ("bytes=5000000-", 5_000_000, size), ("bytes=-7", size - 7, size)]
    {
        let part = fetch_with(&service, url(&asset), &[("range", range), ("if-range", &tag)]).await;
        assert_eq!(part.status(), 206, "{range}");
        let content_range = format!("bytes {start}-{}/{size}", end - 1);
        assert_eq!(header(&part, "content-range"), content_range);
        assert_eq!(part.bytes().await.unwrap(), bytes[start..end], "{range}");
    }
    let other = [("range", "bytes=0-0"), ("if-range", "\"other\"")];
    assert_eq!(fetch_with(&service, url(&asset), &other).await.status(), 200);
    let beyond = [("range", "bytes=12000000-")];
    let beyond = fetch_with(&service, url(&asset), &beyond).await;
    assert_eq!(
        (beyond.status().as_u16(), header(&beyond, "content-range")),
        (416, "bytes */12000000")
    );
}

#[on_both_engines]
async fn images_are_rendered_in_a_few_sizes(store: TestStore) {
    let service = Service::start(store).await;
    let asset = asset(&service, "filename=wide.png", encoded(1000, 500, ImageFormat::Png)).await;
    let stored = files_in(service.files.path());
    for (query, media_type, size) in [
        ("w=320", "image/webp", (320, 160)),
        ("w=640&f=jpeg", "image/jpeg", (640, 320)),
        ("w=1920&f=png", "image/png", (1000, 500)),
        ("f=webp", "image/webp", (1000, 500)),
    ] {
        let address = format!("{}?{query}", url(&asset));
        let first = fetch(&service, &address).await;
        assert_eq!((first.status().as_u16(), header(&first, "content-type")), (200, media_type));
        assert_eq!(header(&first, "cache-control"), "public, max-age=31536000, immutable");
        let (tag, bytes) = (header(&first, "etag").to_owned(), first.bytes().await.unwrap());
        let image = image::load_from_memory(&bytes).unwrap();
        assert_eq!((image.width(), image.height()), size, "{query}");
        let again = fetch(&service, &address).await;
        assert_eq!((header(&again, "etag"), again.status().as_u16()), (tag.as_str(), 200));
        assert_eq!(again.bytes().await.unwrap(), bytes);
    }
    assert_eq!(files_in(service.files.path()), stored + 4, "each rendition is stored");
    if let Some(other) = service.start_second_server().await {
        let path = url(&asset).strip_prefix(&service.url).unwrap();
        let path = format!("{path}?w=320");
        let shown = service.request_to(&other, Method::GET, &path).send().await.unwrap();
        assert_eq!(shown.status(), 200, "the second node has the same store");
    }
    let text = self::asset(&service, "filename=a.txt", "text").await;
    let broken = self::asset(&service, "filename=a.png", b"\x89PNG\r\n\x1a\nrest".to_vec()).await;
    assert_eq!((&broken["contentType"], &broken["width"]), (&json!("image/png"), &Value::Null));
    for (asset, query, path) in [
        (&asset, "w=321", "w"),
        (&asset, "w=0", "w"),
        (&asset, "f=avif", "f"),
        (&asset, "w=320&w=640", "w"),
        (&text, "w=320", "w"),
        (&text, "f=png", "f"),
        (&broken, "w=320", "w"),
    ] {
        let rejected = fetch(&service, &format!("{}?{query}", url(asset))).await;
        assert_eq!(rejected.status(), 400, "{query}");
        assert_eq!(header(&rejected, "x-content-type-options"), "nosniff");
        let problem: Value = rejected.json().await.unwrap();
        assert_eq!(problem["issues"][0]["path"], json!([path]), "{problem}");
    }
}

#[on_both_engines]
async fn an_asset_in_use_is_kept_until_it_is_forced(store: TestStore) {
    let service = Service::start(store).await;
    let asset = asset(&service, "filename=a.png", encoded(50, 40, ImageFormat::Png)).await;
    let (id, path) =
        (asset["id"].as_str().unwrap(), format!("/assets?id={}", asset["id"].as_str().unwrap()));
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut new = service.piece("post");
    new["title"] = json!("Post");
    new["coverUrl"] = json!(url(&asset).replace(&service.url, "https://old.example"));
    let piece = service.create("/content-pieces", &new).await;
    let places = async || {
        let uses = service.get(&format!("/assets/used-by?id={id}")).await.body;
        let uses = uses.as_array().unwrap().iter();
        let shown = uses.map(|one| {
            let variant = if one["variantId"].is_null() { "" } else { " de" };
            format!("{}{variant}", one["place"].as_str().unwrap())
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(places().await, ["current"]);
    let content = format!("<p>Text</p><img src=\"{}\">", url(&asset));
    for change in [
        json!({"id": piece, "coverUrl": null, "content": content}),
        json!({"id": piece, "variant": "de", "content": content,
            "customData": json!({"image": url(&asset)}).to_string()}),
    ] {
        assert_eq!(service.put("/content-pieces", &change).await.status, 204, "{change}");
    }
    assert_eq!(places().await, ["current", "current de"]);
    let published = service.post("/content-pieces/publish", &json!({"id": piece})).await;
    assert_eq!(published.status, 204);
    for change in [
        json!({"id": piece, "content": null}),
        json!({"id": piece, "variant": "de", "content": null, "customData": null}),
    ] {
        assert_eq!(service.put("/content-pieces", &change).await.status, 204, "{change}");
    }
    assert_eq!(places().await, ["published", "published de"]);
    let rejected = service.delete(&path).await;
    rejected.assert_problem(409, "asset_in_use", &[]);
    let detail = rejected.body["detail"].as_str().unwrap();
    assert!(detail.contains("\"Post\"") && detail.contains(&piece), "{detail}");
    let revision = service.get(&format!("/content-pieces/revisions?id={piece}")).await;
    let first = revision.column("id").remove(1);
    let restored = json!({"id": piece, "revision": first});
    assert_eq!(service.post("/content-pieces/restore", &restored).await.status, 204);
    assert_eq!(service.delete(&format!("/content-pieces?id={piece}")).await.status, 204);
    assert_eq!(places().await, ["trash"]);
    service.delete(&path).await.assert_problem(409, "asset_in_use", &[]);
    let undeleted = service.post("/content-pieces/undelete", &json!({"id": piece})).await;
    assert_eq!(undeleted.status, 204);
    assert!(places().await.contains(&"published".to_owned()));

    assert_eq!(fetch(&service, &format!("{}?w=320", url(&asset))).await.status(), 200);
    assert_eq!(service.delete(&format!("{path}&force=true")).await.status, 204);
    service.get(&path).await.assert_problem(404, "not_found", &[]);
    for query in ["", "?w=320"] {
        assert_eq!(fetch(&service, &format!("{}{query}", url(&asset))).await.status(), 404);
    }
    assert_eq!(files_in(service.files.path()), 0);
    let events = service.events_after(0).await;
    assert_eq!(events.iter().filter(|event| event.event_type == "assetRemoved").count(), 1);
}

#[on_both_engines]
async fn images_that_browsers_do_not_show_are_stored_with_a_warning(store: TestStore) {
    let service = Service::start(store).await;
    let heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic".to_vec();
    let answer = upload(&service, "filename=a.heic", heic.clone()).await;
    assert_eq!(answer.status, 201);
    let warning = answer.body["warning"].as_str().unwrap();
    assert!(warning.starts_with("browsers don't show image/heif"), "{warning}");
    let found = asset(&service, "filename=b.heic", heic).await;
    assert_eq!(found["contentType"], "image/heif");
    assert_eq!(found["warning"], Value::Null, "a read has none");
    let svg = "<svg xmlns='http://www.w3.org/2000/svg'/>";
    assert_eq!(upload(&service, "filename=a.svg", svg).await.body["warning"], Value::Null);
}

#[on_both_engines]
async fn equal_files_of_a_workspace_are_stored_once(store: TestStore) {
    let service = Service::start(store).await;
    let one = asset(&service, "filename=one.txt", "the same").await;
    let two = asset(&service, "filename=two.txt", "the same").await;
    assert_eq!(one["hash"], two["hash"]);
    assert!(one["id"] != two["id"] && one["url"] != two["url"]);
    assert_eq!(files_in(service.files.path()), 1);
    let other = service.other_workspace().await;
    let theirs = upload_as(&service, &other.token, "filename=x.txt", "the same").await;
    assert_eq!(theirs.status, 201);
    assert_eq!(files_in(service.files.path()), 2, "workspaces share nothing");
    let path = |asset: &Value| format!("/assets?id={}", asset["id"].as_str().unwrap());
    assert_eq!(service.delete(&path(&one)).await.status, 204);
    assert_eq!(fetch(&service, url(&one)).await.status(), 404);
    assert_eq!(fetch(&service, url(&two)).await.text().await.unwrap(), "the same");
    assert_eq!(service.delete(&path(&two)).await.status, 204);
    assert_eq!(files_in(service.files.path()), 1);

    // Uploads of one file at once, and its deletions meanwhile.
    let uploads = (0..20).map(|number| {
        let service = &service;
        async move {
            let created = upload(service, &format!("filename={number}.txt"), "at once").await;
            assert_eq!(created.status, 201, "{created:?}");
            if number % 2 == 0 {
                let deleted = service.delete(&format!("/assets?id={}", created.id())).await;
                assert_eq!(deleted.status, 204, "{deleted:?}");
            }
        }
    });
    futures_util::future::join_all(uploads).await;
    let left = service.get("/assets/list?perPage=100").await.body;
    assert_eq!(left.as_array().unwrap().len(), 10);
    assert_eq!(service.get("/assets/list?perPage=100&unused=true").await.body, left);
    assert_eq!(service.get("/assets/list?unused=false").await.body, json!([]));
    assert_eq!(service.get("/assets/list?contentType=image/").await.body, json!([]));
    assert_eq!(service.get("/assets/list?filename=2.TXT").await.body.as_array().unwrap().len(), 0);
    assert_eq!(service.get("/assets/list?filename=3.TXT").await.body.as_array().unwrap().len(), 2);
    let mut pages = Vec::new();
    let mut path = "/assets/list?sort=-createdAt&perPage=4".to_owned();
    loop {
        let page = service.get(&path).await;
        pages.extend(page.body.as_array().unwrap().clone());
        let Some(next) = page.next_page() else { break };
        path = next;
    }
    pages.reverse();
    assert_eq!(json!(pages), left, "newest first");
    for asset in left.as_array().unwrap() {
        assert_eq!(fetch(&service, url(asset)).await.text().await.unwrap(), "at once");
    }
    assert_eq!(files_in(service.files.path()), 2);
    assert_eq!(service.deadlocks().await, 0);
}

#[on_both_engines]
async fn changes_keep_the_file_and_its_earlier_addresses(store: TestStore) {
    let service = Service::start(store).await;
    let before = asset(&service, "filename=a.txt", "text").await;
    let id = before["id"].as_str().unwrap();
    let path = format!("/assets?id={id}");
    let tag = service.get(&path).await.header("etag").to_owned();
    let group = service.home.group.clone();
    let change = json!({"id": id, "filename": "b.txt", "alt": "Alt", "contentGroupId": group});
    let changed = service.put("/assets", &change).await;
    assert_eq!(changed.status, 204);
    let after = service.get(&path).await.body;
    let shown = ["filename", "alt", "contentGroupId"].map(|name| after[name].clone());
    assert_eq!(shown, [json!("b.txt"), json!("Alt"), json!(group)]);
    for asset in [&before, &after] {
        assert_eq!(fetch(&service, url(asset)).await.text().await.unwrap(), "text");
    }
    let request = service.request(Method::PUT, "/assets").bearer_auth(&service.home.token);
    let request = request.header("if-match", tag).json(&json!({"id": id, "alt": null}));
    TestResponse::of(request).await.assert_problem(412, "precondition_failed", &[]);
    for (change, path) in [
        (json!({"id": id, "filename": ""}), "filename"),
        (json!({"id": id, "filename": null}), "filename"),
        (json!({"id": id, "filename": "a/b"}), "filename"),
        (json!({"id": id, "alt": "x".repeat(1_025)}), "alt"),
        (json!({"id": id, "contentGroupId": "cg_1"}), "contentGroupId"),
    ] {
        let rejected = service.put("/assets", &change).await;
        assert_eq!(rejected.body["issues"][0]["path"], json!([path]), "{rejected:?}");
    }
    // A group that is deleted is no longer shown.
    let named = json!({"name": "Of assets"});
    let group = service.create("/content-groups", &named).await;
    let moved = json!({"id": id, "contentGroupId": group});
    assert_eq!(service.put("/assets", &moved).await.status, 204);
    assert_eq!(service.delete(&format!("/content-groups?id={group}")).await.status, 204);
    assert_eq!(service.get(&path).await.body["contentGroupId"], Value::Null);
}

#[on_both_engines]
async fn files_over_a_limit_or_with_another_digest_leave_nothing(store: TestStore) {
    let assets = AssetSettings {
        size_limit: 1_000,
        workspace_limit: Some(2_500),
        ..AssetSettings::default()
    };
    let limits = ServerLimits { assets, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    upload(&service, "filename=a", vec![1; 1_001]).await.assert_problem(
        413,
        "payload_too_large",
        &[],
    );
    // Without a stated size.
    let chunks = futures_util::stream::iter((0..20).map(|_| Ok::<_, std::io::Error>(vec![7; 100])));
    let request = service.request(Method::POST, "/assets?filename=a");
    let request = request.bearer_auth(&service.home.token);
    let response = request.body(reqwest::Body::wrap_stream(chunks)).send().await.unwrap();
    assert_eq!(response.status(), 413);
    for number in 0..2_u8 {
        let kept = upload(&service, "filename=a", vec![number; 1_000]).await;
        assert_eq!(kept.status, 201, "{kept:?}");
    }
    let full = upload(&service, "filename=a", vec![3; 1_000]).await;
    full.assert_problem(413, "asset_storage_exceeded", &[]);
    assert_eq!(upload(&service, "filename=b", vec![1; 1_000]).await.status, 201, "an equal file");
    assert_eq!(upload(&service, "filename=c", vec![4; 500]).await.status, 201);
    let with = async |name: &str, value: String| {
        let request = service.request(Method::POST, "/assets?filename=d");
        let request = request.bearer_auth(&service.home.token).header(name, value);
        TestResponse::of(request.body("hello")).await
    };
    let digest = |text: &str| format!("sha-256=:{}:", BASE64_STANDARD.encode(Sha256::digest(text)));
    for name in ["Content-Digest", "Repr-Digest"] {
        with(name, digest("other")).await.assert_problem(400, "digest_mismatch", &[]);
        with(name, "sha-256=?".to_owned()).await.assert_problem(400, "validation", &[name]);
    }
    with("content-encoding", "gzip".to_owned()).await.assert_problem(
        415,
        "unsupported_media_type",
        &[],
    );
    assert_eq!(files_in(service.files.path()), 3);
    let one = &service.get("/assets/list").await.body[0];
    let deleted = service.delete(&format!("/assets?id={}", one["id"].as_str().unwrap())).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(with("Content-Digest", digest("hello")).await.status, 201, "there is space again");
}

#[on_both_engines]
async fn tokens_see_assets_of_their_groups_and_of_their_pieces(store: TestStore) {
    let service = Service::start(store).await;
    let group = service.create("/content-groups", &json!({"name": "Own"})).await;
    let of_group = |group: &str| format!("filename=a.txt&contentGroupId={group}");
    let own = asset(&service, &of_group(&group), "own").await;
    let other = asset(&service, &of_group(&service.home.group), "other").await;
    let shared = asset(&service, "filename=shared.txt", "shared").await;
    let mut piece = service.piece("post");
    piece["contentGroupId"] = json!(group);
    piece["description"] = json!(format!("See {}", url(&shared)));
    let piece = service.create("/content-pieces", &piece).await;
    let permissions = "assets:write contentPieces:read";
    let limited = TokenKind { permissions, groups: Some(&[&group]), ..ALL };
    let limited = service.token_of(service.home.made.user, limited).await;
    let site = service.token_of(service.home.made.user, SITE).await;
    let listed = async |token: &str| {
        let list = service.send_as(token, Method::GET, "/assets/list", None).await;
        list.column("id")
    };
    let id = |asset: &Value| asset["id"].as_str().unwrap().to_owned();
    assert_eq!(listed(&limited).await, [id(&own), id(&shared)]);
    assert_eq!(listed(&site).await, Vec::<String>::new(), "nothing is published");
    let published = service.post("/content-pieces/publish", &json!({"id": piece})).await;
    assert_eq!(published.status, 204);
    assert_eq!(listed(&site).await, [id(&shared)]);
    let get = async |token: &str, asset: &Value| {
        service.send_as(token, Method::GET, &format!("/assets?id={}", id(asset)), None).await
    };
    for (token, asset, status) in [
        (&limited, &own, 200),
        (&limited, &shared, 200),
        (&limited, &other, 404),
        (&site, &shared, 200),
        (&site, &own, 404),
    ] {
        assert_eq!(get(token, asset).await.status, status, "{asset}");
    }
    // An asset of a visible piece is read, and an asset of the group is changed.
    let change = async |asset: &Value| {
        let body = json!({"id": id(asset), "alt": "changed"});
        service.send_as(&limited, Method::PUT, "/assets", Some(&body)).await
    };
    assert_eq!(change(&own).await.status, 204);
    change(&shared).await.assert_problem(403, "outside_group_limit", &[]);
    change(&other).await.assert_problem(404, "not_found", &[]);
    let made = upload_as(&service, &limited, &of_group(&group), "made").await;
    assert_eq!(made.status, 201);
    let path = ["contentGroupId"];
    let rejected = upload_as(&service, &limited, &of_group(&service.home.group), "x").await;
    rejected.assert_problem(400, "unknown_reference", &path);
    upload_as(&service, &limited, "filename=a", "x").await.assert_problem(400, "validation", &path);
    // The events of other groups and of no group are hidden.
    let feed = service.send_as(&limited, Method::GET, "/events?perPage=100", None).await;
    let events: Vec<_> = feed
        .body
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"].as_str().unwrap().starts_with("asset"))
        .map(|event| event["data"]["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(events, [id(&own), made.id()]);
    let feed = service.send_as(&site, Method::GET, "/events?perPage=100", None).await;
    let is_of_asset = |event: &&Value| event["type"].as_str().unwrap().starts_with("asset");
    assert_eq!(feed.body.as_array().unwrap().iter().filter(is_of_asset).count(), 0);
}

#[on_both_engines]
async fn a_repeated_upload_with_a_key_creates_one_asset(store: TestStore) {
    let service = Service::start(store).await;
    let send = async |bytes: &'static str, alt: &str| {
        let request = service.request(Method::POST, &format!("/assets?filename=a.txt&alt={alt}"));
        let request = request.bearer_auth(&service.home.token).header("idempotency-key", "one");
        TestResponse::of(request.body(bytes)).await
    };
    let first = send("text", "x").await;
    let again = send("text", "x").await;
    assert_eq!((again.status.as_u16(), again.id()), (201, first.id()));
    assert_eq!(again.header("idempotency-replayed"), "true");
    for (bytes, alt) in [("other", "x"), ("text", "y")] {
        send(bytes, alt).await.assert_problem(422, "idempotency_key_reused", &[]);
    }
    assert_eq!(service.get("/assets/list").await.body.as_array().unwrap().len(), 1);
    assert_eq!(files_in(service.files.path()), 1);
}

#[on_both_engines]
async fn an_interrupted_upload_leaves_nothing(store: TestStore) {
    let limits =
        ServerLimits { receive_timeout: Duration::from_secs(1), ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let address = service.url.strip_prefix("http://").unwrap();
    for is_closed in [true, false] {
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /assets?filename=a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-length: 20000000\r\n\r\n",
            service.home.token
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&vec![b'x'; 18_000_000]).await.unwrap();
        if is_closed {
            drop(socket);
        } else {
            let mut response = String::new();
            drop(socket.read_to_string(&mut response).await);
            assert!(response.starts_with("HTTP/1.1 408"), "{response}");
        }
    }
    for _ in 0..500 {
        if files_in(service.files.path()) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(files_in(service.files.path()), 0);
    assert_eq!(service.get("/assets/list").await.body, json!([]));
}

#[on_both_engines]
async fn files_of_interrupted_uploads_are_removed_after_a_day(store: TestStore) {
    let service = Service::start(store).await;
    let kept = asset(&service, "filename=kept.txt", "kept").await;
    let workspace = service.home.made.workspace;
    let folder = service.files.path().join(workspace.to_string());
    let [stuck, due, left, foreign] =
        [(); 4].map(|()| AssetFileId::new(service.environment.new_id()));
    for file in [due, left, foreign] {
        std::fs::create_dir_all(folder.join(file.to_string())).unwrap();
        std::fs::write(folder.join(file.to_string()).join("original"), "left").unwrap();
    }
    // This one can't be removed: it is no folder.
    std::fs::write(folder.join(stuck.to_string()), "stuck").unwrap();
    let now = service.environment.now();
    let insert = async move |tx: &WriteTx<'_>| {
        let before = now.earlier(Duration::from_hours(1));
        assets::insert_leftover(tx, workspace, stuck, before).await?;
        assets::insert_leftover(tx, workspace, due, now).await?;
        assets::insert_leftover(tx, workspace, left, now.later(Duration::from_hours(24))).await
    };
    service.database.write::<_, galley_storage::Error, _>("test", insert).await.unwrap();
    // A server removes due files at its start.
    let start = async || {
        let location = StoreLocation::Folder(service.files.path().to_owned());
        let store = AssetStore::open(&location).unwrap();
        let assets = AssetSettings { store, ..AssetSettings::default() };
        service.serve_again(ServerLimits { assets, ..ServerLimits::default() }).await
    };
    // The file is removed before its leftover.
    let leftovers_are = async |expected: &[AssetFileId]| {
        let end = Timestamp::from_ms(i64::MAX);
        for _ in 0..500 {
            let found = service.read(async move |tx| assets::due_leftovers(tx, end, 9).await).await;
            if found.iter().map(|(_, file)| *file).eq(expected.iter().copied()) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    };
    let exists = |file: AssetFileId| folder.join(file.to_string()).exists();
    start().await;
    assert!(leftovers_are(&[stuck, left]).await);
    assert!(!exists(due) && exists(left), "the second one is too early");
    service.advance_clock(Duration::from_hours(25));
    start().await;
    assert!(leftovers_are(&[stuck]).await);
    assert!(!exists(left));
    assert_eq!(files_in(service.files.path()), 3, "no other file is touched");
    assert_eq!(fetch(&service, url(&kept)).await.text().await.unwrap(), "kept");
}
