//! Connections that wait to be used again.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::connect::{Checked, Connection, Target};

/// How long a connection may wait.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// How many may wait for the same receiver, and all together.
const IDLE_PER_TARGET_MAX: usize = 8;
const IDLE_MAX: usize = 512;

/// Idle connections, by where they lead: the name as well as the address that it had.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Idle>);

#[derive(Debug, Default)]
struct Idle {
    by_target: HashMap<(Target, SocketAddr), Vec<(Connection, Instant)>>,
    count: usize,
}

impl Pool {
    /// A connection to one of the addresses that were just looked at.
    pub(crate) fn take(&self, target: &Target, checked: &Checked) -> Option<Connection> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = &mut *idle;
        let now = Instant::now();
        for &address in &checked.addresses {
            let Some(waiting) = idle.by_target.get_mut(&(target.clone(), address)) else {
                continue;
            };
            while let Some((connection, since)) = waiting.pop() {
                idle.count -= 1;
                if now - since < IDLE_TIME_MAX && connection.sender.is_ready() {
                    return Some(connection);
                }
            }
        }
        None
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn put(&self, target: &Target, connection: Connection) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if idle.count >= IDLE_MAX {
            idle.forget(now);
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

    /// Ends connections that have waited too long.
    pub(crate) fn tidy(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).forget(Instant::now());
    }
}

impl Idle {
    fn forget(&mut self, now: Instant) {
        for waiting in self.by_target.values_mut() {
            waiting.retain(|(connection, since)| {
                now - *since < IDLE_TIME_MAX && !connection.sender.is_closed()
            });
        }
        self.by_target.retain(|_, waiting| !waiting.is_empty());
        self.count = self.by_target.values().map(Vec::len).sum();
    }
}
