//! Moves what was committed from the write-ahead log into the database file, off everybody's path.
//!
//! A passive checkpoint never waits for anybody. The log begins anew only at a moment in which nobody reads from it;
//! where readers leave no such moment and it has grown large, writers wait for one. It is never cut here: for as long
//! as that takes, which is tens of milliseconds, nobody could read.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use galley_domain::Timestamp;

use super::files::{FileWatch, LOG, rescued_path, with_end};
use super::limits::{LOG_LIMIT, NICENESS};
use super::{connection, file};
use crate::engine::error::{Cause, Error, Result};
use galley_runtime::lower_priority;

/// How often it looks how much there is to do while writes come in.
const PAUSE: Duration = Duration::from_millis(100);

/// From so many pages on it doesn't wait until nobody writes. A checkpoint syncs both files, which commits of
/// the same moment wait for: better few of them.
const GROWN: i64 = 4_096;

/// What may be left to be folded in while writers wait for the log to begin anew, in pages; and how often it is tried
/// to get there.
const REST_MAX: i64 = 256;
const ROUNDS_MAX: usize = 4;

/// For how long nobody has to write until what there is is folded in.
const QUIET: Duration = Duration::from_secs(1);

/// For how long writers wait for a moment without readers, and for how long they are left alone when there was none.
const MOMENT_MAX: Duration = Duration::from_millis(40);
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// Keeps the writer and a log that begins anew apart. Left to SQLite, a writer that meets one sleeps for up to 25 ms
/// at a time, however soon that is over. A lock would not do: who takes it again at once leaves others no chance.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    is_passed: bool,
}

/// Whoever is in the gate, until this is dropped.
#[derive(Debug)]
pub(super) struct InGate<'g> {
    gate: &'g Gate,
    leave: fn(&mut GateState),
}

impl Gate {
    /// For the writer, while it writes: waits until the gate is open.
    pub(super) fn pass(&self) -> InGate<'_> {
        let mut state = self.wait_while(self.state(), |state| state.is_closed);
        state.is_passed = true;
        InGate { gate: self, leave: |state| state.is_passed = false }
    }

    /// Keeps the writer out, once it has left.
    fn close(&self) -> InGate<'_> {
        let mut state = self.state();
        state.is_closed = true;
        drop(self.wait_while(state, |state| state.is_passed));
        InGate { gate: self, leave: |state| state.is_closed = false }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'g>(
        &self,
        state: MutexGuard<'g, GateState>,
        condition: fn(&GateState) -> bool,
    ) -> MutexGuard<'g, GateState> {
        let waited = self.changed.wait_while(state, |state| condition(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InGate<'_> {
    fn drop(&mut self) {
        (self.leave)(&mut self.gate.state());
        self.gate.changed.notify_one();
    }
}

/// The thread that makes checkpoints.
#[derive(Debug)]
pub(super) struct Checkpointer {
    signal: Mutex<Option<SyncSender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Tells the thread that there is something to do.
#[derive(Debug, Clone)]
pub(super) struct CheckpointSignal(SyncSender<()>);

impl CheckpointSignal {
    /// Something was committed. Never waits.
    pub(super) fn committed(&self) {
        // A full channel means that the thread has been told already.
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
        connection.busy_timeout(MOMENT_MAX)?;
        let database = database.to_owned();
        let clock = Clock { started: Instant::now(), started_at: now };
        let (signal, signals) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || {
                // As the writer, which waits for it now and then.
                lower_priority(NICENESS);
                let log = with_end(&database, LOG);
                let rescue = Rescue { database, clock, state: RescueState::Due };
                let folder = Folder {
                    connection: &connection,
                    log: &log,
                    gate: &gate,
                    watch: &watch,
                    busy_until: None,
                };
                run(folder, rescue, &signals);
            })
            .map_err(|error| Error::Unavailable(Cause::new(error)))?;
        Ok(Self { signal: Mutex::new(Some(signal)), thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn signal(&self) -> CheckpointSignal {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        CheckpointSignal(signal.clone().expect("asked for before it is stopped"))
    }

    /// Ends the thread once the last signal is gone too.
    pub(super) fn stop(&self) {
        self.signal.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

fn run(mut folder: Folder<'_>, mut rescue: Rescue, signals: &Receiver<()>) {
    // The first one folds in what an earlier process left.
    folder.fold();
    let mut is_folded = true;
    loop {
        let received = signals.recv_timeout(QUIET);
        if folder.watch.check().is_err() {
            // The last attempt is made when the server stops: its connections hold the only copy.
            let is_last = matches!(received, Err(RecvTimeoutError::Disconnected));
            rescue.run(folder.connection, is_last);
        }
        match received {
            Ok(()) => {
                is_folded = false;
                std::thread::sleep(PAUSE);
                if !folder.has_grown() {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) if is_folded => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        folder.fold();
        is_folded = true;
    }
}

/// The time without the system's clock, which only [`crate::Options`] brings along.
#[derive(Debug, Clone, Copy)]
struct Clock {
    started: Instant,
    started_at: Timestamp,
}

impl Clock {
    fn now(self) -> Timestamp {
        let since = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        Timestamp::from_ms(self.started_at.ms().saturating_add(since))
    }
}

/// The time between two attempts to rescue a database, as while the disk is full.
const RESCUE_INTERVAL: Duration = Duration::from_secs(10);

/// Copies a database whose files were unlinked or replaced to a new file beside its path.
#[derive(Debug)]
struct Rescue {
    database: PathBuf,
    clock: Clock,
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
        connection::keep_off_files(connection);
        let to = rescued_path(&self.database, self.clock.now());
        match file::rescue(connection, &to) {
            Ok(true) => {
                tracing::error!(
                    file = %to.display(),
                    "the database as the server has it was copied to this file: stop the server, \
                     put the file in the place of the database, and start it again"
                );
            }
            Ok(false) => {
                tracing::error!(
                    file = %to.display(),
                    "the database was copied to this file, but others had changed it: the copy is damaged"
                );
            }
            Err(error) if is_last => {
                tracing::error!(
                    %error, file = %to.display(),
                    "the database could not be copied, and what the deleted files alone held is lost now"
                );
            }
            Err(error) => {
                tracing::error!(
                    %error, file = %to.display(),
                    "the database could not be copied: do not stop the server before it is; the next \
                     attempt follows"
                );
                self.state = RescueState::FailedAt(Instant::now());
                return;
            }
        }
        self.state = RescueState::Done;
    }
}

struct Folder<'a> {
    connection: &'a Connection,
    log: &'a Path,
    gate: &'a Gate,
    watch: &'a FileWatch,
    /// Until when nobody is to wait, as it was for nothing last time.
    busy_until: Option<Instant>,
}

impl Folder<'_> {
    /// Whether there is so much to fold in that it shouldn't wait until nobody writes.
    fn has_grown(&self) -> bool {
        self.rest() >= GROWN || self.is_to_begin_anew()
    }

    /// How many pages are to be folded in.
    fn rest(&self) -> i64 {
        let pages = self.connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
            Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?)
        });
        pages.unwrap_or(i64::MAX)
    }

    fn is_to_begin_anew(&self) -> bool {
        size(self.log) > LOG_LIMIT && self.busy_until.is_none_or(|until| until <= Instant::now())
    }

    fn fold(&mut self) {
        // Most of it while everybody goes on. What came meanwhile is less each time, unless there is more written
        // than can be folded in.
        for _ in 0..ROUNDS_MAX {
            self.checkpoint("PASSIVE");
            if self.rest() < REST_MAX {
                break;
            }
        }
        if !self.is_to_begin_anew() {
            return;
        }
        let _closed = self.gate.close();
        if !self.checkpoint("RESTART") {
            self.busy_until = Some(Instant::now() + LEFT_ALONE);
        }
    }

    /// Whether it did all that it was to do.
    fn checkpoint(&self, mode: &str) -> bool {
        // Others may have written a file that is no longer this one's.
        if self.watch.check().is_err() {
            return false;
        }
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        match self.connection.query_row(&pragma, [], |row| row.get::<_, i64>(0)) {
            Ok(busy) => busy == 0,
            Err(error) => {
                tracing::warn!(%error, "a checkpoint failed; the next one tries again");
                false
            }
        }
    }
}

fn size(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |file| file.len())
}
