//! The pool of idle connections to receivers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connect::{CheckedAddresses, ReceiverConnection, ReceiverEndpoint};

/// The timeout of idle connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The limits on idle connections to one target, and in total.
const IDLE_PER_TARGET_MAX: usize = 8;
const IDLE_MAX: usize = 512;

/// The idle connections, by their target and the address that its name had.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Idle>);

#[derive(Debug, Default)]
struct Idle {
    by_target: HashMap<(ReceiverEndpoint, SocketAddr), Vec<(ReceiverConnection, Instant)>>,
    count: usize,
}

impl Pool {
    /// Removes and returns an idle connection to one of the addresses just checked.
    pub(crate) fn take(
        &self,
        target: &ReceiverEndpoint,
        checked: &CheckedAddresses,
    ) -> Option<ReceiverConnection> {
        let mut idle = self.0.lock();
        let idle = &mut *idle;
        let now = Instant::now();
        for &address in &checked.addresses {
            let Some(waiting) = idle.by_target.get_mut(&(target.clone(), address)) else {
                continue;
            };
            while let Some((connection, since)) = waiting.pop() {
                idle.count -= 1;
                if now - since < IDLE_TIMEOUT && connection.sender.is_ready() {
                    return Some(connection);
                }
            }
        }
        None
    }

    /// Adds a connection whose last response was read to its end. A full pool closes it.
    pub(crate) fn put(&self, target: &ReceiverEndpoint, connection: ReceiverConnection) {
        let mut idle = self.0.lock();
        let now = Instant::now();
        if idle.count >= IDLE_MAX {
            idle.close_expired(now);
        }
        if idle.count >= IDLE_MAX || connection.sender.is_closed() {
            return;
        }
        let key = (target.clone(), connection.address);
        let waiting = idle.by_target.entry(key).or_default();
        if waiting.len() < IDLE_PER_TARGET_MAX {
            waiting.push((connection, now));
            idle.count += 1;
        }
    }

    /// Closes connections that have exceeded the idle timeout.
    pub(crate) fn close_expired_connections(&self) {
        self.0.lock().close_expired(Instant::now());
    }
}

impl Idle {
    fn close_expired(&mut self, now: Instant) {
        for waiting in self.by_target.values_mut() {
            waiting.retain(|(connection, since)| {
                now - *since < IDLE_TIMEOUT && !connection.sender.is_closed()
            });
        }
        self.by_target.retain(|_, waiting| !waiting.is_empty());
        self.count = self.by_target.values().map(Vec::len).sum();
    }
}
