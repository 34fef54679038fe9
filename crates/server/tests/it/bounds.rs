//! Bounds that apply to all clients together: connections, and the memory of requests and
//! responses.

use std::time::Duration;

use galley_server::ServerLimits;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::service::{Service, TestResponse};

/// Opens a connection and sends a request. Returns the connection and the start of the response.
async fn connection(service: &Service) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let answer = read_some(&mut stream).await;
    (stream, answer)
}

/// Reads the next bytes.
async fn read_some(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 16 * 1024];
    let count = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut bytes)).await;
    String::from_utf8_lossy(&bytes[..count.unwrap().unwrap()]).into_owned()
}

/// Opens a connection on which a response has begun, or returns `None` if the memory budget rejects
/// it.
async fn open_unread_response(service: &Service, request: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut stream = socket.connect(service.url[7..].parse().unwrap()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_some(&mut stream).await;
    if answer.starts_with("HTTP/1.1 503 ") {
        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
        return None;
    }
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    Some(stream)
}

#[on_both_engines]
async fn connections_over_the_limit_are_rejected_with_retry_after(store: TestStore) {
    let limits = ServerLimits { connection_limit: 3, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let mut served = Vec::new();
    while served.len() < 3 {
        let (stream, answer) = connection(&service).await;
        // The service's own test client may briefly hold one of the connections.
        if answer.starts_with("HTTP/1.1 200 ") {
            served.push(stream);
        }
    }
    let (mut refused, answer) = connection(&service).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.contains("\"reason\":\"overloaded\""), "{answer}");
    assert_eq!(read_some(&mut refused).await, "", "it is hung up on");
    // A rejected connection that sends nothing is closed, too.
    let mut silent = TcpStream::connect(&service.url[7..]).await.unwrap();
    assert_eq!(read_some(&mut silent).await, "");
    served.pop();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !connection(&service).await.1.starts_with("HTTP/1.1 200 ") {
        assert!(std::time::Instant::now() < deadline, "its place is free again");
    }
}

/// Waits until the server has read all bytes that were written to its `count` connections or more.
async fn wait_until_read(service: &Service, count: usize) {
    let port: u16 = service.url.rsplit(':').next().unwrap().parse().unwrap();
    let local = format!("0100007F:{port:04X}");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        // The local and the remote address, and the queues of unsent and of unread bytes.
        let rows = rows.map(|row| (row[1].to_owned(), row[2].to_owned(), row[4].to_owned()));
        let (accepted, sent): (Vec<_>, Vec<_>) = rows
            .filter(|(own, peer, _)| *own == local || *peer == local)
            .partition(|(own, ..)| *own == local);
        // One row is the listening socket's.
        assert!(accepted.len() > count, "{accepted:?}");
        let is_read = accepted.iter().all(|(.., queues)| queues.ends_with(":00000000"))
            && sent.iter().all(|(.., queues)| queues.starts_with("00000000:"));
        if is_read {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "bytes were not read: {accepted:?} {sent:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[on_both_engines]
async fn request_bodies_share_a_memory_budget(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let size = ServerLimits::default().body_size_limit;
    let head = |size: usize| {
        format!(
            "POST /tags HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {size}\r\n\r\n",
            service.home.token
        )
    };
    // These bodies, each without its last byte, take nearly the whole memory budget of one
    // workspace.
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
        stream.write_all(head(size).as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; size - 1]).await.unwrap();
        waiting.push(stream);
    }
    // A body that is still in transit would be rejected if a request took the memory first.
    wait_until_read(&service, waiting.len()).await;
    let large = json!({"label": "x".repeat(1_000_000), "more": "is ignored"});
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let answer = loop {
        let answer = service.post("/tags", &large).await;
        if answer.status == 503 || std::time::Instant::now() > deadline {
            break answer;
        }
    };
    answer.assert_problem(503, "overloaded", &[]);
    assert!(answer.headers.contains_key("retry-after"));
    // Small requests are admitted, and so are those of other workspaces.
    service.create("/tags", &json!({"label": "small"})).await;
    let of_other = service.send_as(&other.token, Method::POST, "/tags", Some(&large)).await;
    of_other.assert_problem(400, "validation", &["label"]);
    for mut stream in waiting {
        stream.write_all(b"x").await.unwrap();
        assert!(read_some(&mut stream).await.starts_with("HTTP/1.1 400 "));
    }
    service.post("/tags", &large).await.assert_problem(400, "validation", &["label"]);
}

#[on_both_engines]
async fn pages_have_a_size_limit(store: TestStore) {
    let limits = ServerLimits { response_size_limit: 1_000_000, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let words = format!("<p>{}</p>", "Some words. ".repeat(80)).repeat(110);
    let custom_data = json!({"a": "b".repeat(200_000)}).to_string();
    let mut made = Vec::new();
    for number in 0..9 {
        let mut piece = service.piece(&format!("p{number}"));
        piece["content"] = json!(words);
        piece["customData"] = json!(custom_data);
        made.push(service.create("/content-pieces", &piece).await);
    }
    let list = async |query: &str| service.get(&format!("/content-pieces/list?{query}")).await;
    for query in [
        "content=true",
        "content=true&contentFormat=html",
        "content=true&sort=title",
        "perPage=100",
    ] {
        list(query).await.assert_problem(400, "validation", &["perPage"]);
    }
    let message = list("").await.body["issues"][0]["message"].clone();
    assert!(message.as_str().unwrap().contains("request fewer items"), "{message}");
    assert_eq!(list("").await.body["issues"][0]["code"], "too_long");
    assert_eq!(list("perPage=4").await.column("id"), made[..4]);
    // Cached responses reserve no memory.
    for _ in 0..3 {
        let (mut walked, mut path) =
            (Vec::new(), "/content-pieces/list?perPage=1&content=true".to_owned());
        loop {
            let page = service.get(&path).await;
            walked.extend(page.column("id"));
            let Some(next) = page.header("link").split(['<', '>']).nth(1) else { break };
            path = next.to_owned();
        }
        assert_eq!(walked, made);
        for id in &made {
            let one = service.get(&format!("/content-pieces?content=true&id={id}")).await;
            assert_eq!(one.status, 200, "{one:?}");
        }
    }
    // A page of events ends at its size limit, and links to the next page.
    let (mut events, mut path) = (0, "/events?perPage=1000".to_owned());
    let mut pages = 0;
    loop {
        let page = service.get(&path).await;
        events += page.column("type").len();
        pages += 1;
        let Some(next) = page.header("link").split(['<', '>']).nth(1) else { break };
        path = next.to_owned();
    }
    assert_eq!(events, service.events_after(0).await.len());
    assert!(pages > 1, "{pages}");
    // The pages of a limited token don't reveal the size of hidden events.
    let body = json!({"name": "apart", "ancestor": null});
    let apart = service.create("/content-groups", &body).await;
    let limited =
        service.token("contentPieces:read contentGroups:read webhooks:read", Some(&[&apart])).await;
    let page = service.send_as(&limited, Method::GET, "/events?perPage=1000", None).await;
    assert_eq!(page.column("type"), ["contentGroupAdded"]);
    assert_eq!(page.header("link"), "");
}

#[on_both_engines]
async fn the_size_limit_applies_to_the_rendered_form(store: TestStore) {
    let limits = ServerLimits { response_size_limit: 1_000_000, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let quotes = format!("{}<pre>{}</pre>", "<blockquote>".repeat(50), "a\n".repeat(20_000));
    let ampersands = format!("<p>{}</p>", "& ".repeat(100_000));
    // In JSON, each line end takes two characters.
    let custom_data = format!("[{}]", "\n".repeat(200_000));
    let mut ids = Vec::new();
    for (slug, content, custom_data) in [
        ("quotes", quotes.as_str(), ""),
        ("ampersands", &ampersands, ""),
        ("ampersands", &ampersands, ""),
        ("lines", "", &custom_data),
        ("lines", "", &custom_data),
        ("lines", "", &custom_data),
    ] {
        let mut piece = service.piece(slug);
        piece["content"] = json!(content);
        piece["customData"] = json!(custom_data);
        ids.push(service.create("/content-pieces", &piece).await);
    }
    let one = format!("/content-pieces?content=true&id={}", ids[0]);
    for form in ["json", "html"] {
        assert_eq!(service.get(&format!("{one}&contentFormat={form}")).await.status, 200, "{form}");
    }
    let as_markdown = service.get(&format!("{one}&contentFormat=markdown")).await;
    as_markdown.assert_problem(400, "validation", &["contentFormat"]);
    assert_eq!(as_markdown.body["issues"][0]["code"], "too_long");
    for (query, is_refused) in [
        ("slug=quotes&content=true&contentFormat=markdown", true),
        ("slug=quotes&content=true", false),
        ("slug=ampersands&content=true&contentFormat=html", true),
        ("slug=ampersands&content=true", false),
        ("slug=ampersands&content=true&contentFormat=html&perPage=1", false),
        ("slug=lines", true),
        ("slug=lines&perPage=2", false),
    ] {
        let answer = service.get(&format!("/content-pieces/list?{query}")).await;
        if is_refused {
            answer.assert_problem(400, "validation", &["perPage"]);
        } else {
            assert_eq!(answer.status, 200, "{query}: {answer:?}");
        }
    }
}

#[on_both_engines]
async fn the_size_limit_covers_tags_subtrees_and_dry_runs(store: TestStore) {
    let limits = ServerLimits { response_size_limit: 200_000, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let long = |number: usize| format!("{number} {}", "\u{1f5de}".repeat(240));
    // Each piece contains all of its tags in full.
    let mut tags = Vec::new();
    for number in 0..60 {
        tags.push(service.create("/tags", &json!({"label": long(number)})).await);
    }
    for slug in ["one", "two", "three", "four"] {
        let mut piece = service.piece(slug);
        piece["tags"] = json!(tags);
        service.create("/content-pieces", &piece).await;
    }
    service.get("/content-pieces/list").await.assert_problem(400, "validation", &["perPage"]);
    assert_eq!(
        service.get("/content-pieces/list?perPage=2").await.body.as_array().unwrap().len(),
        2
    );
    // Each group contains its subtree.
    let mut above = service.home.group.clone();
    for number in 0..200 {
        let body = json!({"name": long(number), "ancestor": above});
        let group = service.create("/content-groups", &body).await;
        if number < 20 {
            above = group;
        }
    }
    for path in [
        format!("/content-groups?id={}&subtree=true", service.home.group),
        "/content-groups/list?subtree=true".to_owned(),
    ] {
        service.get(&path).await.assert_problem(400, "validation", &["subtree"]);
    }
    assert_eq!(service.get("/content-groups/list").await.status, 200);
    assert_eq!(service.get(&format!("/content-groups?id={above}")).await.status, 200);
    // The response of a dry run contains the whole content.
    let mut piece = service.piece("large");
    piece["content"] = json!("<p>Some words.</p>".repeat(4_000));
    service.post("/content-pieces?dryRun=true", &piece).await.assert_problem(
        400,
        "validation",
        &["content"],
    );
    let id = service.create("/content-pieces", &piece).await;
    let dry = service.put("/content-pieces?dryRun=true", &json!({"id": id})).await;
    dry.assert_problem(400, "validation", &["content"]);
}

#[on_both_engines]
async fn responses_share_a_memory_budget(store: TestStore) {
    // This is more than a connection's buffers hold.
    let limits = ServerLimits { response_size_limit: 16_000_000, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let other = service.other_workspace().await;
    let mut pieces = Vec::new();
    for (number, home) in
        [&service.home, &service.home, &service.home, &other].into_iter().enumerate()
    {
        let mut piece = service.piece(&format!("large-{number}"));
        piece["content"] = json!("<p>Some words.</p>".repeat(60_000));
        piece["contentGroupId"] = json!(home.group);
        let made =
            service.send_as(&home.token, Method::POST, "/content-pieces", Some(&piece)).await;
        pieces.push(made.body["id"].as_str().unwrap().to_owned());
    }
    let head = |line: &str, of: &str| {
        format!("{line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {of}\r\n")
    };
    let list = "GET /content-pieces/list?content=true";
    let change = json!({"id": pieces[0]}).to_string();
    let dry_run = format!(
        "{}content-type: application/json\r\ncontent-length: {}\r\n\r\n{change}",
        head("PUT /content-pieces?dryRun=true", &service.home.token),
        change.len()
    );
    // Clients begin to read a response, and then stop. The second response is a smaller one.
    let (mut open, mut counts) = (Vec::new(), Vec::new());
    for request in [head(list, &service.home.token) + "\r\n", dry_run] {
        let before = open.len();
        while let Some(stream) = open_unread_response(&service, &request).await {
            open.push(stream);
            assert!(open.len() < before + 40, "there is room without an end: {request}");
        }
        counts.push(open.len() - before);
    }
    assert!(counts[0] > 1, "there is room for some: {counts:?}");
    // Small responses need no reservation, and other workspaces have a share of their own.
    assert_eq!(service.get("/content-pieces/list").await.status, 200);
    let of_other =
        service.send_as(&other.token, Method::GET, "/content-pieces/list?content=true", None).await;
    assert_eq!(of_other.status, 200);
    // All workspaces together cannot exceed the total budget.
    let request = head(list, &other.token) + "\r\n";
    let before = open.len();
    while let Some(stream) = open_unread_response(&service, &request).await {
        open.push(stream);
        assert!(open.len() < before + 40, "there is room without an end");
    }
    open.clear();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while service.get("/content-pieces/list?content=true").await.status != 200 {
        assert!(std::time::Instant::now() < deadline, "their room is free again");
    }
}

#[on_both_engines]
async fn over_budget_reads_are_rejected_and_writes_respond_without_a_representation(
    store: TestStore,
) {
    let origin = "https://example.org";
    let cors_origins = vec![origin.parse().unwrap()];
    let limits =
        ServerLimits { response_size_limit: 20_000, cors_origins, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    for number in 0..100 {
        let label = format!("{number} {}", "\u{1f5de}".repeat(240));
        service.create("/tags", &json!({"label": label})).await;
    }
    let send = async |method: Method, path: &str, body: Option<&Value>| {
        let mut request = service.request(method, path).bearer_auth(&service.home.token);
        request = request.header("origin", origin).header("prefer", "return=representation");
        TestResponse::of(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    };
    assert_eq!(send(Method::GET, "/tags/list?perPage=50", None).await.status, 200);
    let refused = send(Method::GET, "/tags/list?perPage=100", None).await;
    refused.assert_problem(503, "overloaded", &[]);
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header("access-control-allow-origin"), origin);
    // A successful change gets a response in any case.
    let mut piece = service.piece("large");
    piece["customData"] = json!(json!({"a": "b".repeat(200_000)}).to_string());
    let made = send(Method::POST, "/content-pieces", Some(&piece)).await;
    let id = made.body["id"].as_str().unwrap();
    assert_eq!((made.status.as_u16(), &made.body), (201, &json!({"id": id})));
    assert_eq!((made.header("preference-applied"), made.header("etag")), ("", ""));
    let change = json!({"id": id, "title": "Another"});
    let changed = send(Method::PUT, "/content-pieces", Some(&change)).await;
    assert_eq!(changed.status, 204);
    assert_eq!(changed.header("preference-applied"), "");
    assert!(!changed.header("etag").is_empty());
    let small =
        send(Method::PUT, "/content-pieces", Some(&json!({"id": id, "customData": null}))).await;
    assert_eq!((small.status.as_u16(), &small.body["title"]), (200, &json!("Another")));
}

#[on_both_engines]
async fn a_response_lists_at_most_a_thousand_issues(store: TestStore) {
    let service = Service::start(store).await;
    let body = json!({"name": "many", "permissions": vec![""; 500_000]});
    for path in ["/roles", "/tokens"] {
        let answer = service.post(path, &body).await;
        answer.assert_problem(400, "validation", &["permissions"]);
        assert_eq!(answer.body["issues"][0]["code"], "too_long");
    }
    let pieces: Vec<_> = (0..100)
        .map(|number| {
            let mut piece = service.piece(&format!("p{number}"));
            piece["tags"] = json!(vec!["tag_nothing"; 15]);
            piece
        })
        .collect();
    let answer = service.post("/content-pieces/batch", &json!({"pieces": pieces})).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.body["issues"].as_array().unwrap().len(), 1_000);
    assert!(answer.body["detail"].as_str().unwrap().ends_with("; and 500 more"));
}

#[on_both_engines]
async fn a_body_has_at_most_a_million_values(store: TestStore) {
    let service = Service::start(store).await;
    let send = async |values: usize| {
        let body = format!("{{\"label\":\"a\",\"more\":[{}0]}}", "0,".repeat(values - 1));
        let request = service.request(Method::POST, "/tags");
        let request = request.bearer_auth(&service.home.token);
        let request = request.header("content-type", "application/json").body(body);
        TestResponse::of(request).await
    };
    // The other values are the object, two names, a text and the list.
    assert_eq!(send(1_000_000 - 5).await.status, 201);
    let answer = send(1_000_000 - 4).await;
    answer.assert_problem(400, "malformed_body", &[]);
    assert!(answer.body["detail"].as_str().unwrap().contains("more than 1000000 values"));
}
