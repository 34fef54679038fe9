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

/// The headers of a request that creates a tag, except those for the length of its body.
fn create_tag(service: &Service) -> String {
    format!(
        "POST /tags HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\n",
        service.home.token
    )
}

/// The body of this request, 13 bytes.
const BODY: &str = "{\"label\":\"a\"}";

/// The body as one chunk.
const CHUNKS: &str = "d\r\n{\"label\":\"a\"}\r\n0\r\n\r\n";

/// The headers for the length of a body, the body, the status, and true if another request may
/// follow. A rejected request closes the connection, so that no following request is read as part
/// of it.
const FRAMINGS: [(&str, &str, &str, bool); 18] = [
    ("content-length: 13", BODY, "201", true),
    // A repeated equal length counts as one.
    ("content-length: 13\r\ncontent-length: 13", BODY, "201", true),
    ("transfer-encoding: chunked", CHUNKS, "201", true),
    ("transfer-encoding: Chunked", CHUNKS, "201", true),
    // With both headers, the length is ignored, and the connection is closed.
    ("content-length: 3\r\ntransfer-encoding: chunked", CHUNKS, "201", false),
    ("content-length: 13\r\ncontent-length: 3", BODY, "400", false),
    ("content-length: 13, 13", BODY, "400", false),
    ("content-length: +13", BODY, "400", false),
    ("content-length: 0xd", BODY, "400", false),
    ("content-length : 13", BODY, "400", false),
    ("x: y\r\n folded: z\r\ncontent-length: 13", BODY, "400", false),
    ("transfer-encoding: identity, chunked", CHUNKS, "400", false),
    ("transfer-encoding: gzip, chunked", CHUNKS, "400", false),
    ("transfer-encoding: chunked, identity", CHUNKS, "400", false),
    ("transfer-encoding: identity\r\ntransfer-encoding: chunked", CHUNKS, "400", false),
    ("transfer-encoding: chunked\r\ntransfer-encoding: chunked", CHUNKS, "400", false),
    (
        "transfer-encoding: chunked",
        "fffffffffffffffff\r\n{\"label\":\"a\"}\r\n0\r\n\r\n",
        "400",
        false,
    ),
    ("transfer-encoding: chunked", "d;x=\ny\r\n{\"label\":\"a\"}\r\n0\r\n\r\n", "400", false),
];

#[on_both_engines]
async fn ambiguous_requests_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let head = create_tag(&service);
    for (headers, body, first, may_follow) in FRAMINGS {
        let bytes = format!("{head}{headers}\r\n\r\n{body}{MARKED}");
        let (came, closed) = statuses(&service, bytes.as_bytes()).await;
        let case = format!("{headers:?} {body:?}: {came:?}, closed: {closed}");
        assert_eq!(came.first().map(String::as_str), Some(first), "{case}");
        if may_follow {
            assert_eq!(came.len(), 2, "{case}");
        } else {
            assert!(came.len() == 1 && closed, "{case}");
        }
    }
}

/// Sends a request and half-closes the connection. Returns the response.
async fn half_close(service: &Service, request: &str) -> String {
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    read_to_end(&mut stream).await
}

/// Reads until the server closes its side, for less than the interval between two heartbeats of a
/// stream.
async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(12), stream.read_to_end(&mut bytes)).await;
    read.expect("the server closes its side, too").unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn get(service: &Service, path: &str, header: &str) -> String {
    let token = &service.home.token;
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{header}\r\n")
}

#[on_both_engines]
async fn a_client_that_half_closes_gets_its_response(store: TestStore) {
    let service = Service::start(store).await;
    let post = format!("{}content-length: 13\r\n\r\n{BODY}", create_tag(&service));
    // A stream of events ends in this case.
    let events = get(&service, "/events", "accept: text/event-stream\r\n");
    for (request, expected) in [
        (post, "HTTP/1.1 201 "),
        (get(&service, "/tags/list", ""), "HTTP/1.1 200 "),
        (events, "HTTP/1.1 200 "),
    ] {
        let response = half_close(&service, &request).await;
        assert!(response.starts_with(expected), "{request}: {response}");
    }
}

#[on_both_engines]
async fn an_event_stream_ends_when_its_client_half_closes_behind_an_unread_byte(store: TestStore) {
    let service = Service::start(store).await;
    let mut stream = TcpStream::connect(&service.url[7..]).await.unwrap();
    let request = get(&service, "/events", "accept: text/event-stream\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(stream.read(&mut [0; 512]).await.unwrap() > 0);
    stream.write_all(b"G").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.shutdown().await.unwrap();
    read_to_end(&mut stream).await;
}

#[on_both_engines]
async fn a_body_is_not_read_as_a_request(store: TestStore) {
    let service = Service::start(store).await;
    // The headers reject each of these requests.
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
    let answered = half_close(&service, &get(&service, "/tags/list", "")).await.to_lowercase();
    assert!(answered.starts_with("http/1.1 408 "), "{answered}");
    for part in ["application/problem+json", "x-request-id: ", "\"reason\":\"request_timeout\""] {
        assert!(answered.contains(part), "{part}: {answered}");
    }
}
