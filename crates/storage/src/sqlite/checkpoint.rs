//! Moves what was committed from the write-ahead log into the database file, off everybody's path.
//!
//! A passive checkpoint never waits for anybody and never shrinks the log; when the log has grown
//! large because readers kept it busy, one that truncates it is tried.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::connection;
use crate::error::{Cause, Error, Result};

/// How often it looks how much there is to do while writes come in.
const PAUSE: Duration = Duration::from_millis(100);

/// From so many pages on it doesn't wait until nobody writes. A checkpoint syncs both files, which commits of
/// the same moment wait for: better few of them.
const GROWN: i64 = 4_096;

/// For how long nobody has to write until what there is is folded in.
const QUIET: Duration = Duration::from_secs(1);

/// From this size on the log is cut.
const LOG_MAX: u64 = 64 * 1024 * 1024;

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
    pub(super) fn start(database: &Path) -> Result<Self> {
        let connection = connection::open_writer(database)?;
        connection.busy_timeout(PAUSE)?;
        let log = PathBuf::from(format!("{}-wal", database.display()));
        let (signal, signals) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || run(&connection, &log, &signals))
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

fn run(connection: &Connection, log: &Path, signals: &Receiver<()>) {
    // The first one folds in what an earlier process left.
    fold(connection, log);
    let mut is_folded = true;
    loop {
        match signals.recv_timeout(QUIET) {
            Ok(()) => {
                is_folded = false;
                std::thread::sleep(PAUSE);
                if !has_grown(connection, log) {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) if is_folded => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        fold(connection, log);
        is_folded = true;
    }
}

/// Whether there is so much to fold in that it shouldn't wait until nobody writes.
fn has_grown(connection: &Connection, log: &Path) -> bool {
    let pages = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
        Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?)
    });
    pages.unwrap_or(i64::MAX) >= GROWN || size(log) > LOG_MAX
}

fn fold(connection: &Connection, log: &Path) {
    let mode = if size(log) > LOG_MAX { "TRUNCATE" } else { "PASSIVE" };
    let pragma = format!("PRAGMA wal_checkpoint({mode})");
    if let Err(error) = connection.query_row(&pragma, [], |_| Ok(())) {
        tracing::warn!(%error, "a checkpoint failed; the next one tries again");
    }
}

fn size(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |file| file.len())
}
