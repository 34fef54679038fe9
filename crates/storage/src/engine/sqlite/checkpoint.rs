//! Checkpoints: a thread of their own moves commits from the write-ahead log into the database
//! file.
//!
//! A passive checkpoint blocks no other connection. The log restarts only at a moment without
//! readers. If there is no such moment and the log has grown large, writers wait for one. The
//! log is never truncated here, as that would block all readers for tens of milliseconds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galley_domain::Timestamp;
use galley_runtime::lower_priority;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::Connection;

use super::files::{FileWatch, LOG, rescued_path, with_end};
use super::limits::{LOG_LIMIT, NICENESS};
use super::{connection, file};
use crate::engine::error::{Cause, Error, Result};

/// The interval at which the log's size is checked while writes arrive.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The number of pages from which a checkpoint doesn't wait for idle time. A checkpoint syncs both
/// files, and concurrent commits wait for that, so there should be few.
const LARGE_LOG_PAGES: i64 = 4_096;

/// The limit of pages left to checkpoint before writers wait for the restart of the log, and the
/// limit of rounds to reach it.
const PAGES_LEFT_LIMIT: i64 = 256;
const ROUND_LIMIT: usize = 4;

/// The time without writes after which the log is checkpointed.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The time for which writers wait for a moment without readers, and the back-off after a failure.
const RESTART_TIMEOUT: Duration = Duration::from_millis(40);
const RESTART_BACKOFF: Duration = Duration::from_secs(1);

/// Excludes the writer while the log restarts. Without it, SQLite's busy handler would sleep for up
/// to 25 ms at a time, however soon the restart ends. A mutex would not do: a thread that locks it
/// again at once starves the other.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    is_entered: bool,
}

/// The guard of a side that is in the gate.
#[derive(Debug)]
pub(super) struct GateGuard<'g> {
    gate: &'g Gate,
    release: fn(&mut GateState),
}

impl Gate {
    /// Waits until the gate is open, and enters it for a group of writes.
    pub(super) fn enter(&self) -> GateGuard<'_> {
        let mut state = self.wait_while(self.state.lock(), |state| state.is_closed);
        state.is_entered = true;
        GateGuard { gate: self, release: |state| state.is_entered = false }
    }

    /// Closes the gate, and waits until the writer has left.
    fn close(&self) -> GateGuard<'_> {
        let mut state = self.state.lock();
        state.is_closed = true;
        drop(self.wait_while(state, |state| state.is_entered));
        GateGuard { gate: self, release: |state| state.is_closed = false }
    }

    fn wait_while<'g>(
        &self,
        mut state: MutexGuard<'g, GateState>,
        condition: fn(&GateState) -> bool,
    ) -> MutexGuard<'g, GateState> {
        self.changed.wait_while(&mut state, |state| condition(state));
        state
    }
}

impl Drop for GateGuard<'_> {
    fn drop(&mut self) {
        (self.release)(&mut self.gate.state.lock());
        self.gate.changed.notify_one();
    }
}

/// The thread that runs checkpoints.
#[derive(Debug)]
pub(super) struct Checkpointer {
    signal: Mutex<Option<SyncSender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Signals work to the thread.
#[derive(Debug, Clone)]
pub(super) struct CheckpointSignal(SyncSender<()>);

impl CheckpointSignal {
    /// Signals a commit. Never blocks.
    pub(super) fn committed(&self) {
        // A full channel means that a signal is pending already.
        let _ = self.0.try_send(());
    }
}

impl Checkpointer {
    pub(super) fn start(
        database: &Path,
        gate: Arc<Gate>,
        watch: Arc<FileWatch>,
        now: Timestamp,
    ) -> Result<Self> {
        let connection = connection::open_writer(database)?;
        connection.busy_timeout(RESTART_TIMEOUT)?;
        let database = database.to_owned();
        let clock = CheckpointClock { started: Instant::now(), started_at: now };
        let (signal, signals) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || {
                // The writer's priority, as it waits for this thread now and then.
                lower_priority(NICENESS);
                let log = with_end(&database, LOG);
                let rescue = Rescue { database, clock, state: RescueState::Due };
                let checkpointer = LogCheckpointer {
                    connection: &connection,
                    log: &log,
                    gate: &gate,
                    watch: &watch,
                    backoff_until: None,
                };
                run(checkpointer, rescue, &signals);
            })
            .map_err(|error| Error::Unavailable(Cause::new(error)))?;
        Ok(Self { signal: Mutex::new(Some(signal)), thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn signal(&self) -> CheckpointSignal {
        let signal = self.signal.lock();
        CheckpointSignal(signal.clone().expect("asked for before it is stopped"))
    }

    /// Ends the thread once the last signal is dropped too.
    pub(super) fn stop(&self) {
        self.signal.lock().take();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

fn run(mut checkpointer: LogCheckpointer<'_>, mut rescue: Rescue, signals: &Receiver<()>) {
    // The first checkpoint moves commits that an earlier process left in the log.
    checkpointer.checkpoint_log();
    let mut is_checkpointed = true;
    loop {
        let received = signals.recv_timeout(IDLE_INTERVAL);
        if checkpointer.watch.check().is_err() {
            // The last attempt is made when the server stops: its connections hold the only copy.
            let is_last = matches!(received, Err(RecvTimeoutError::Disconnected));
            rescue.run(checkpointer.connection, is_last);
        }
        match received {
            Ok(()) => {
                is_checkpointed = false;
                std::thread::sleep(CHECK_INTERVAL);
                if !checkpointer.is_large() {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) if is_checkpointed => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        checkpointer.checkpoint_log();
        is_checkpointed = true;
    }
}

/// A clock that continues from the time in [`crate::Options`] without reading the system's clock.
#[derive(Debug, Clone, Copy)]
struct CheckpointClock {
    started: Instant,
    started_at: Timestamp,
}

impl CheckpointClock {
    fn now(self) -> Timestamp {
        let since = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        Timestamp::from_ms(self.started_at.ms().saturating_add(since))
    }
}

/// The interval between attempts to rescue a database, as while the disk is full.
const RESCUE_INTERVAL: Duration = Duration::from_secs(10);

/// Copies a database whose files were unlinked or replaced to a new file beside its path.
#[derive(Debug)]
struct Rescue {
    database: PathBuf,
    clock: CheckpointClock,
    state: RescueState,
}

#[derive(Debug, Clone, Copy)]
enum RescueState {
    Due,
    FailedAt(Instant),
    Done,
}

impl Rescue {
    fn run(&mut self, connection: &Connection, is_last: bool) {
        match self.state {
            RescueState::Done => return,
            RescueState::FailedAt(at) if !is_last && at.elapsed() < RESCUE_INTERVAL => return,
            RescueState::Due | RescueState::FailedAt(_) => {}
        }
        connection::disable_checkpoint_on_close(connection);
        let to = rescued_path(&self.database, self.clock.now());
        match file::rescue(connection, &to) {
            Ok(true) => {
                tracing::error!(
                    file = %to.display(),
                    "the server's current database was copied to this file: stop the server, \
                     replace the database with the file, and start the server again"
                );
            }
            Ok(false) => {
                tracing::error!(
                    file = %to.display(),
                    "the database was copied to this file, but another process had changed it: the \
                     copy is damaged"
                );
            }
            Err(error) if is_last => {
                tracing::error!(
                    %error, file = %to.display(),
                    "the database could not be copied: data that only the deleted files contained \
                     is lost"
                );
            }
            Err(error) => {
                tracing::error!(
                    %error, file = %to.display(),
                    "the database could not be copied and the copy will be retried: do not stop \
                     the server before it succeeds"
                );
                self.state = RescueState::FailedAt(Instant::now());
                return;
            }
        }
        self.state = RescueState::Done;
    }
}

struct LogCheckpointer<'a> {
    connection: &'a Connection,
    log: &'a Path,
    gate: &'a Gate,
    watch: &'a FileWatch,
    /// The end of the back-off after a restart that found no moment without readers.
    backoff_until: Option<Instant>,
}

impl LogCheckpointer<'_> {
    /// Returns true if the log is so large that the checkpoint shouldn't wait for idle time.
    fn is_large(&self) -> bool {
        self.pages_left() >= LARGE_LOG_PAGES || self.is_restart_due()
    }

    /// Returns the number of pages left to checkpoint.
    fn pages_left(&self) -> i64 {
        let pages = self.connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
            Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?)
        });
        pages.unwrap_or(i64::MAX)
    }

    fn is_restart_due(&self) -> bool {
        size(self.log) > LOG_LIMIT && self.backoff_until.is_none_or(|until| until <= Instant::now())
    }

    fn checkpoint_log(&mut self) {
        // Most pages are moved while reads and writes go on. Each round leaves fewer pages, unless
        // they are written faster than they are moved.
        for _ in 0..ROUND_LIMIT {
            self.checkpoint("PASSIVE");
            if self.pages_left() < PAGES_LEFT_LIMIT {
                break;
            }
        }
        if !self.is_restart_due() {
            return;
        }
        let _closed = self.gate.close();
        if !self.checkpoint("RESTART") {
            self.backoff_until = Some(Instant::now() + RESTART_BACKOFF);
        }
    }

    /// Runs a checkpoint, and returns true if it was complete.
    fn checkpoint(&self, mode: &str) -> bool {
        // A replaced file may be another process's database by now.
        if self.watch.check().is_err() {
            return false;
        }
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        match self.connection.query_row(&pragma, [], |row| row.get::<_, i64>(0)) {
            Ok(busy) => busy == 0,
            Err(error) => {
                tracing::warn!(%error, "a checkpoint failed and will be retried");
                false
            }
        }
    }
}

fn size(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |file| file.len())
}
