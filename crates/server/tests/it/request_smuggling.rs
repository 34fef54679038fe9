//! Request smuggling: requests that two HTTP parsers could interpret differently. Each is read in
//! one way or rejected, and a body is never read as a request.

use std::time::Duration;

use galley_testing::{TestStore, on_both_engines};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::Service;

/// A request that the tests otherwise don't send, so that its response is distinguishable from the
/// one before.
const MARKED: &str = "GET /problems/validation HTTP/1.1\r\nhost: x\r\n\r\n";

/// Sends bytes and returns the statuses of the responses, until the server closes or pauses. Also
/// returns true if the server has closed the connection.
async fn statuses(service: &Service, bytes: &[u8]) -> (Vec<String>, bool) {
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let (mut came, mut buffer) = (Vec::new(), [0; 4_096]);
    let closed = loop {
        match tokio::time::timeout(Duration::from_millis(700), stream.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => break true,
            Ok(Ok(count)) => came.extend_from_slice(&buffer[..count]),
            Err(_) => break false,
        }
    };
    let text = String::from_utf8_lossy(&came);
    let lines = text.split("HTTP/1.1 ").skip(1);
    (lines.map(|line| line[..3].to_owned()).collect(), closed)
}

#[on_both_engines]
async fn ambiguous_requests_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let head = format!(
        "POST /tags HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
        service.home.token
    );
    let body = "{\"label\":\"a\"}";
    let length = body.len();
    // Each case has the rest of the head with the body, the first status, and true if another
    // request may follow. A rejected request closes the connection, so that no following
    // request is read as part of it.
    for (rest, first, may_follow) in [
        (format!("content-length: {length}\r\n\r\n{body}"), "201", true),
        // A repeated equal length counts as one.
        (
            format!("content-length: {length}\r\ncontent-length: {length}\r\n\r\n{body}"),
            "201",
            true,
        ),
        (
            "transfer-encoding: chunked\r\n\r\nd\r\n{\"label\":\"a\"}\r\n0\r\n\r\n".to_owned(),
            "201",
            true,
        ),
        // With both headers, the length is ignored, and the connection is closed.
        (
            format!(
                "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
            "201",
            false,
        ),
        (format!("content-length: {length}\r\ncontent-length: 3\r\n\r\n{body}"), "400", false),
        (format!("content-length: {length}, {length}\r\n\r\n{body}"), "400", false),
        (format!("content-length: +{length}\r\n\r\n{body}"), "400", false),
        (format!("content-length: 0x{length:x}\r\n\r\n{body}"), "400", false),
        (format!("content-length : {length}\r\n\r\n{body}"), "400", false),
        (
            format!(
                "transfer-encoding: identity, chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
            "400",
            false,
        ),
        (
            format!("transfer-encoding: gzip, chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"),
            "400",
            false,
        ),
        (
            format!(
                "transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
            "400",
            false,
        ),
        (
            format!(
                "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
            "400",
            false,
        ),
        (
            format!("transfer-encoding: Chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"),
            "201",
            true,
        ),
        (
            format!(
                "transfer-encoding: chunked, identity\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
            "400",
            false,
        ),
        (format!("x: y\r\n folded: z\r\ncontent-length: {length}\r\n\r\n{body}"), "400", false),
        (
            "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{\"label\":\"a\"}\r\n0\r\n\r\n"
                .to_owned(),
            "400",
            false,
        ),
        (
            "transfer-encoding: chunked\r\n\r\nd;x=\ny\r\n{\"label\":\"a\"}\r\n0\r\n\r\n"
                .to_owned(),
            "400",
            false,
        ),
    ] {
        let bytes = format!("{head}{rest}{MARKED}");
        let (came, closed) = statuses(&service, bytes.as_bytes()).await;
        assert_eq!(came.first().map(String::as_str), Some(first), "{rest:?}: {came:?}");
        if may_follow {
            assert_eq!(came.len(), 2, "{rest:?}: {came:?}");
        } else {
            assert!(came.len() == 1 && closed, "{rest:?}: {came:?}, closed: {closed}");
        }
    }
    // A client that half-closes the connection after its request gets the response. A stream of
    // events ends in this case.
    let post = format!("{head}content-length: {length}\r\n\r\n{body}");
    let token = &service.home.token;
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{more}\r\n")
    };
    for (request, expected) in [
        (post, "HTTP/1.1 201 "),
        (get("/tags/list", ""), "HTTP/1.1 200 "),
        (get("/events", "accept: text/event-stream\r\n"), "HTTP/1.1 200 "),
    ] {
        let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answered = Vec::new();
        // This is less than the interval between two heartbeats of a stream.
        let read = stream.read_to_end(&mut answered);
        let read = tokio::time::timeout(Duration::from_secs(12), read).await;
        read.expect("the server closes its side, too").unwrap();
        let answered = String::from_utf8_lossy(&answered);
        assert!(answered.starts_with(expected), "{request}: {answered}");
    }
    // The client's end is detected even behind a byte that the server has not read.
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    let request = get("/events", "accept: text/event-stream\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(stream.read(&mut [0; 512]).await.unwrap() > 0);
    stream.write_all(b"G").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(12), stream.read_to_end(&mut rest));
    read.await.expect("the stream ends").unwrap();
    // A body is not read as a request, even if its request is rejected by its headers.
    for (line, first) in [
        ("POST /tags HTTP/1.1\r\nhost: x\r\n", "401"),
        ("POST /nothing HTTP/1.1\r\nhost: x\r\n", "404"),
        ("POST /invites/accept HTTP/1.1\r\nhost: x\r\n", "415"),
    ] {
        let bytes = format!("{line}content-length: {}\r\n\r\n{MARKED}", MARKED.len());
        let (came, _) = statuses(&service, bytes.as_bytes()).await;
        assert_eq!(came, [first], "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_cancelled_when_its_client_half_closes() {
    let Some(store) = TestStore::postgres().await else { return };
    let service = Service::start(store).await;
    let mut client = service.postgres().await.unwrap();
    // The read waits for this lock.
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE tags IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let token = &service.home.token;
    let request =
        format!("GET /tags/list HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answered = Vec::new();
    stream.read_to_end(&mut answered).await.unwrap();
    let answered = String::from_utf8_lossy(&answered).to_lowercase();
    assert!(answered.starts_with("http/1.1 408 "), "{answered}");
    for part in ["application/problem+json", "x-request-id: ", "\"reason\":\"request_timeout\""] {
        assert!(answered.contains(part), "{part}: {answered}");
    }
}
