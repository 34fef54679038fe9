//! Data versions and last-modified times of workspaces, which decide the validity of cached
//! responses.
//!
//! A cached response is valid as long as none of its rows has changed. Two inputs decide that: the
//! store's own count of commits, read for each request ([`crate::Database::data_version`]), and the
//! scope of each transaction's changes, which its statements declare ([`Affects`]). Both err on the
//! side of invalidation:
//!
//! - A change becomes visible at its commit. From then on, no data version is returned before the
//!   change is recorded.
//! - A statement that declares no workspace counts as a change of every workspace.
//! - A commit of another process counts as a change of everything.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use galley_domain::publication::ContentView;
use galley_domain::{ContentPieceId, EventId, WorkspaceId};
use parking_lot::{Mutex, RwLock};

/// A data version: a position in the store's history of commits. Data read after it was returned is
/// at least as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataVersion(pub(crate) u64);

/// A validator that changes with each change that cached responses show of a workspace. It serves
/// databases that several programs write. If it is equal, nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// The start time of the database server. After a failover it differs: a commit that was read
    /// on the lost server may be missing on its successor.
    server: i64,
    /// A random number. It is replaced by each change that creates no event, and in the published
    /// view by each change that the view shows.
    number: i64,
    /// The last event; `None` in the published view.
    event: Option<EventId>,
}

impl Generation {
    /// Creates a generation from the values in the database.
    pub(crate) fn of(server: i64, number: i64, event: Option<EventId>) -> Self {
        Self { server, number, event }
    }

    /// Returns a number that was never used before.
    pub(crate) fn next_number() -> i64 {
        rand::random()
    }
}

/// The last-modified versions of one workspace, as a view shows it.
#[derive(Debug, Clone, Default)]
pub struct LastModified {
    view: ContentView,
    workspace: Arc<WorkspaceLastModified>,
    installation: Arc<InstallationLastModified>,
}

/// The last-modified versions of data of all workspaces.
#[derive(Debug, Default)]
struct InstallationLastModified {
    everything: AtomicU64,
    /// The last end of a session.
    sessions: AtomicU64,
}

/// The last-modified versions of a workspace's data.
#[derive(Debug, Default)]
struct WorkspaceLastModified {
    access: AtomicU64,
    current: ViewLastModified,
    published: ViewLastModified,
}

/// The last-modified versions of the data that one view shows.
#[derive(Debug, Default)]
struct ViewLastModified {
    anything: AtomicU64,
    /// Changes that affect more than one piece.
    shared: AtomicU64,
    /// Pieces that were changed alone.
    pieces: Mutex<HashMap<ContentPieceId, u64>>,
}

/// The limit of pieces with a version of their own. Beyond it, all pieces of the workspace count as
/// changed.
const TRACKED_PIECE_LIMIT: usize = 4_096;

impl WorkspaceLastModified {
    fn record(&self, what: ChangedPart, version: u64) {
        match what {
            ChangedPart::Piece(view, piece) => self.of(view).record_piece(piece, version),
            ChangedPart::Content | ChangedPart::Access => {
                if what == ChangedPart::Access {
                    self.access.fetch_max(version, Ordering::SeqCst);
                }
                for view in [&self.current, &self.published] {
                    view.anything.fetch_max(version, Ordering::SeqCst);
                    view.shared.fetch_max(version, Ordering::SeqCst);
                }
            }
        }
    }

    fn of(&self, view: ContentView) -> &ViewLastModified {
        match view {
            ContentView::Current => &self.current,
            ContentView::Published => &self.published,
        }
    }
}

impl ViewLastModified {
    fn record_piece(&self, piece: ContentPieceId, version: u64) {
        self.anything.fetch_max(version, Ordering::SeqCst);
        let mut pieces = self.pieces.lock();
        if pieces.len() == TRACKED_PIECE_LIMIT && !pieces.contains_key(&piece) {
            self.shared.fetch_max(version, Ordering::SeqCst);
            pieces.clear();
        }
        pieces.insert(piece, version);
    }
}

impl LastModified {
    /// Returns those of the same workspace in another view.
    #[must_use]
    pub fn in_view(self, view: ContentView) -> Self {
        Self { view, ..self }
    }

    /// Returns true if data read at `data_version` or later is still current.
    pub fn is_unchanged_since(&self, version: DataVersion) -> bool {
        self.no_later_than(&self.view().anything, version)
    }

    /// Like [`LastModified::is_unchanged_since`], for one piece and everything shown with it.
    pub fn piece_is_unchanged_since(&self, piece: ContentPieceId, version: DataVersion) -> bool {
        let pieces = self.view().pieces.lock();
        let own = pieces.get(&piece).is_none_or(|&last| last <= version.0);
        // Read while the lock is held: before an entry is evicted, it is merged into `shared`.
        own && self.no_later_than(&self.view().shared, version)
    }

    /// Like [`LastModified::is_unchanged_since`], for the data that several pieces share.
    pub fn shared_is_unchanged_since(&self, version: DataVersion) -> bool {
        self.no_later_than(&self.view().shared, version)
    }

    /// Like [`LastModified::is_unchanged_since`], for the permissions of tokens.
    pub fn permissions_are_unchanged_since(&self, version: DataVersion) -> bool {
        self.no_later_than(&self.workspace.access, version)
    }

    /// Returns true if no session has ended since `version`, except by expiry.
    pub fn sessions_are_unchanged_since(&self, version: DataVersion) -> bool {
        self.no_later_than(&self.installation.sessions, version)
    }

    fn view(&self) -> &ViewLastModified {
        self.workspace.of(self.view)
    }

    fn no_later_than(&self, clock: &AtomicU64, version: DataVersion) -> bool {
        let last = |clock: &AtomicU64| clock.load(Ordering::SeqCst);
        last(clock).max(last(&self.installation.everything)) <= version.0
    }
}

/// The last-modified map of all workspaces.
#[derive(Debug, Default)]
pub(crate) struct LastModifiedMap {
    installation: Arc<InstallationLastModified>,
    workspaces: RwLock<HashMap<WorkspaceId, Arc<WorkspaceLastModified>>>,
}

impl LastModifiedMap {
    pub(crate) fn of(&self, workspace: WorkspaceId) -> LastModified {
        let installation = Arc::clone(&self.installation);
        let view = ContentView::Current;
        LastModified { view, workspace: self.of_workspace(workspace), installation }
    }

    fn of_workspace(&self, workspace: WorkspaceId) -> Arc<WorkspaceLastModified> {
        if let Some(known) = self.workspaces.read().get(&workspace) {
            return Arc::clone(known);
        }
        Arc::clone(self.workspaces.write().entry(workspace).or_default())
    }

    /// Records the changes of `scope`, committed or about to be, at this data version.
    pub(crate) fn record(&self, scope: &ChangeScope, version: u64) {
        if scope.everything {
            self.record_everything(version);
        }
        if scope.sessions {
            self.installation.sessions.fetch_max(version, Ordering::SeqCst);
        }
        for &(workspace, what) in &scope.workspaces {
            self.of_workspace(workspace).record(what, version);
        }
    }

    pub(crate) fn record_everything(&self, version: u64) {
        self.installation.everything.fetch_max(version, Ordering::SeqCst);
    }
}

/// The data that a statement changes, of the data that cached responses show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affects {
    /// Data that no cached response shows (listed at [`crate::Database::data_version`]).
    Nothing,
    /// One piece in the current view.
    Piece(WorkspaceId, ContentPieceId),
    /// One piece in the published view.
    PublishedPiece(WorkspaceId, ContentPieceId),
    /// Pieces, groups, tags or variants of a workspace.
    Content(WorkspaceId),
    /// Permissions of a workspace, and all that its responses show.
    Access(WorkspaceId),
    /// The validity of sessions, and nothing that responses show.
    Sessions,
    /// Data of any workspace.
    Everything,
}

/// The scope of a transaction's changes, limited to data that cached responses show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeScope {
    everything: bool,
    sessions: bool,
    workspaces: Vec<(WorkspaceId, ChangedPart)>,
}

/// The limit of entries in a scope. Beyond it, a change of a piece counts as one of all pieces.
const SCOPE_ENTRY_LIMIT: usize = 256;

/// The part of a workspace that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedPart {
    /// One piece only, in one view.
    Piece(ContentView, ContentPieceId),
    Content,
    /// Permissions, and everything that responses show of them.
    Access,
}

impl ChangeScope {
    /// Adds the changes of a statement.
    pub(crate) fn add_change(&mut self, affects: Affects) {
        match affects {
            Affects::Nothing => {}
            Affects::Piece(workspace, piece) => {
                self.add_workspace((workspace, ChangedPart::Piece(ContentView::Current, piece)));
            }
            Affects::PublishedPiece(workspace, piece) => {
                self.add_workspace((workspace, ChangedPart::Piece(ContentView::Published, piece)));
            }
            Affects::Content(workspace) => self.add_workspace((workspace, ChangedPart::Content)),
            Affects::Access(workspace) => self.add_workspace((workspace, ChangedPart::Access)),
            Affects::Sessions => self.sessions = true,
            Affects::Everything => self.everything = true,
        }
    }

    /// Returns true if every workspace may have changed.
    pub(crate) fn affects_all_workspaces(&self) -> bool {
        self.everything
    }

    /// Returns true if data that several pieces of the workspace share may have changed.
    pub(crate) fn affects_shared_data(&self, workspace: WorkspaceId) -> bool {
        let is_shared = |&(changed, part): &(WorkspaceId, ChangedPart)| {
            changed == workspace && !matches!(part, ChangedPart::Piece(..))
        };
        self.everything || self.workspaces.iter().any(is_shared)
    }

    /// Returns the workspaces in the scope.
    pub(crate) fn workspaces(&self) -> BTreeSet<WorkspaceId> {
        self.workspaces.iter().map(|&(workspace, _)| workspace).collect()
    }

    /// Returns the workspaces whose published view has changed.
    pub(crate) fn published_workspaces(&self) -> BTreeSet<WorkspaceId> {
        let is_published =
            |part: &ChangedPart| !matches!(part, ChangedPart::Piece(ContentView::Current, _));
        let changed = self.workspaces.iter().filter(|(_, part)| is_published(part));
        changed.map(|&(workspace, _)| workspace).collect()
    }

    fn add_workspace(&mut self, changed: (WorkspaceId, ChangedPart)) {
        let is_long = self.workspaces.len() >= SCOPE_ENTRY_LIMIT;
        let changed = match changed {
            (workspace, ChangedPart::Piece(..)) if is_long => (workspace, ChangedPart::Content),
            other => other,
        };
        if !self.workspaces.contains(&changed) {
            self.workspaces.push(changed);
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.everything |= other.everything;
        self.sessions |= other.sessions;
        other.workspaces.into_iter().for_each(|changed| self.add_workspace(changed));
    }
}
