//! A load generator with an open loop: it sends requests at a steady rate, independent of earlier
//! responses, and measures their latency.
//!
//! A closed loop sends its next request only after a response. So it sends fewer requests while the
//! server is slow, and underestimates the latency.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The number of clients in a closed loop.
pub const CLIENTS: usize = 8;

/// The number of connections in the open loop.
const CONNECTIONS: usize = 32;

/// The longest wait for responses in one poll.
const POLL_TIMEOUT: Duration = Duration::from_millis(100);

/// Latency percentiles of a run.
#[derive(Debug, Clone, Copy)]
pub struct LatencyPercentiles {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The number of requests.
    pub count: usize,
}

impl std::fmt::Display for LatencyPercentiles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "p50 {:?}, p99 {:?} ({} reads)", self.p50, self.p99, self.count)
    }
}

impl LatencyPercentiles {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |hundredths: usize| times[(times.len() - 1) * hundredths / 100];
        Self { p50: at(50), p99: at(99), count: times.len() }
    }
}

/// A client that repeats the same requests on threads of its own. Its overhead is small compared to
/// the measured latency.
#[derive(Debug)]
pub struct OpenLoopClient {
    address: String,
    /// Complete requests, sent in rotation.
    requests: Arc<Vec<Vec<u8>>>,
    polls_without_sleeping: bool,
}

impl OpenLoopClient {
    /// Creates a reader that sends complete requests to `address`. Responses must be 200 with a
    /// content length, or 204.
    pub fn new(address: String, requests: Vec<Vec<u8>>) -> Self {
        Self { address, requests: Arc::new(requests), polls_without_sleeping: false }
    }

    /// Polls for responses without sleeping, on a processor of its own. On a virtual processor,
    /// waking the reader would cost the server more than the response.
    #[must_use]
    pub fn polling_without_sleep(self) -> Self {
        Self { polls_without_sleeping: true, ..self }
    }

    /// Measures requests per second in a closed loop.
    pub fn peak(&self) -> f64 {
        const TIME: Duration = Duration::from_secs(5);
        let clients = (0..CLIENTS).map(|first| {
            let mut connection = LoadConnection::new(&self.address, &self.requests);
            std::thread::spawn(move || {
                let started = Instant::now();
                let mut count = 0;
                while started.elapsed() < TIME {
                    connection.read(first * 31 + count);
                    count += 1;
                }
                count
            })
        });
        let clients: Vec<_> = clients.collect();
        let counts = clients.into_iter().map(|client| client.join().expect("a client ends"));
        per_second(counts.sum(), TIME)
    }

    /// Runs `work`, and meanwhile sends reads at a steady rate; returns the result of `work` and
    /// the reads' latency. Latency counts from the time at which a read is due. So a read that is
    /// sent late, because all connections are busy, counts its delay.
    pub async fn measure_during<T>(
        &self,
        rate: f64,
        work: impl Future<Output = T>,
    ) -> (T, LatencyPercentiles) {
        let done = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&done);
        let loops = self.loops(rate, &[]);
        let thread = std::thread::spawn(move || loops.run(|| until.load(Ordering::Relaxed)).0);
        let result = work.await;
        done.store(true, Ordering::Relaxed);
        (result, LatencyPercentiles::of(thread.join().expect("the clients end")))
    }

    /// Measures the latency of reads that are sent at a steady rate, while the same number of
    /// connections sends `others` in a closed loop. Returns the latency and the number of responses
    /// to `others`. Both loops run on this thread, so that neither waits for the other one's
    /// processor time.
    pub fn measure_beside_clients(
        &self,
        rate: f64,
        time: Duration,
        others: &[Vec<u8>],
    ) -> (LatencyPercentiles, usize) {
        let loops = self.loops(rate, others);
        let started = Instant::now();
        let (times, answered) = loops.run(|| started.elapsed() > time);
        (LatencyPercentiles::of(times), answered)
    }

    fn loops(&self, rate: f64, others: &[Vec<u8>]) -> Loops {
        let connect = |requests: &Arc<Vec<Vec<u8>>>| -> Vec<LoadConnection> {
            (0..CONNECTIONS).map(|_| LoadConnection::new(&self.address, requests)).collect()
        };
        let mut connections = connect(&self.requests);
        if !others.is_empty() {
            connections.extend(connect(&Arc::new(others.to_vec())));
        }
        let wait_max = if self.polls_without_sleeping { Duration::ZERO } else { POLL_TIMEOUT };
        Loops { connections, rate, wait_max }
    }
}

/// An open loop over the first [`CONNECTIONS`], and a closed loop over the others. One thread
/// serves all connections, as waking one of many threads would take longer than the measured
/// requests.
struct Loops {
    connections: Vec<LoadConnection>,
    rate: f64,
    wait_max: Duration,
}

impl Loops {
    /// Sends due requests over free connections until `is_done`. Returns the latencies of the open
    /// loop, and the number of responses in the closed loop.
    fn run(self, is_done: impl Fn() -> bool) -> (Vec<Duration>, usize) {
        let Self { mut connections, rate, wait_max } = self;
        for connection in &connections {
            connection.stream.set_nonblocking(true).expect("it is a TCP connection");
        }
        let started = Instant::now();
        let mut times = Vec::new();
        let mut asked_at = vec![None; connections.len()];
        let (mut number, mut others) = (0, 0);
        for (index, connection) in connections.iter_mut().enumerate().skip(CONNECTIONS) {
            connection.send(others);
            asked_at[index] = Some(started);
            others += 1;
        }
        let mut answered = 0;
        while !is_done() {
            let due = started + Duration::from_secs_f64(as_float(number) / rate);
            let free = asked_at[..CONNECTIONS].iter().position(Option::is_none);
            if let Some(free) = free
                && due <= Instant::now()
            {
                connections[free].send(number);
                asked_at[free] = Some(due);
                number += 1;
                continue;
            }
            let wait = match free {
                Some(_) => due.saturating_duration_since(Instant::now()).min(wait_max),
                None => wait_max,
            };
            let asked: Vec<usize> =
                (0..connections.len()).filter(|&index| asked_at[index].is_some()).collect();
            let ready: Vec<usize> = {
                let mut sockets: Vec<_> = asked
                    .iter()
                    .map(|&index| PollFd::new(&connections[index].stream, PollFlags::IN))
                    .collect();
                let wait = Timespec::try_from(wait).expect("it is short");
                poll(&mut sockets, Some(&wait)).expect("sockets can be waited for");
                let ready =
                    asked.iter().zip(&sockets).filter(|(_, socket)| !socket.revents().is_empty());
                ready.map(|(&index, _)| index).collect()
            };
            for index in ready {
                if !connections[index].receive() {
                    continue;
                }
                if index >= CONNECTIONS {
                    connections[index].send(others);
                    others += 1;
                    answered += 1;
                } else if let Some(due) = asked_at[index].take() {
                    times.push(due.elapsed());
                }
            }
        }
        (times, answered)
    }
}

/// A connection of the reader.
struct LoadConnection {
    stream: TcpStream,
    requests: Arc<Vec<Vec<u8>>>,
    buffer: Vec<u8>,
    /// The bytes received of the current response, and its total size once the head is complete.
    have: usize,
    all: Option<usize>,
}

impl LoadConnection {
    fn new(address: &str, requests: &Arc<Vec<Vec<u8>>>) -> Self {
        let stream = TcpStream::connect(address).expect("the server takes connections");
        stream.set_nodelay(true).expect("it is a TCP connection");
        Self {
            stream,
            requests: Arc::clone(requests),
            buffer: vec![0; 64 * 1024],
            have: 0,
            all: None,
        }
    }

    fn read(&mut self, number: usize) {
        self.send(number);
        while !self.receive() {}
    }

    fn send(&mut self, number: usize) {
        let request = &self.requests[number % self.requests.len()];
        self.stream.write_all(request).expect("the server takes requests");
        (self.have, self.all) = (0, None);
    }

    /// Reads available bytes of the response. Returns true if the response is complete.
    fn receive(&mut self) -> bool {
        let count = match self.stream.read(&mut self.buffer[self.have..]) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("the server answers: {error}"),
        };
        assert!(count > 0, "the server hung up");
        self.have += count;
        let head = || std::str::from_utf8(&self.buffer[..self.have]).ok();
        self.all = self.all.or_else(|| response_size(head()?));
        self.all.is_some_and(|all| self.have >= all)
    }
}

/// Returns the size of a response including its head, or `None` while the head is incomplete.
fn response_size(answer: &str) -> Option<usize> {
    let end = answer.find("\r\n\r\n")? + 4;
    if answer.starts_with("HTTP/1.1 204") {
        return Some(end);
    }
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let length = answer.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    Some(end + length.parse::<usize>().ok()?)
}

/// Returns the rate per second.
pub fn per_second(count: usize, time: Duration) -> f64 {
    as_float(count) / time.as_secs_f64()
}

fn as_float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
