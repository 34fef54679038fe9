//! A load generator with an open loop of reads and writes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::program::{Program, init_token, piece};

/// The rate of healthy requests per second.
pub(super) const HEALTHY_RATE: f64 = 100.0;

/// The results of requests.
#[derive(Debug, Default)]
pub(super) struct RequestResults {
    /// The successful requests: the offset at which each was due, and its duration.
    pub(super) done: Vec<(Duration, Duration)>,
    pub(super) refused: usize,
}

impl RequestResults {
    /// Returns the 99th percentile of the durations, in milliseconds.
    pub(super) fn p99(&self) -> f64 {
        self.p99_after(Duration::ZERO)
    }

    /// Returns the same percentile of the requests that were due later.
    pub(super) fn p99_after(&self, start: Duration) -> f64 {
        let later = self.done.iter().filter(|(due, _)| *due >= start);
        let mut times: Vec<Duration> = later.map(|&(_, took)| took).collect();
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        times.get(last * 99 / 100).map_or(f64::INFINITY, |time| time.as_secs_f64() * 1e3)
    }
}

/// A client with little overhead, as it shares the machine with the server.
#[derive(Debug)]
pub(super) struct LoadSender {
    pub(super) address: String,
    pub(super) group: String,
    /// The idle connections.
    pub(super) free: Mutex<Vec<TcpStream>>,
}

impl LoadSender {
    pub(super) async fn new(program: &Program) -> Arc<Self> {
        let address = program.url.trim_start_matches("http://").to_owned();
        Arc::new(Self { address, group: program.group().await, free: Mutex::default() })
    }

    /// Creates a piece. Returns true if it was created, and false if the server was overloaded.
    pub(super) async fn write(&self, slug: &str) -> bool {
        let body = piece(&self.group, slug, "<p>Some words.</p>").to_string();
        self.ask("POST /content-pieces", &body).await
    }

    /// Returns the last event's sequence number.
    pub(super) async fn last_event(&self) -> usize {
        let mut last = 0;
        loop {
            let answer = self.exchange(&format!("GET /events?perPage=1000&after={last}"), "").await;
            let body = answer.split_once("\r\n\r\n").unwrap().1;
            let events: Value = serde_json::from_str(body).unwrap();
            match events.as_array().unwrap().last() {
                Some(event) => last = usize::try_from(event["sequence"].as_u64().unwrap()).unwrap(),
                None => return last,
            }
        }
    }

    /// Replaces the text of one of these pieces: expensive for the server, cheap for the client.
    pub(super) async fn rewrite(&self, pieces: &[String], number: u32, words: &str) -> bool {
        let id = &pieces[number as usize % pieces.len()];
        let body = format!("{{\"id\":\"{id}\",\"content\":\"{words}<p>{number}</p>\"}}");
        self.ask("PUT /content-pieces", &body).await
    }

    /// Reads a page whose cost doesn't depend on the number of pieces.
    pub(super) async fn read(&self, number: u32) -> bool {
        self.ask(&format!("GET /content-pieces/list?perPage={}", number % 50 + 1), "").await
    }

    /// Creates, updates, reads and deletes pieces, so that their number stays about the same.
    /// Returns true if the request was a change.
    pub(super) async fn send_mixed_request(
        &self,
        number: u32,
        made: &Mutex<VecDeque<String>>,
    ) -> bool {
        /// The number of pieces from which the oldest is deleted.
        const PIECE_COUNT: usize = 200;
        let is_done = match number % 8 {
            0 => {
                let words = "<p>Words.</p>".repeat(50);
                let body = piece(&self.group, &format!("made-{number}"), &words);
                let answer = self.exchange("POST /content-pieces", &body.to_string()).await;
                let id = answer.split('"').find(|text| text.starts_with("cp_"));
                made.lock().unwrap().push_back(id.unwrap_or_else(|| panic!("{answer}")).to_owned());
                true
            }
            1 | 2 => {
                let Some(id) = made.lock().unwrap().back().cloned() else { return false };
                let body = json!({"id": id, "title": format!("changed {number}")}).to_string();
                self.ask("PUT /content-pieces", &body).await
            }
            3 => {
                let oldest = {
                    let mut made = made.lock().unwrap();
                    if made.len() > PIECE_COUNT { made.pop_front() } else { None }
                };
                let Some(id) = oldest else { return false };
                self.ask(&format!("DELETE /content-pieces?id={id}"), "").await
            }
            _ => {
                assert!(self.read(number).await, "refused");
                return false;
            }
        };
        assert!(is_done, "refused");
        true
    }

    pub(super) async fn ask(&self, what: &str, body: &str) -> bool {
        let answer = self.exchange(what, body).await;
        if answer.starts_with("HTTP/1.1 20") {
            return true;
        }
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("\r\nretry-after: "), "{answer}");
        assert!(answer.contains("\"reason\":\"overloaded\""), "{answer}");
        false
    }

    /// Returns a connection that the server has not closed meanwhile.
    fn free(&self) -> Option<TcpStream> {
        let mut free = self.free.lock().unwrap();
        let is_open = |stream: &TcpStream| stream.try_read(&mut [0]).is_err();
        std::iter::from_fn(|| free.pop()).find(is_open)
    }

    pub(super) async fn exchange(&self, what: &str, body: &str) -> String {
        let (address, token, length) = (&self.address, init_token(), body.len());
        let request = format!(
            "{what} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut stream = match self.free() {
            Some(stream) => stream,
            None => TcpStream::connect(address).await.unwrap(),
        };
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = answer(&mut stream).await;
        self.free.lock().unwrap().push(stream);
        answer
    }
}

/// Reads a response with a `Content-Length`.
pub(super) async fn answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    loop {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "the server hung up");
        let text = str::from_utf8(&answer).unwrap_or_default();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return String::from_utf8(answer).unwrap();
        }
    }
}

/// Sends requests at a steady rate, independent of earlier responses.
pub(super) async fn send_at_rate<F>(
    rate: f64,
    time: Duration,
    send: impl Fn(u32) -> F,
) -> RequestResults
where
    F: Future<Output = bool> + Send + 'static,
{
    /// The maximum number of concurrent requests. At this limit, later requests are sent late.
    const CONCURRENCY_LIMIT: usize = 4_000;
    let (started, mut tasks, mut outcome) =
        (Instant::now(), JoinSet::new(), RequestResults::default());
    let mut keep = |ended: Result<(bool, Duration, Duration), tokio::task::JoinError>| match ended {
        Ok((true, due, took)) => outcome.done.push((due, took)),
        Ok((false, ..)) => outcome.refused += 1,
        Err(error) => panic!("{error}"),
    };
    for number in 0.. {
        let due = Duration::from_secs_f64(f64::from(number) / rate);
        if due > time {
            break;
        }
        tokio::time::sleep_until((started + due).into()).await;
        while let Some(ended) = tasks.try_join_next() {
            keep(ended);
        }
        if tasks.len() == CONCURRENCY_LIMIT
            && let Some(ended) = tasks.join_next().await
        {
            keep(ended);
        }
        let answer = send(number);
        tasks.spawn(async move {
            // The time starts when the request is sent, so that delays of the client don't count.
            let asked = Instant::now();
            (answer.await, due, asked.elapsed())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        keep(ended);
    }
    outcome
}

/// Returns the results of a healthy client, which reads and sometimes writes.
pub(super) async fn healthy(sender: &Arc<LoadSender>, time: Duration) -> RequestResults {
    send_at_rate(HEALTHY_RATE, time, |number| {
        let sender = Arc::clone(sender);
        async move {
            if number.is_multiple_of(10) {
                sender.write(&format!("healthy-{number}")).await
            } else {
                sender.read(number).await
            }
        }
    })
    .await
}
