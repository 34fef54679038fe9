//! The count of a SQLite file's commits, by any process, and what ours changed.
//!
//! SQLite keeps the count itself, in the header of the log's index, the file that ends in `-shm`
//! (<https://www.sqlite.org/walformat.html>, section 2.1): the field `iChange`, which every commit raises, and by
//! which connections learn that there is something new. It is read there with one `pread`, a quarter of what asking
//! a connection (`PRAGMA data_version`) costs. The header stands twice; while the two differ a commit is under way.
//!
//! Two things must not be missed: what our own writer changed, and that another process changed anything. After a
//! commit the writer knows, by `PRAGMA data_version` on its own connection, whether others have committed since it
//! began. If not, it notes what its own commit changed, and then that the count is *explained* ([`Commits::commit`]). A
//! reader that finds another count than the explained one has found either a commit of ours that is being explained,
//! for which it waits some microseconds, or somebody else's, then everything counts as changed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::files::open_index;
use crate::engine::change_tracking::{LastChange, LastChanges, Moment, Reach};
use crate::engine::error::Result;

/// The format of the header that is known here.
const VERSION: u32 = 3_007_000;

/// The bytes of one copy of the header.
const HEADER: usize = 48;

/// Where in it the count of commits is.
const COUNT: usize = 8;

/// Where the checksum of the log's last frame is, by which two histories of the same count differ.
const CHECKSUM: usize = 24;

/// The count begins anew when SQLite has to make the index anew, or after so many commits.
const AGE: u64 = 1 << 32;

/// The commits of one file.
#[derive(Debug)]
pub(super) struct Commits {
    index: Option<Arc<File>>,
    /// Up to here it is known what was changed.
    explained: AtomicU64,
    /// The checksum that belongs to it.
    checksum: AtomicU64,
    /// What is added to the count, so that moments only grow.
    age: AtomicU64,
    /// Held while a commit of ours is under way, and by who explains one of others.
    under_way: Mutex<()>,
    changes: LastChanges,
}

impl Commits {
    /// Of the file at `path`, which is open.
    pub(super) fn of(path: &Path) -> Self {
        let index = open_index(path);
        if let Err(error) = &index {
            tracing::warn!(%error, "the log's index can't be read: no answer is remembered");
        }
        let commits = Self {
            index: index.ok(),
            explained: AtomicU64::new(0),
            checksum: AtomicU64::new(0),
            age: AtomicU64::new(AGE),
            under_way: Mutex::default(),
            changes: LastChanges::default(),
        };
        // What was before is nobody's business.
        commits.moment();
        commits
    }

    /// When `workspace` was last changed.
    pub(super) fn last_change(&self, workspace: galley_domain::WorkspaceId) -> LastChange {
        self.changes.of(workspace)
    }

    /// The present, if it can be told.
    pub(super) fn moment(&self) -> Option<Moment> {
        let explained = self.explained.load(Ordering::SeqCst);
        let (now, checksum) = self.now()?;
        if now == explained && checksum == self.checksum.load(Ordering::SeqCst) {
            return Some(Moment(now));
        }
        // A commit of ours may have come in between.
        if explained < now && now <= self.explained.load(Ordering::SeqCst) {
            return Some(Moment(now));
        }
        // To read the store instead would take longer than the writer needs now, and it may be waiting for this thread
        // to leave it the processor.
        let _guard = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        self.explain_others()
    }

    /// Takes what isn't explained to have been others' and to have changed everything. To be called with `under_way`
    /// held.
    fn explain_others(&self) -> Option<Moment> {
        let (mut now, checksum) = self.now()?;
        let explained = self.explained.load(Ordering::SeqCst);
        let is_another = checksum != self.checksum.load(Ordering::SeqCst);
        if now < explained || (now == explained && is_another) {
            self.age.fetch_add(AGE, Ordering::SeqCst);
            now += AGE;
        }
        if now > explained {
            self.changes.note_everything(now);
            self.explain(now, checksum);
        }
        Some(Moment(now))
    }

    /// Commits what `connection` has written, by `commit`; `reach` is what that changes. The connection has begun its
    /// transaction as a writer, `before` is the moment after that, and nobody else has written since.
    pub(super) fn commit(
        &self,
        connection: &Connection,
        before: Option<Moment>,
        reach: &Reach,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.index.is_none() {
            return commit();
        }
        let guard = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = data_version(connection);
        let result = commit();
        let after = self.now();
        if let (Ok(()), Some((after, checksum)), Some(seen)) = (&result, after, seen)
            && before.is_some_and(|Moment(before)| before <= after)
            && data_version(connection) == Some(seen)
        {
            self.changes.note(reach, after);
            self.explain(after, checksum);
        } else {
            self.explain_others();
        }
        drop(guard);
        result
    }

    fn explain(&self, now: u64, checksum: u64) {
        self.checksum.store(checksum, Ordering::SeqCst);
        self.explained.store(now, Ordering::SeqCst);
    }

    /// The count as it is, and the checksum, unless a commit is just changing them.
    fn now(&self) -> Option<(u64, u64)> {
        let age = self.age.load(Ordering::SeqCst);
        let mut header = [0; 2 * HEADER];
        self.index.as_ref()?.read_exact_at(&mut header, 0).ok()?;
        let (first, second) = header.split_at(HEADER);
        let field = |at: usize| first[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
        if first != second || field(0)? != VERSION {
            return None;
        }
        let checksum = u64::from(field(CHECKSUM)?) << 32 | u64::from(field(CHECKSUM + 4)?);
        Some((age + u64::from(field(COUNT)?), checksum))
    }
}

/// Changes when another connection than this one has committed.
fn data_version(connection: &Connection) -> Option<i64> {
    let mut statement = connection.prepare_cached("PRAGMA data_version").ok()?;
    statement.query_row([], |row| row.get(0)).ok()
}
