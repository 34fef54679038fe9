//! The session of this node among those that send deliveries. Leases belong to a session.
//!
//! Heartbeats keep the session valid. Without a successful heartbeat it becomes invalid before
//! other nodes may take it for dead. While it is invalid, no delivery is leased, and attempts under
//! way are abandoned, as other nodes may repeat them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_domain::Timestamp;
use galley_storage::delivery_queue::{self, DeadSession};
use galley_storage::{Error as StorageError, WriteTx};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::service::Service;

/// The time between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

/// The validity of a session after a heartbeat was sent: less than the timeout after which other
/// nodes take it for dead.
const HEARTBEAT_VALIDITY: Duration = Duration::from_secs(8);

/// The same after the connection was lost: less than the 2.2 seconds of the other nodes' timeout
/// for that case.
const DISCONNECTED_VALIDITY: Duration = Duration::from_millis(1_600);

/// The timeout after which a session is dead, during which this node itself has seen no heartbeat
/// of it. Neither a step of the database's clock nor an outage of the database makes a session
/// dead.
const DEAD_SESSION_TIMEOUT: Duration = Duration::from_millis(8_500);

/// The session of this node.
#[derive(Debug)]
pub(super) struct DeliverySession {
    service: Service,
    state: watch::Sender<SessionState>,
}

#[derive(Debug, Clone)]
struct SessionState {
    id: Arc<str>,
    /// `None` if it is valid as long as the node runs.
    valid_until: Option<Instant>,
}

impl SessionState {
    /// Returns the remaining validity, or `None` if the session is valid as long as the node runs.
    fn remaining_validity(&self) -> Option<Duration> {
        self.valid_until.map(|until| until.saturating_duration_since(Instant::now()))
    }
}

impl DeliverySession {
    /// Opens a session. Retries until the database accepts it.
    pub(super) async fn open(service: Service) -> Self {
        let state = open(&service).await;
        Self { service, state: watch::Sender::new(state) }
    }

    /// Returns the session's id. It changes after other nodes have taken the session for dead.
    pub(super) fn id(&self) -> Arc<str> {
        Arc::clone(&self.state.borrow().id)
    }

    /// Returns true if deliveries may be leased.
    pub(super) fn is_valid(&self) -> bool {
        self.state.borrow().remaining_validity().is_none_or(|left| !left.is_zero())
    }

    /// Resolves when the session with this id is no longer valid.
    pub(super) async fn until_invalid(&self, id: &str) {
        let mut states = self.state.subscribe();
        loop {
            let state = states.borrow_and_update().clone();
            let left = state.remaining_validity();
            if &*state.id != id || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            // The channel closes when the session is dropped, at the end of the worker.
            let changed = states.changed();
            match left {
                Some(left) => drop(tokio::time::timeout(left, changed).await),
                None => drop(changed.await),
            }
        }
    }

    /// Writes heartbeats, and releases the leases of dead sessions.
    pub(super) async fn run_heartbeats(&self) {
        if !self.service.database().has_generations() {
            // Only one node writes the database.
            return;
        }
        let node = self.service.settings().node.clone();
        let mut last = Instant::now();
        let mut late_sessions = LateSessions::default();
        let mut release_task = None;
        let mut has_warned = false;
        loop {
            let sent = Instant::now();
            if !self.service.database().has_heartbeat_connection() {
                // Other nodes may have seen the end of the connection already, while a new one
                // takes its time.
                self.set_valid_until(last + DISCONNECTED_VALIDITY);
            }
            match self.service.database().heartbeat(&self.id(), &node).await {
                Ok(heartbeat) if heartbeat.is_superseded => {
                    tracing::warn!(
                        "the session of this node has expired, and other nodes took over its deliveries"
                    );
                    self.set_valid_until(sent);
                    let state = open(&self.service).await;
                    self.state.send_replace(state);
                    last = Instant::now();
                    late_sessions = LateSessions::default();
                    continue;
                }
                Ok(heartbeat) => {
                    if std::mem::take(&mut has_warned) {
                        tracing::info!("heartbeats are written to the database again");
                    }
                    last = sent;
                    self.set_valid_until(sent + HEARTBEAT_VALIDITY);
                    let dead = late_sessions.find_dead(heartbeat.dead);
                    self.release_dead_session(&mut release_task, dead);
                }
                Err(error) => {
                    self.set_valid_until(last + DISCONNECTED_VALIDITY);
                    late_sessions = LateSessions::default();
                    // After a single failure the session is still valid.
                    if !self.is_valid() && !std::mem::replace(&mut has_warned, true) {
                        tracing::warn!(
                            %error,
                            "heartbeats can't be written to the database: nothing is sent to \
                             webhooks until one succeeds"
                        );
                    }
                }
            }
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        }
    }

    fn set_valid_until(&self, until: Instant) {
        self.state.send_modify(|state| state.valid_until = Some(until));
    }

    /// Releases the leases of dead sessions in a task, one session after another, so that
    /// heartbeats are not delayed.
    fn release_dead_session(&self, releasing: &mut Option<JoinHandle<()>>, dead: Vec<DeadSession>) {
        if dead.is_empty() || releasing.as_ref().is_some_and(|releasing| !releasing.is_finished()) {
            return;
        }
        let service = self.service.clone();
        *releasing = Some(tokio::spawn(async move {
            for one in dead {
                release_dead_session(&service, one).await;
            }
        }));
    }

    /// Closes the session.
    pub(super) async fn close(&self) {
        let (id, environment) = (self.id(), self.service.environment().clone());
        let close = async move |tx: &WriteTx<'_>| {
            delivery_queue::close_session(tx, &id, environment.now()).await
        };
        let write = self.service.database().write::<_, StorageError, _>("deliveries.close", close);
        if let Err(error) = write.await {
            tracing::debug!(
                %error,
                "the delivery session could not be closed: it ends by its missing heartbeats"
            );
        }
    }
}

/// The sessions whose heartbeats are late: the last heartbeat of each, and since when this node has
/// seen no newer one.
#[derive(Debug, Default)]
struct LateSessions(HashMap<String, (Timestamp, Instant)>);

impl LateSessions {
    /// Returns the sessions that are dead.
    fn find_dead(&mut self, late: Vec<DeadSession>) -> Vec<DeadSession> {
        let known = std::mem::take(&mut self.0);
        for one in &late {
            let before = known.get(&one.session).filter(|(seen_at, _)| *seen_at == one.seen_at);
            let since = before.map_or_else(Instant::now, |(_, since)| *since);
            self.0.insert(one.session.clone(), (one.seen_at, since));
        }
        let is_silent = |one: &DeadSession| {
            self.0
                .get(&one.session)
                .is_some_and(|(_, since)| since.elapsed() > DEAD_SESSION_TIMEOUT)
        };
        late.into_iter().filter(|one| one.is_gone || is_silent(one)).collect()
    }
}

async fn release_dead_session(service: &Service, dead: DeadSession) {
    let environment = service.environment().clone();
    let release = async move |tx: &WriteTx<'_>| {
        delivery_queue::delete_dead_session(tx, &dead, environment.now()).await
    };
    match service
        .database()
        .write::<_, StorageError, _>("deliveries.release_dead_session", release)
        .await
    {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "deliveries of an expired session are sent again"),
        Err(error) => {
            tracing::debug!(%error, "deliveries of an expired session could not be released");
        }
    }
}

async fn open(service: &Service) -> SessionState {
    let mut is_silent = false;
    loop {
        let environment = service.environment().clone();
        let id: Arc<str> = format!("{:032x}", environment.new_id()).into();
        let (session, node) = (Arc::clone(&id), service.settings().node.clone());
        let sent = Instant::now();
        let open = async move |tx: &WriteTx<'_>| {
            delivery_queue::open_session(tx, &session, &node, environment.now()).await
        };
        match service.database().write::<_, StorageError, _>("deliveries.open", open).await {
            Ok(freed) => {
                if freed > 0 {
                    tracing::info!(count = freed, "deliveries of an earlier run are sent again");
                }
                let has_others = service.database().has_generations();
                return SessionState {
                    id,
                    valid_until: has_others.then(|| sent + HEARTBEAT_VALIDITY),
                };
            }
            Err(error) if std::mem::replace(&mut is_silent, true) => {
                tracing::debug!(%error, "the delivery session can't be opened");
            }
            Err(error) => tracing::warn!(%error, "delivery is paused: its session can't be opened"),
        }
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}
