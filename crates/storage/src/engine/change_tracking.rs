//! Data versions and last-modified times of workspaces, which decide the validity of cached
//! responses.
//!
//! A cached response is valid as long as none of its rows has changed. Two inputs decide that: the
//! store's own count of commits, read for each request ([`crate::Database::data_version`]), and the scope
//! of each transaction's changes, derived from its statements ([`ChangeScope`]). Both err on the side of
//! invalidation:
//!
//! - A change becomes visible at its commit. From then on, no data version is returned before the
//!   change is recorded.
//! - A statement whose first parameter is not its workspace counts as a change of every workspace.
//! - A commit of another process counts as a change of everything.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use galley_domain::{ContentPieceId, EventId, WorkspaceId};

use crate::engine::value::Value;

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
    /// A random number, replaced by each change that creates no event.
    number: i64,
    /// The last event.
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

/// The last-modified versions of one workspace.
#[derive(Debug, Clone, Default)]
pub struct LastModified {
    workspace: Arc<WorkspaceLastModified>,
    everything: Arc<AtomicU64>,
}

/// The last-modified versions of a workspace's data.
#[derive(Debug, Default)]
struct WorkspaceLastModified {
    anything: AtomicU64,
    /// Changes that affect more than one piece.
    shared: AtomicU64,
    access: AtomicU64,
    /// Pieces that were changed alone.
    pieces: Mutex<HashMap<ContentPieceId, u64>>,
}

/// The limit of pieces with a version of their own. Beyond it, all pieces of the workspace count as
/// changed.
const TRACKED_PIECE_LIMIT: usize = 4_096;

impl WorkspaceLastModified {
    fn record(&self, what: ChangedPart, moment: u64) {
        self.anything.fetch_max(moment, Ordering::SeqCst);
        if what == ChangedPart::Access {
            self.access.fetch_max(moment, Ordering::SeqCst);
        }
        let ChangedPart::Piece(piece) = what else {
            self.shared.fetch_max(moment, Ordering::SeqCst);
            return;
        };
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        if pieces.len() == TRACKED_PIECE_LIMIT && !pieces.contains_key(&piece) {
            self.shared.fetch_max(moment, Ordering::SeqCst);
            pieces.clear();
        }
        pieces.insert(piece, moment);
    }
}

impl LastModified {
    /// Returns true if data read at `data_version` or later is still current.
    pub fn is_not_after(&self, moment: DataVersion) -> bool {
        self.no_later_than(&self.workspace.anything, moment)
    }

    /// Like [`LastModified::is_not_after`], for one piece and everything shown with it.
    pub fn piece_is_not_after(&self, piece: ContentPieceId, moment: DataVersion) -> bool {
        let pieces = self.workspace.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let own = pieces.get(&piece).is_none_or(|&last| last <= moment.0);
        // Read while the lock is held: before an entry is evicted, it is merged into `shared`.
        own && self.no_later_than(&self.workspace.shared, moment)
    }

    /// Like [`LastModified::is_not_after`], for the permissions of tokens.
    pub fn permissions_are_not_after(&self, moment: DataVersion) -> bool {
        self.no_later_than(&self.workspace.access, moment)
    }

    fn no_later_than(&self, clock: &AtomicU64, moment: DataVersion) -> bool {
        let last = |clock: &AtomicU64| clock.load(Ordering::SeqCst);
        last(clock).max(last(&self.everything)) <= moment.0
    }
}

/// The last-modified map of all workspaces.
#[derive(Debug, Default)]
pub(crate) struct LastModifiedMap {
    everything: Arc<AtomicU64>,
    workspaces: RwLock<HashMap<WorkspaceId, Arc<WorkspaceLastModified>>>,
}

impl LastModifiedMap {
    pub(crate) fn of(&self, workspace: WorkspaceId) -> LastModified {
        let everything = Arc::clone(&self.everything);
        let known = self.workspaces.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(workspace) = known.get(&workspace) {
            return LastModified { workspace: Arc::clone(workspace), everything };
        }
        drop(known);
        let mut known = self.workspaces.write().unwrap_or_else(PoisonError::into_inner);
        LastModified { workspace: Arc::clone(known.entry(workspace).or_default()), everything }
    }

    /// Records the changes of `reach`, committed or about to be, at this data version.
    pub(crate) fn record(&self, reach: &ChangeScope, moment: u64) {
        if reach.everything {
            self.everything.fetch_max(moment, Ordering::SeqCst);
        }
        for &(workspace, what) in &reach.workspaces {
            self.of(workspace).workspace.record(what, moment);
        }
    }

    pub(crate) fn record_everything(&self, moment: u64) {
        self.everything.fetch_max(moment, Ordering::SeqCst);
    }
}

/// The scope of a transaction's changes, limited to data that cached responses show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeScope {
    everything: bool,
    workspaces: Vec<(WorkspaceId, ChangedPart)>,
}

/// The limit of entries in a scope. Beyond it, a change of a piece counts as one of all pieces.
const SCOPE_ENTRY_LIMIT: usize = 256;

/// The part of a workspace that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedPart {
    /// One piece only.
    Piece(ContentPieceId),
    Content,
    /// Permissions, and everything that responses show of them.
    Access,
}

/// Tables that don't affect permissions.
const CONTENT_TABLES: [&str; 4] = ["content_group_paths", "content_groups", "tags", "variants"];

/// Tables of pieces; each row belongs to one piece.
const PIECE_TABLES: [&str; 9] = [
    "content_piece_contents",
    "content_piece_custom_data",
    "content_piece_members",
    "content_piece_tags",
    "content_piece_variant_contents",
    "content_piece_variant_members",
    "content_piece_variant_tags",
    "content_piece_variants",
    "content_pieces",
];

/// Tables that no cached response shows (listed at [`crate::Database::data_version`]).
const UNCACHED_TABLES: [&str; 16] = [
    "deliveries",
    "delivery_heartbeats",
    "delivery_leases",
    "delivery_sessions",
    "event_matches",
    "events",
    "idempotency_keys",
    "invites",
    "key_check",
    "mails",
    "order_spreads",
    "schema_migrations",
    "webhook_queues",
    "webhook_recoveries",
    "webhooks",
    "workspace_sequences",
];

impl ChangeScope {
    /// Adds the changes of a statement with these parameters.
    pub(crate) fn add_statement(&mut self, sql: &str, params: &[Value<'_>]) {
        let table = changed_table(sql);
        // Responses don't show a new user before it becomes a member.
        let is_new_user = table == Some("users") && sql.starts_with("INSERT");
        if is_new_user || table.is_some_and(|table| UNCACHED_TABLES.contains(&table)) {
            return;
        }
        let is_of = |tables: &[&str]| table.is_some_and(|table| tables.contains(&table));
        let what = if is_of(&PIECE_TABLES) {
            only_piece(params).map_or(ChangedPart::Content, ChangedPart::Piece)
        } else if is_of(&CONTENT_TABLES) {
            ChangedPart::Content
        } else {
            ChangedPart::Access
        };
        match named_workspace(params) {
            Some(workspace) => self.add_workspace((workspace, what)),
            None => self.everything = true,
        }
    }

    /// Returns true if every workspace may have changed.
    pub(crate) fn affects_all_workspaces(&self) -> bool {
        self.everything
    }

    /// Returns the workspaces in the scope.
    pub(crate) fn workspaces(&self) -> BTreeSet<WorkspaceId> {
        self.workspaces.iter().map(|&(workspace, _)| workspace).collect()
    }

    fn add_workspace(&mut self, changed: (WorkspaceId, ChangedPart)) {
        let is_long = self.workspaces.len() >= SCOPE_ENTRY_LIMIT;
        let changed = match changed {
            (workspace, ChangedPart::Piece(_)) if is_long => (workspace, ChangedPart::Content),
            other => other,
        };
        if !self.workspaces.contains(&changed) {
            self.workspaces.push(changed);
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.everything |= other.everything;
        other.workspaces.into_iter().for_each(|changed| self.add_workspace(changed));
    }
}

/// Returns the only workspace and the only piece in the scope of a statement with these parameters.
pub(crate) fn only_workspace_and_piece(
    sql: &str,
    params: &[Value<'_>],
) -> (Option<WorkspaceId>, Option<ContentPieceId>) {
    let mut reach = ChangeScope::default();
    reach.add_statement(sql, params);
    match reach.workspaces.as_slice() {
        [(workspace, ChangedPart::Piece(piece))] => (Some(*workspace), Some(*piece)),
        [(workspace, _)] => (Some(*workspace), None),
        _ => (None, None),
    }
}

/// Returns the table that a statement changes.
fn changed_table(sql: &str) -> Option<&str> {
    let mut words = sql.split_whitespace();
    match words.next()? {
        "UPDATE" => words.next(),
        "INSERT" | "DELETE" => words.nth(1),
        _ => None,
    }
}

/// Returns the workspace in the first parameter. By this crate's convention, such a statement
/// changes no other workspace.
fn named_workspace(params: &[Value<'_>]) -> Option<WorkspaceId> {
    match params.first()? {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns the only piece among the parameters. By this crate's convention, such a statement
/// changes no other piece.
fn only_piece(params: &[Value<'_>]) -> Option<ContentPieceId> {
    let mut named = params.iter().filter_map(|value| match value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    });
    let first = named.next()?;
    named.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_scope_follows_from_table_and_first_parameter() {
        let workspace = WorkspaceId::new(7);
        let of = |sql: &str, params: &[Value<'_>]| {
            let mut reach = ChangeScope::default();
            reach.add_statement(sql, params);
            reach
        };
        let nothing = ChangeScope::default();
        let everything = ChangeScope { everything: true, workspaces: Vec::new() };
        let own_of = |what| ChangeScope { everything: false, workspaces: vec![(workspace, what)] };
        let own = own_of(ChangedPart::Content);
        let named = [Value::from(workspace), Value::Int(1)];
        assert_eq!(of("UPDATE tags SET label = ?2 WHERE workspace_id = ?1", &named), own);
        let (piece, other) = (ContentPieceId::new(1), ContentPieceId::new(2));
        let by_piece = [Value::from(workspace), Value::from("title"), Value::from(piece)];
        assert_eq!(
            of(
                "UPDATE content_pieces SET title = ?2 WHERE workspace_id = ?1 AND id = ?3",
                &by_piece
            ),
            own_of(ChangedPart::Piece(piece))
        );
        let by_two = [Value::from(workspace), Value::from(piece), Value::from(other)];
        assert_eq!(of("DELETE FROM content_pieces WHERE id IN (?2, ?3)", &by_two), own);
        assert_eq!(of("DELETE FROM content_piece_tags WHERE workspace_id = ?1", &named), own);
        assert_eq!(of("INSERT INTO\n tags (workspace_id) VALUES (?1)", &named), own);
        assert_eq!(of("DELETE FROM tags WHERE workspace_id = ?1", &named), own);
        assert_eq!(
            of("UPDATE users SET avatar = NULL WHERE id = ?1", &[Value::Int(1)]),
            everything
        );
        assert_eq!(of("DELETE FROM users", &[]), everything);
        assert_eq!(of("INSERT INTO users (id) VALUES (?1)", &[Value::Int(1)]), nothing);
        assert_eq!(
            of("WITH a AS (SELECT 1) UPDATE tags SET label = ''", &named),
            own_of(ChangedPart::Access)
        );
        assert_eq!(
            of("UPDATE tokens SET name = ?2 WHERE workspace_id = ?1", &named),
            own_of(ChangedPart::Access)
        );
        assert_eq!(of("UPDATE deliveries AS d SET lane = 1", &named), nothing);
        assert_eq!(of("INSERT INTO events (workspace_id) VALUES (?1)", &named), nothing);
    }
}
