//! Requests that are due at a steady rate, whatever becomes of those before, and how long they take.
//!
//! Who asks again only when it was answered asks less while the answers are slow, and so doesn't notice how slow they
//! are.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How many clients there are in a closed loop.
pub const CLIENTS: usize = 8;

/// How many connections the open loop has.
const CONNECTIONS: usize = 32;

/// How long it waits for answers at a time.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Times of requests.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Half of them take no longer.
    pub p50: Duration,
    /// Of a hundred, 99 take no longer.
    pub p99: Duration,
    /// How many there were.
    pub count: usize,
}

impl std::fmt::Display for Times {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "p50 {:?}, p99 {:?} ({} reads)", self.p50, self.p99, self.count)
    }
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |hundredths: usize| times[(times.len() - 1) * hundredths / 100];
        Self { p50: at(50), p99: at(99), count: times.len() }
    }
}

/// Sends the same requests again and again, on threads of its own: what it costs itself is little beside what it
/// measures.
#[derive(Debug)]
pub struct Reader {
    address: String,
    /// What is sent.
    requests: Arc<Vec<Vec<u8>>>,
    is_restless: bool,
}

impl Reader {
    /// Of whole requests to `address`, which are answered by 200 with a length, or by 204.
    pub fn new(address: String, requests: Vec<Vec<u8>>) -> Self {
        Self { address, requests: Arc::new(requests), is_restless: false }
    }

    /// With a processor to itself, on which it looks for answers all the time. On a virtual one the server would pay
    /// for waking the reader more than for the answer.
    #[must_use]
    pub fn restless(self) -> Self {
        Self { is_restless: true, ..self }
    }

    /// Reads a second in a closed loop.
    pub fn peak(&self) -> f64 {
        const TIME: Duration = Duration::from_secs(5);
        let clients = (0..CLIENTS).map(|first| {
            let mut connection = Connection::new(&self.address, &self.requests);
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

    /// What comes of `work`, and how long reads take meanwhile that are due at a steady rate, whatever becomes of
    /// those before: one that is sent late, as its connection still waits for an answer, has waited since then.
    pub async fn beside<T>(&self, rate: f64, work: impl Future<Output = T>) -> (T, Times) {
        let done = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&done);
        let loops = self.loops(rate, &[]);
        let thread = std::thread::spawn(move || loops.run(|| until.load(Ordering::Relaxed)).0);
        let result = work.await;
        done.store(true, Ordering::Relaxed);
        (result, Times::of(thread.join().expect("the clients end")))
    }

    /// How long reads take that are due at a steady rate, while as many clients send `others` one after another, each
    /// whenever it was answered; and how often they were. All on this thread, so that neither waits for the other to
    /// have the processor.
    pub fn beside_clients(&self, rate: f64, time: Duration, others: &[Vec<u8>]) -> (Times, usize) {
        let loops = self.loops(rate, others);
        let started = Instant::now();
        let (times, answered) = loops.run(|| started.elapsed() > time);
        (Times::of(times), answered)
    }

    fn loops(&self, rate: f64, others: &[Vec<u8>]) -> Loops {
        let connect = |requests: &Arc<Vec<Vec<u8>>>| -> Vec<Connection> {
            (0..CONNECTIONS).map(|_| Connection::new(&self.address, requests)).collect()
        };
        let mut connections = connect(&self.requests);
        if !others.is_empty() {
            connections.extend(connect(&Arc::new(others.to_vec())));
        }
        let wait_max = if self.is_restless { Duration::ZERO } else { WAIT_MAX };
        Loops { connections, rate, wait_max }
    }
}

/// An open loop over the first [`CONNECTIONS`], and a closed one over each of the others. One thread for all: many
/// would take longer to be woken than what they measure.
struct Loops {
    connections: Vec<Connection>,
    rate: f64,
    wait_max: Duration,
}

impl Loops {
    /// Sends what is due over whichever connection is free, until it is done. Gives the times of the open loop, and
    /// how often the other one was answered.
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

/// A connection of the reader's.
struct Connection {
    stream: TcpStream,
    requests: Arc<Vec<Vec<u8>>>,
    buffer: Vec<u8>,
    /// What of an answer is there, and how much that is when it is whole.
    have: usize,
    all: Option<usize>,
}

impl Connection {
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

    /// Takes what is there of the answer; says whether that is all of it.
    fn receive(&mut self) -> bool {
        let count = match self.stream.read(&mut self.buffer[self.have..]) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("the server answers: {error}"),
        };
        assert!(count > 0, "the server hung up");
        self.have += count;
        let head = || std::str::from_utf8(&self.buffer[..self.have]).ok();
        self.all = self.all.or_else(|| whole_size(head()?));
        self.all.is_some_and(|all| self.have >= all)
    }
}

/// How long an answer is with its head, once that is there.
fn whole_size(answer: &str) -> Option<usize> {
    let end = answer.find("\r\n\r\n")? + 4;
    if answer.starts_with("HTTP/1.1 204") {
        return Some(end);
    }
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let length = answer.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    Some(end + length.parse::<usize>().ok()?)
}

/// A rate.
pub fn per_second(count: usize, time: Duration) -> f64 {
    as_float(count) / time.as_secs_f64()
}

fn as_float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
