//! The session of this server among those that send deliveries: leases belong to it.
//!
//! A heartbeat keeps it valid. When none got through for so long that other servers may take it for
//! dead, it is invalid, and attempts under way are aborted, because others may repeat them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_storage::deliveries::{self, DeadSession};
use galley_storage::{Error as StorageError, WriteTx};
use tokio::sync::watch;

use crate::http::app::App;

/// The time between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

/// A session is valid for so long after a heartbeat was sent. The database takes one that is silent
/// for dead after nine seconds.
const VALID_FOR: Duration = Duration::from_secs(8);

/// The same when the connection failed: the database takes one that is gone for dead after two
/// seconds.
const VALID_AFTER_ERROR: Duration = Duration::from_millis(1_800);

/// A server judges the silence of others after it has itself written heartbeats for so long: when the
/// database was away, all were silent.
const JUDGES_AFTER: Duration = Duration::from_secs(10);

/// This server's session.
#[derive(Debug)]
pub(super) struct Session {
    app: App,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone)]
struct State {
    id: Arc<str>,
    /// `None`: as long as the server runs.
    valid_until: Option<Instant>,
}

impl Session {
    /// Opens a session. Retries until the database takes it.
    pub(super) async fn open(app: App) -> Self {
        let state = open(&app).await;
        Self { app, state: watch::Sender::new(state) }
    }

    /// The session's id. It is another one after others have taken the session for dead.
    pub(super) fn id(&self) -> Arc<str> {
        Arc::clone(&self.state.borrow().id)
    }

    /// Waits until the session of this id is no longer valid.
    pub(super) async fn lost(&self, id: &str) {
        let mut changes = self.state.subscribe();
        loop {
            let State { id: current, valid_until } = changes.borrow_and_update().clone();
            let left = valid_until.map(|until| until.saturating_duration_since(Instant::now()));
            if &*current != id || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            // Nothing changes any more when the session is dropped, with the server.
            let changed = changes.changed();
            match left {
                Some(left) => drop(tokio::time::timeout(left, changed).await),
                None => drop(changed.await),
            }
        }
    }

    /// Writes heartbeats, and frees the leases of sessions that are dead.
    pub(super) async fn keep(&self) {
        if !self.app.database().has_generations() {
            // One server writes the database.
            return;
        }
        let node = self.app.limits().node.clone();
        let mut last = Instant::now();
        let mut beats_since = None;
        loop {
            let sent = Instant::now();
            match self.app.database().heartbeat(&self.id(), &node).await {
                Ok(heartbeat) if heartbeat.is_deposed => {
                    tracing::warn!(
                        "other servers took this one for dead: its deliveries are theirs"
                    );
                    self.set_valid_until(sent);
                    let state = open(&self.app).await;
                    self.state.send_replace(state);
                    beats_since = None;
                }
                Ok(heartbeat) => {
                    last = sent;
                    self.set_valid_until(sent + VALID_FOR);
                    let since = *beats_since.get_or_insert(sent);
                    for dead in heartbeat.dead {
                        if dead.is_gone || since.elapsed() > JUDGES_AFTER {
                            self.bury(dead).await;
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a heartbeat failed");
                    self.set_valid_until(last + VALID_AFTER_ERROR);
                    beats_since = None;
                }
            }
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        }
    }

    fn set_valid_until(&self, until: Instant) {
        self.state.send_modify(|state| state.valid_until = Some(until));
    }

    async fn bury(&self, dead: DeadSession) {
        let environment = self.app.environment().clone();
        let bury = async move |tx: &WriteTx<'_>| {
            deliveries::bury_session(tx, &dead, environment.now()).await
        };
        let write = self.app.database().write::<_, StorageError, _>("deliveries.bury", bury);
        match write.await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "deliveries of a server that ended are sent again"),
            Err(error) => tracing::debug!(%error, "a server that ended still holds deliveries"),
        }
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        let (id, environment) = (self.id(), self.app.environment().clone());
        let close = async move |tx: &WriteTx<'_>| {
            deliveries::close_session(tx, &id, environment.now()).await
        };
        let write = self.app.database().write::<_, StorageError, _>("deliveries.close", close);
        if let Err(error) = write.await {
            tracing::debug!(%error, "others find out that this server has ended");
        }
    }
}

async fn open(app: &App) -> State {
    loop {
        let environment = app.environment().clone();
        let id: Arc<str> = format!("{:032x}", environment.new_id()).into();
        let (session, node) = (Arc::clone(&id), app.limits().node.clone());
        let sent = Instant::now();
        let open = async move |tx: &WriteTx<'_>| {
            deliveries::open_session(tx, &session, &node, environment.now()).await
        };
        match app.database().write::<_, StorageError, _>("deliveries.open", open).await {
            Ok(freed) => {
                if freed > 0 {
                    tracing::info!(count = freed, "deliveries of an earlier run are sent again");
                }
                let has_others = app.database().has_generations();
                return State { id, valid_until: has_others.then(|| sent + VALID_FOR) };
            }
            Err(error) => tracing::warn!(%error, "deliveries wait: their session can't be opened"),
        }
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}
