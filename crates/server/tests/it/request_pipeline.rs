//! Rules for every request: tokens, paths, methods, media types, limits, request ids.

use std::time::Duration;

use galley_domain::Timestamp;
use galley_domain::text::WebOrigin;
use galley_server::ServerLimits;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::response_validation::DOCUMENT;
use crate::service::{ALL, Service, TestResponse, TokenKind};

#[on_both_engines]
async fn a_request_needs_a_valid_token(store: TestStore) {
    let service = Service::start(store).await;
    let valid = &service.home.token;
    let expired = service
        .token_of(
            service.home.made.user,
            TokenKind { permissions: "tags:read", expires_at: Some(Timestamp::from_ms(1)), ..ALL },
        )
        .await;
    let unknown = service.environment.new_access_token();
    for authorization in [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some("Bearer nonsense".to_owned()),
        Some(format!("Basic {valid}")),
        Some(valid.clone()),
        Some(format!("Bearer {}", &valid[..valid.len() - 1])),
        Some(format!("Bearer {expired}")),
        Some(format!("Bearer {}", unknown.reveal())),
    ] {
        let mut request = service.request(Method::GET, "/tags/list");
        if let Some(authorization) = &authorization {
            request = request.header("authorization", authorization);
        }
        let answer = TestResponse::of(request).await;
        answer.assert_problem(401, "unauthorized", &[]);
        assert_eq!(answer.header("www-authenticate"), "Bearer", "{authorization:?}");
    }
    let in_url = service.request(Method::GET, &format!("/tags/list?access_token={valid}"));
    TestResponse::of(in_url).await.assert_problem(401, "unauthorized", &[]);
    let lower = service
        .request(Method::GET, "/tags/list")
        .header("authorization", format!("bearer {valid}"));
    assert_eq!(TestResponse::of(lower).await.status, 200);
}

#[on_both_engines]
async fn a_token_is_checked_before_anything_else(store: TestStore) {
    let service = Service::start(store).await;
    let request = service.request(Method::POST, "/tags").body("{{{");
    TestResponse::of(request).await.assert_problem(401, "unauthorized", &[]);
    let reader = service.token("tags:read", None).await;
    let request = service.request(Method::POST, "/tags").bearer_auth(reader).body("{{{");
    TestResponse::of(request).await.assert_problem(403, "insufficient_permissions", &[]);
}

#[on_both_engines]
async fn a_revoked_token_stops_working_at_the_next_request(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.token("tags:read", None).await;
    assert_eq!(service.send_as(&token, Method::GET, "/tags/list", None).await.status, 200);
    let workspace = service.home.made.workspace;
    let revoke = async move |tx: &galley_storage::WriteTx<'_>| {
        let all =
            galley_storage::tokens::list(tx, workspace, None, &galley_storage::IdPage::default())
                .await?;
        let last = all.last().expect("there are tokens").id;
        galley_storage::tokens::delete(tx, workspace, last).await
    };
    assert!(service.database.write::<_, galley_storage::Error, _>("revoke", revoke).await.unwrap());
    let answer = service.send_as(&token, Method::GET, "/tags/list", None).await;
    answer.assert_problem(401, "unauthorized", &[]);
}

#[on_both_engines]
async fn paths_work_with_and_without_a_trailing_slash(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/tags/", &json!({"label": "a"})).await;
    for path in [format!("/tags?id={id}"), format!("/tags/?id={id}")] {
        assert_eq!(service.get(&path).await.body["label"], "a");
    }
    assert_eq!(service.get("/tags/list/").await.status, 200);
    assert_eq!(service.get("/healthz/").await.status, 200);
}

#[on_both_engines]
async fn the_root_is_a_page_with_links(store: TestStore) {
    let service = Service::start(store).await;
    let answer = service.get("/").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    let page = answer.body.as_str().unwrap().to_owned();
    for part in [env!("CARGO_PKG_VERSION"), "href=\"/docs\"", "href=\"/healthz\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[on_both_engines]
async fn unknown_paths_get_404_and_unknown_methods_405(store: TestStore) {
    let service = Service::start(store).await;
    for path in ["/nothing", "/tags/list/more", "/Tags", "/tags%2Flist"] {
        service.get(path).await.assert_problem(404, "not_found", &[]);
    }
    let answer = service.send(Method::PATCH, "/tags", None).await;
    answer.assert_problem(405, "method_not_allowed", &[]);
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE"] {
        assert!(answer.header("allow").contains(method), "{answer:?}");
    }
    let answer = service.send(Method::POST, "/tags/list", None).await;
    answer.assert_problem(405, "method_not_allowed", &[]);
    assert_eq!(answer.header("allow"), "GET,HEAD");
}

#[on_both_engines]
async fn head_works_where_get_does(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/tags", &json!({"label": "a"})).await;
    let get = service.get("/tags/list").await;
    let head = service.send(Method::HEAD, "/tags/list", None).await;
    assert_eq!(head.status, 200);
    assert!(head.body.is_null());
    assert_eq!(head.header("content-length"), get.header("content-length"));
    let head = service.send(Method::HEAD, "/tags?id=x", None).await;
    assert_eq!(head.status, 404);
    assert!(head.body.is_null());
}

#[on_both_engines]
async fn request_ids_are_accepted_or_generated(store: TestStore) {
    let service = Service::start(store).await;
    let with = async |id: &str| {
        let request = service.request(Method::GET, "/healthz").header("x-request-id", id);
        TestResponse::of(request).await.header("x-request-id").to_owned()
    };
    assert_eq!(with("my-id:1").await, "my-id:1");
    for bad in ["", "with space", &"x".repeat(129)] {
        let made = with(bad).await;
        assert!(made != bad && made.len() == 32, "{made}");
    }
    assert_ne!(with("").await, with("").await);
}

#[on_both_engines]
async fn bodies_must_have_a_json_content_type(store: TestStore) {
    let service = Service::start(store).await;
    let send = async |content_type: Option<&str>, encoding: Option<&str>| {
        let mut request = service
            .request(Method::POST, "/tags")
            .bearer_auth(&service.home.token)
            .body("{\"label\":\"a\"}");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        if let Some(encoding) = encoding {
            request = request.header("content-encoding", encoding);
        }
        TestResponse::of(request).await
    };
    for good in [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON;charset=\"UTF-8\"",
        "application/ld+json",
    ] {
        assert_eq!(send(Some(good), None).await.status, 201, "{good}");
    }
    for bad in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("application/json; charset=latin1"),
        Some(""),
    ] {
        send(bad, None).await.assert_problem(415, "unsupported_media_type", &[]);
    }
    let answer = send(Some("application/json"), Some("gzip")).await;
    answer.assert_problem(415, "unsupported_media_type", &[]);
}

#[on_both_engines]
async fn a_body_on_get_or_delete_is_ignored(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/tags", &json!({"label": "a"})).await;
    let path = format!("/tags?id={id}");
    let get = service.send(Method::GET, &path, Some(&json!({"id": "other"}))).await;
    assert_eq!(get.body["label"], "a");
    let delete = service.send(Method::DELETE, &path, Some(&json!([]))).await;
    assert_eq!(delete.status, 204);
}

#[on_both_engines]
async fn oversized_bodies_are_rejected(store: TestStore) {
    let limits = ServerLimits { body_size_limit: 1_000, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let long = json!({"label": "x".repeat(1_000)});
    let answer = service.post("/tags", &long).await;
    answer.assert_problem(413, "payload_too_large", &[]);
    // The body is larger than all buffers, and the client sends all of it before it reads.
    let large = json!({"label": "x".repeat(9_000_000)});
    for content_type in ["application/json", "text/plain"] {
        let request = service.request(Method::POST, "/tags").bearer_auth(&service.home.token);
        let request = request.header("content-type", content_type).body(large.to_string());
        let expected = if content_type == "text/plain" { 415 } else { 413 };
        assert_eq!(TestResponse::of(request).await.status, expected);
    }
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    let head = format!(
        "POST /tags HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        service.home.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..20 {
        let chunk = format!("64\r\n{}\r\n", " ".repeat(100));
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert!(first_line(&mut stream).await.contains("413"), "also when the length isn't announced");
}

#[on_both_engines]
async fn oversized_headers_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    let head = format!("GET /healthz HTTP/1.1\r\nx-long: {}\r\n\r\n", "x".repeat(20_000));
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(first_line(&mut stream).await.contains("431"));
}

#[on_both_engines]
async fn a_request_needs_exactly_one_host(store: TestStore) {
    let service = Service::start(store).await;
    for (head, status) in [
        ("GET /healthz HTTP/1.1\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n", "200"),
        ("GET /healthz HTTP/1.0\r\n\r\n", "200"),
    ] {
        let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let line = first_line(&mut stream).await;
        assert!(line.contains(status), "{head:?}: {line}");
    }
}

#[on_both_engines]
async fn a_client_that_sends_too_slowly_is_dropped(store: TestStore) {
    let receive_timeout = Duration::from_millis(200);
    let service =
        Service::start_with(store, ServerLimits { receive_timeout, ..ServerLimits::default() })
            .await;
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost").await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    let head = format!(
        "POST /tags HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        service.home.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(first_line(&mut stream).await.contains("408"));
}

#[on_both_engines]
async fn a_client_that_reads_too_slowly_is_dropped(store: TestStore) {
    // The connections that fill the store must not time out as idle.
    let receive_timeout = Duration::from_secs(1);
    let service =
        Service::start_with(store, ServerLimits { receive_timeout, ..ServerLimits::default() })
            .await;
    // This is more than all buffers hold.
    for number in 0..90 {
        let mut body = service.piece(&format!("p{number}"));
        body["content"] = json!(format!("<p>{}</p>", "x".repeat(200_000)));
        service.create("/content-pieces", &body).await;
    }
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    let head = format!(
        "GET /content-pieces/list?content=true&perPage=100 HTTP/1.1\r\nhost: x\r\n\
         authorization: Bearer {}\r\n\r\n",
        service.home.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut rest = Vec::new();
    let ended = stream.read_to_end(&mut rest).await;
    assert!(ended.is_err() || rest.len() < 18_000_000, "{} bytes came", rest.len());
}

#[on_both_engines]
async fn a_write_completes_after_its_client_disconnects(store: TestStore) {
    let service = Service::start(store).await;
    // Another transaction holds a lock that the request waits for.
    let (database, workspace) = (service.database.clone(), service.home.made.workspace);
    let on_sqlite = service.database.engine() == "SQLite";
    let hold = async move |tx: &galley_storage::WriteTx<'_>| {
        galley_storage::workspaces::lock(tx, workspace).await?;
        // SQLite's writer has a thread of its own. On PostgreSQL, a blocking sleep would block
        // the server's runtime.
        if on_sqlite {
            std::thread::sleep(Duration::from_secs(2));
        } else {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        Ok::<_, galley_storage::Error>(())
    };
    let holder = tokio::spawn(async move { database.write("hold", hold).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let body = json!({"name": "kept"}).to_string();
    let request = format!(
        "POST /content-groups HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        service.home.token,
        body.len()
    );
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(stream);
    holder.await.unwrap().unwrap();
    let names = async || service.get("/content-groups/list").await.column("name");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while names().await.len() < 2 && std::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(names().await, ["Posts", "kept"], "nobody waits for it, and it is made");
}

#[on_both_engines]
async fn cors_allows_only_configured_origins(store: TestStore) {
    let origin = "https://site.example";
    let cors_origins = vec![origin.parse().unwrap()];
    let service =
        Service::start_with(store, ServerLimits { cors_origins, ..ServerLimits::default() }).await;
    let ask = async |method, path: &str, origin: &str| {
        let request = service.request(method, path).bearer_auth(&service.home.token);
        let request = request.header("origin", origin);
        TestResponse::of(request.header("access-control-request-method", "PUT")).await
    };
    for (asked, allowed) in [(origin, origin), ("https://other.example", "")] {
        let preflight = ask(Method::OPTIONS, "/tags", asked).await;
        assert_eq!(preflight.header("access-control-allow-origin"), allowed);
        let list = ask(Method::GET, "/tags/list", asked).await;
        assert_eq!(list.header("access-control-allow-origin"), allowed);
        assert_eq!(list.status, 200);
        let problem = ask(Method::GET, "/tags?id=x", asked).await;
        assert_eq!(problem.header("access-control-allow-origin"), allowed);
    }
    let preflight = ask(Method::OPTIONS, "/content-pieces", origin).await;
    assert_eq!(preflight.status, 200);
    // Scripts may send all headers that the document names, except that of sessions, and read all
    // response headers.
    let allowed = preflight.header("access-control-allow-headers").to_lowercase();
    for name in ["authorization", "content-type", "last-event-id"] {
        assert!(allowed.split(',').any(|one| one == name), "{name} in {allowed}");
    }
    for parameter in DOCUMENT["components"]["parameters"].as_object().unwrap().values() {
        let name = parameter["name"].as_str().unwrap().to_lowercase();
        let is_allowed = allowed.split(',').any(|one| one == name);
        assert_eq!(is_allowed, name != "galley-workspace", "{name} in {allowed}");
    }
    let list = ask(Method::GET, "/tags/list", origin).await;
    let exposed = list.header("access-control-expose-headers").to_lowercase();
    let operations = DOCUMENT["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|item| item.as_object().unwrap().values());
    let answers = operations.flat_map(|operation| operation["responses"].as_object().into_iter());
    let answers = answers.flat_map(|answers| answers.values());
    let headers = answers.flat_map(|answer| answer["headers"].as_object().into_iter());
    for name in headers.flat_map(|headers| headers.keys()).map(|name| name.to_lowercase()) {
        // Scripts may always read the first of these, and fetch itself handles the second.
        if !["cache-control", "vary"].contains(&name.as_str()) {
            assert!(exposed.split(',').any(|one| one == name), "{name} in {exposed}");
        }
    }
    for bad in ["*", "example.org", "https://a/b", "ftp://a", "https://"] {
        assert!(bad.parse::<WebOrigin>().is_err(), "{bad}");
    }
}

#[on_both_engines]
async fn cors_is_off_without_configured_origins(store: TestStore) {
    let service = Service::start(store).await;
    let request = service.request(Method::GET, "/healthz").header("origin", "https://a.example");
    assert_eq!(TestResponse::of(request).await.header("access-control-allow-origin"), "");
}

#[on_both_engines]
async fn health_and_readiness_need_no_token(store: TestStore) {
    let service = Service::start(store).await;
    for path in ["/healthz", "/readyz"] {
        let answer = TestResponse::of(service.request(Method::GET, path)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    service.database.close().await;
    let answer = TestResponse::of(service.request(Method::GET, "/healthz")).await;
    assert_eq!(answer.status, 200, "the process still runs");
}

/// Returns the first line of the response, or the part received before the connection ended.
async fn first_line(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 1_024];
    while !text.contains(&b'\n') {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
        }
    }
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
}
