//! A webhook receiver with configurable behaviour, including faulty behaviour.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The behaviour of a receiver towards a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// Responds with this status, and keeps the connection.
    Status(u16),
    /// Responds with this status and these header lines.
    Head(u16, String),
    /// Responds 200 with this body.
    Body(Vec<u8>),
    /// Responds 200 with the request's headers and body.
    Echo,
    /// Responds 200 after a delay.
    After(Duration),
    /// Sends exactly these bytes, and closes.
    Raw(Vec<u8>),
    /// Sends exactly these bytes, and stalls.
    RawThenStall(Vec<u8>),
    /// Closes the connection before it reads anything.
    CloseAtOnce,
    /// Sends these bytes before it reads anything, and closes.
    Greet(Vec<u8>),
    /// Closes after it has read the request.
    Close,
    /// Resets the connection after it has read the request.
    Reset,
    /// Responds 200 with a content length, and resets the connection within the body.
    OkThenReset,
    /// Never responds.
    Stall,
    /// Sends the head of a 200 response, a byte each second.
    SlowHead,
    /// Sends the head of a 200 response, and its body a byte each second.
    SlowBody,
    /// Sends a 200 response and an endless body.
    EndlessBody,
    /// Sends endless header lines.
    EndlessHead,
    /// Sends endless interim responses.
    EndlessContinue,
    /// Responds 200 with `connection: keep-alive`, and closes the connection.
    CloseAfterAnswer,
}

impl Behaviour {
    /// Returns many kinds of behaviour, each with the expected outcome of its delivery: the
    /// response's status, or the error.
    pub fn catalog() -> Vec<(Self, &'static str)> {
        let raw = |text: &str| Self::Raw(text.as_bytes().to_vec());
        let stalling = |text: &str| Self::RawThenStall(text.as_bytes().to_vec());
        vec![
            (Self::Status(200), "200"),
            (Self::Status(204), "204"),
            (Self::Status(299), "299"),
            (Self::Status(304), "304"),
            (Self::Status(400), "400"),
            (Self::Status(410), "410"),
            (Self::Status(500), "500"),
            (Self::Status(999), "999"),
            (Self::Head(302, "location: http://127.0.0.1:1/".to_owned()), "302"),
            (Self::Head(307, "location: https://example.org/".to_owned()), "307"),
            (Self::Head(429, "retry-after: 999999999999999999999".to_owned()), "429"),
            (Self::Body(b"thanks".to_vec()), "200"),
            (Self::After(Duration::from_millis(300)), "200"),
            (Self::CloseAtOnce, "connection_lost"),
            (Self::Close, "connection_lost"),
            (Self::Reset, "connection_lost"),
            (Self::OkThenReset, "200"),
            (Self::Stall, "timed_out"),
            (Self::SlowHead, "timed_out"),
            (Self::SlowBody, "200"),
            (Self::EndlessBody, "200"),
            (Self::EndlessHead, "bad_answer"),
            (Self::EndlessContinue, "timed_out"),
            (Self::CloseAfterAnswer, "200"),
            (raw("HTTP/1.0 200 OK\r\n\r\nold"), "200"),
            (raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nbad"), "200"),
            (raw("HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n"), "bad_answer"),
            (
                raw("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 9\r\n\r\nabc"),
                "bad_answer",
            ),
            (raw("\u{16}\u{3}\u{1} this is not HTTP\r\n\r\n"), "bad_answer"),
            (raw("hello\n"), "bad_answer"),
            (raw("HTTP/1.1 2"), "connection_lost"),
            (raw("HTTP/1.1 200 OK\r\nx: \0\r\n\r\n"), "bad_answer"),
            (raw("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"), "101"),
            (stalling("HTTP/1.1 100 Continue\r\n\r\n"), "timed_out"),
            (stalling("HTTP/1.1 200 OK\r\n"), "timed_out"),
            (stalling("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"), "200"),
            (stalling("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\u{1f}"), "200"),
        ]
    }
}

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The time at which the request was complete.
    pub at: Instant,
    /// The request line.
    pub request_line: String,
    /// The header fields, with names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// Returns the value of a header field, or an empty string.
    pub fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// Parses the body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

/// A running receiver, which stops when this is dropped.
#[derive(Debug)]
pub struct Receiver {
    /// The receiver's URL: `http://127.0.0.1:…/hook`.
    pub url: String,
    state: Arc<SharedState>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct SharedState {
    behaviour: Mutex<Behaviour>,
    received: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
    under_way: AtomicUsize,
    under_way_max: AtomicUsize,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    /// Starts a receiver on a free port of 127.0.0.1.
    pub async fn start(behaviour: Behaviour) -> Self {
        Self::start_on("127.0.0.1:0", behaviour).await
    }

    /// Starts a receiver on this address.
    pub async fn start_on(address: &str, behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind(address).await.expect("the address is free");
        let url = format!("http://{}/hook", listener.local_addr().expect("it is bound"));
        let state = Arc::new(SharedState {
            behaviour: Mutex::new(behaviour),
            received: Mutex::default(),
            connections: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            under_way_max: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::Relaxed);
                let state = Arc::clone(&serving);
                tokio::spawn(async move {
                    // Broken connections are expected here.
                    let _ = state.serve(stream).await;
                });
            }
        });
        Self { url, state, task }
    }

    /// Changes the receiver's behaviour.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        *self.state.behaviour.lock() = behaviour;
    }

    /// Returns the requests received so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.state.received.lock().clone()
    }

    /// Returns the number of requests received so far.
    pub fn count(&self) -> usize {
        self.state.received.lock().len()
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Returns the largest number of concurrent requests so far.
    pub fn concurrent_requests_max(&self) -> usize {
        self.state.under_way_max.load(Ordering::Relaxed)
    }

    /// Waits until the receiver has got `count` requests.
    pub async fn wait_for(&self, count: usize) -> Vec<ReceivedRequest> {
        let deadline = Instant::now() + Duration::from_mins(2);
        while self.count() < count {
            let found = self.count();
            assert!(Instant::now() < deadline, "{found} of {count} requests came to {}", self.url);
            sleep(Duration::from_millis(5)).await;
        }
        self.received()
    }
}

impl SharedState {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let behaviour = self.behaviour.lock().clone();
        match behaviour {
            Behaviour::CloseAtOnce => return Ok(()),
            Behaviour::Greet(bytes) => return stream.write_all(&bytes).await,
            _ => {}
        }
        let mut buffered = Vec::new();
        while let Some(received) = read_request(&mut stream, &mut buffered).await? {
            let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
            self.under_way_max.fetch_max(under_way, Ordering::Relaxed);
            let behaviour = self.behaviour.lock().clone();
            self.received.lock().push(received.clone());
            let goes_on = respond(&mut stream, &behaviour, &received).await;
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            if !goes_on? {
                break;
            }
        }
        Ok(())
    }
}

/// Responds to a request as the behaviour says. Returns true if the connection stays open.
async fn respond(
    stream: &mut TcpStream,
    behaviour: &Behaviour,
    received: &ReceivedRequest,
) -> std::io::Result<bool> {
    match behaviour {
        Behaviour::Status(status) => {
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
        }
        Behaviour::Head(status, lines) => {
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n{lines}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
        }
        Behaviour::Body(body) => stream.write_all(&ok_response(body)).await?,
        Behaviour::Echo => {
            let fields: Vec<String> =
                received.fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            let mut body = fields.concat().into_bytes();
            body.extend_from_slice(&received.body);
            stream.write_all(&ok_response(&body)).await?;
        }
        Behaviour::After(pause) => {
            sleep(*pause).await;
            stream.write_all(&ok_response(b"")).await?;
        }
        _ => return misbehave(stream, behaviour).await,
    }
    Ok(true)
}

/// Sends a response that is broken, slow or endless.
async fn misbehave(stream: &mut TcpStream, behaviour: &Behaviour) -> std::io::Result<bool> {
    let head: &[u8] = match behaviour {
        Behaviour::Raw(bytes) | Behaviour::RawThenStall(bytes) => bytes,
        Behaviour::OkThenReset => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin",
        Behaviour::SlowBody => b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n",
        Behaviour::EndlessBody => b"HTTP/1.1 200 OK\r\n\r\n",
        Behaviour::EndlessHead => b"HTTP/1.1 200 OK\r\n",
        Behaviour::CloseAfterAnswer => {
            b"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n"
        }
        _ => b"",
    };
    stream.write_all(head).await?;
    match behaviour {
        Behaviour::RawThenStall(_) | Behaviour::Stall => stall(stream).await,
        Behaviour::SlowHead => {
            drip(stream, &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-a: b\r\n\r\n"[..]).await
        }
        Behaviour::SlowBody => drip(stream, &[b'x'; 1_000]).await,
        Behaviour::EndlessBody => flood(stream, &[b'x'; 8_192]).await,
        Behaviour::EndlessHead => {
            flood(stream, b"x-field: value value value value value\r\n").await
        }
        Behaviour::EndlessContinue => flood(stream, b"HTTP/1.1 100 Continue\r\n\r\n").await,
        Behaviour::Reset => {
            stream.set_zero_linger()?;
            Ok(false)
        }
        Behaviour::OkThenReset => {
            // A reset discards bytes that the client has not read yet, so this waits until it has
            // read them.
            sleep(Duration::from_millis(100)).await;
            stream.set_zero_linger()?;
            Ok(false)
        }
        _ => Ok(false),
    }
}

fn ok_response(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Waits until the client closes the connection.
async fn stall(stream: &mut TcpStream) -> std::io::Result<bool> {
    while stream.read(&mut [0; 1_024]).await? > 0 {}
    Ok(false)
}

async fn drip(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<bool> {
    for byte in bytes {
        stream.write_all(&[*byte]).await?;
        sleep(Duration::from_secs(1)).await;
    }
    Ok(false)
}

async fn flood(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<bool> {
    loop {
        stream.write_all(bytes).await?;
        tokio::task::yield_now().await;
    }
}

/// Reads a request. Returns `None` if the connection has ended.
async fn read_request(
    stream: &mut TcpStream,
    buffered: &mut Vec<u8>,
) -> std::io::Result<Option<ReceivedRequest>> {
    let end = loop {
        let found = buffered.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(at) = found {
            break at + 4;
        }
        if !read_more(stream, buffered).await? {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffered[..end]).into_owned();
    let mut lines = head.trim_end().split("\r\n");
    let request_line = lines.next().unwrap_or_default().to_owned();
    let fields: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = fields.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    while buffered.len() < end + length {
        if !read_more(stream, buffered).await? {
            return Ok(None);
        }
    }
    let body = buffered[end..end + length].to_vec();
    buffered.drain(..end + length);
    Ok(Some(ReceivedRequest { at: Instant::now(), request_line, fields, body }))
}

async fn read_more(stream: &mut TcpStream, buffered: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut more = [0; 8_192];
    let count = stream.read(&mut more).await?;
    buffered.extend_from_slice(&more[..count]);
    Ok(count > 0)
}
