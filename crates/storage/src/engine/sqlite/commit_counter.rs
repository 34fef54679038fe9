//! The count of a SQLite file's commits by all processes, and the scopes of our own.
//!
//! SQLite keeps the count in the header of the log's index, the file that ends in `-shm`
//! (<https://www.sqlite.org/walformat.html>, section 2.1). Every commit increments the field
//! `iChange`, by which connections detect changes. Reading it takes one `pread`, a quarter of the
//! cost of `PRAGMA data_version` on a connection. The header has two copies; while they differ, a
//! commit is in progress.
//!
//! Two kinds of changes must not be missed: those of our own writer, and any of another process.
//! After a commit, the writer compares `PRAGMA data_version` on its own connection with the value
//! at the start. If it is equal, no other process has committed. The writer then records the scope
//! of its commit, and marks the count as *recorded* ([`CommitCounter::commit`]).
//!
//! A reader that finds another count than the recorded one has two cases. If a commit of our own
//! is being recorded, the reader waits some microseconds. Otherwise another process has committed,
//! and everything counts as changed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;

use super::files::open_index;
use crate::engine::change_tracking::{ChangeScope, DataVersion, LastModified, LastModifiedMap};
use crate::engine::error::Result;

/// The supported version of the header's format.
const HEADER_VERSION: u32 = 3_007_000;

/// The size of one copy of the header, in bytes.
const HEADER_SIZE: usize = 48;

/// The offset of the commit count.
const COUNT_OFFSET: usize = 8;

/// The offset of the checksum of the log's last frame. It tells apart two histories with the same
/// count.
const CHECKSUM_OFFSET: usize = 24;

/// The distance between epochs of the count. The count restarts when SQLite recreates the index, or
/// after this many commits.
const EPOCH_SIZE: u64 = 1 << 32;

/// The commits of one file.
#[derive(Debug)]
pub(crate) struct CommitCounter {
    index: Option<Arc<File>>,
    /// The last count whose changes are recorded.
    recorded: AtomicU64,
    /// The checksum that belongs to it.
    checksum: AtomicU64,
    /// An offset added to the count, so that data versions only grow.
    epoch: AtomicU64,
    /// Held during our own commits, and while commits of other processes are recorded.
    commit_lock: Mutex<()>,
    changes: LastModifiedMap,
}

impl CommitCounter {
    /// Creates the counter of the open file at `path`.
    pub(super) fn of(path: &Path) -> Self {
        let index = open_index(path);
        if let Err(error) = &index {
            tracing::warn!(
                %error,
                "the write-ahead log's index can't be read: the response cache is disabled"
            );
        }
        let commits = Self {
            index: index.ok(),
            recorded: AtomicU64::new(0),
            checksum: AtomicU64::new(0),
            epoch: AtomicU64::new(EPOCH_SIZE),
            commit_lock: Mutex::default(),
            changes: LastModifiedMap::default(),
        };
        // Marks earlier commits as recorded: no cached response is older.
        commits.data_version();
        commits
    }

    /// Returns when `workspace` was last modified.
    pub(crate) fn last_modified(&self, workspace: galley_domain::WorkspaceId) -> LastModified {
        self.changes.of(workspace)
    }

    /// Returns when each workspace was last modified.
    pub(super) fn last_modified_map(&self) -> &LastModifiedMap {
        &self.changes
    }

    /// Returns the current data version, or `None` if the index can't be read or a commit is
    /// changing it.
    pub(crate) fn data_version(&self) -> Option<DataVersion> {
        let recorded = self.recorded.load(Ordering::SeqCst);
        let (now, checksum) = self.now()?;
        if now == recorded && checksum == self.checksum.load(Ordering::SeqCst) {
            return Some(DataVersion(now));
        }
        // A commit of our own may have been recorded in between.
        if recorded < now && now <= self.recorded.load(Ordering::SeqCst) {
            return Some(DataVersion(now));
        }
        // Waits for the writer. A query would take longer, and the writer may be waiting for this
        // thread's processor.
        let _guard = self.commit_lock.lock();
        self.record_other_commits()
    }

    /// Records all other commits as changes of everything, by other processes. The caller holds
    /// `commit_lock`.
    fn record_other_commits(&self) -> Option<DataVersion> {
        let (mut now, checksum) = self.now()?;
        let recorded = self.recorded.load(Ordering::SeqCst);
        let is_another = checksum != self.checksum.load(Ordering::SeqCst);
        if now < recorded || (now == recorded && is_another) {
            self.epoch.fetch_add(EPOCH_SIZE, Ordering::SeqCst);
            now += EPOCH_SIZE;
        }
        if now > recorded {
            self.changes.record_everything(now);
            self.set_recorded(now, checksum);
        }
        Some(DataVersion(now))
    }

    /// Runs `commit`, which commits the writes of `connection`, and records their scope.
    /// The connection has begun a write transaction. `before` is the data version after that, and
    /// no other connection has written since.
    pub(super) fn commit(
        &self,
        connection: &Connection,
        before: Option<DataVersion>,
        scope: &ChangeScope,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.index.is_none() {
            return commit();
        }
        let guard = self.commit_lock.lock();
        let seen = data_version(connection);
        let result = commit();
        let after = self.now();
        if let (Ok(()), Some((after, checksum)), Some(seen)) = (&result, after, seen)
            && before.is_some_and(|DataVersion(before)| before <= after)
            && data_version(connection) == Some(seen)
        {
            self.changes.record(scope, after);
            self.set_recorded(after, checksum);
        } else {
            self.record_other_commits();
        }
        drop(guard);
        result
    }

    fn set_recorded(&self, now: u64, checksum: u64) {
        self.checksum.store(checksum, Ordering::SeqCst);
        self.recorded.store(now, Ordering::SeqCst);
    }

    /// Returns the count and the checksum, or `None` while a commit is changing them.
    fn now(&self) -> Option<(u64, u64)> {
        let epoch = self.epoch.load(Ordering::SeqCst);
        let mut header = [0; 2 * HEADER_SIZE];
        self.index.as_ref()?.read_exact_at(&mut header, 0).ok()?;
        let (first, second) = header.split_at(HEADER_SIZE);
        let field = |at: usize| first[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
        if first != second || field(0)? != HEADER_VERSION {
            return None;
        }
        let checksum =
            u64::from(field(CHECKSUM_OFFSET)?) << 32 | u64::from(field(CHECKSUM_OFFSET + 4)?);
        Some((epoch + u64::from(field(COUNT_OFFSET)?), checksum))
    }
}

/// Returns a number that changes when another connection has committed.
fn data_version(connection: &Connection) -> Option<i64> {
    let mut statement = connection.prepare_cached("PRAGMA data_version").ok()?;
    statement.query_row([], |row| row.get(0)).ok()
}
