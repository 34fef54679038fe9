//! Which moment of the store's history an answer is of, and whether it still holds.
//!
//! What was read may be given again as long as nothing of it was changed. That is decided by the store's own count
//! of commits, which is looked at anew each time ([`crate::Database::moment`]), and by what each transaction changed,
//! which its statements say ([`Reach`]). Both err on the side of reading again:
//!
//! - Until its commit a change hasn't happened; from then on nobody is told the present before it is noted.
//! - A statement that doesn't name its workspace first is taken to change every workspace.
//! - A commit that this program didn't make is taken to have changed everything.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use galley_domain::{ContentPieceId, EventId, WorkspaceId};

use crate::engine::value::Value;

/// A moment in the store's history. What is read after it was asked for is not older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(crate) u64);

/// Another one after each change of what remembered answers show of a workspace, for a database that several
/// programs write. Whoever finds the same as before finds nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// Another one for each server of the database, and each of its starts: what was committed on one that is lost, and
    /// read before it was, may be on no other.
    server: i64,
    /// Another one after each change of which no event tells.
    number: i64,
    /// The last event.
    event: Option<EventId>,
}

impl Generation {
    /// As the database has it.
    pub(crate) fn of(server: i64, number: i64, event: Option<EventId>) -> Self {
        Self { server, number, event }
    }

    /// A number that never was.
    pub(crate) fn next_number() -> i64 {
        rand::random()
    }
}

/// When a workspace was last changed.
#[derive(Debug, Clone, Default)]
pub struct LastChange {
    workspace: Arc<Clocks>,
    everything: Arc<AtomicU64>,
}

/// Of one workspace.
#[derive(Debug, Default)]
struct Clocks {
    anything: AtomicU64,
    /// What belongs to no single piece.
    shared: AtomicU64,
    access: AtomicU64,
    /// Those that were changed alone.
    pieces: Mutex<HashMap<ContentPieceId, u64>>,
}

/// Of how many pieces it is known when they were changed. Of more, all count as changed.
const PIECES_MAX: usize = 4_096;

impl Clocks {
    fn note(&self, what: What, moment: u64) {
        self.anything.fetch_max(moment, Ordering::SeqCst);
        if what == What::Access {
            self.access.fetch_max(moment, Ordering::SeqCst);
        }
        let What::Piece(piece) = what else {
            self.shared.fetch_max(moment, Ordering::SeqCst);
            return;
        };
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        if pieces.len() == PIECES_MAX && !pieces.contains_key(&piece) {
            self.shared.fetch_max(moment, Ordering::SeqCst);
            pieces.clear();
        }
        pieces.insert(piece, moment);
    }
}

impl LastChange {
    /// Whether what was read at `moment` or after it is what would be read now.
    pub fn is_before(&self, moment: Moment) -> bool {
        self.no_later_than(&self.workspace.anything, moment)
    }

    /// The same of one piece alone, and all that shows with it.
    pub fn of_piece_is_before(&self, piece: ContentPieceId, moment: Moment) -> bool {
        let pieces = self.workspace.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let own = pieces.get(&piece).is_none_or(|&last| last <= moment.0);
        // Looked at with the lock held: what is taken out of the list is noted there first.
        own && self.no_later_than(&self.workspace.shared, moment)
    }

    /// The same of what a token may do.
    pub fn of_access_is_before(&self, moment: Moment) -> bool {
        self.no_later_than(&self.workspace.access, moment)
    }

    fn no_later_than(&self, clock: &AtomicU64, moment: Moment) -> bool {
        let last = |clock: &AtomicU64| clock.load(Ordering::SeqCst);
        last(clock).max(last(&self.everything)) <= moment.0
    }
}

/// When each workspace was last changed.
#[derive(Debug, Default)]
pub(crate) struct LastChanges {
    everything: Arc<AtomicU64>,
    workspaces: RwLock<HashMap<WorkspaceId, Arc<Clocks>>>,
}

impl LastChanges {
    pub(crate) fn of(&self, workspace: WorkspaceId) -> LastChange {
        let everything = Arc::clone(&self.everything);
        let known = self.workspaces.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(workspace) = known.get(&workspace) {
            return LastChange { workspace: Arc::clone(workspace), everything };
        }
        drop(known);
        let mut known = self.workspaces.write().unwrap_or_else(PoisonError::into_inner);
        LastChange { workspace: Arc::clone(known.entry(workspace).or_default()), everything }
    }

    /// What `reach` says was, or is about to be, changed at this moment.
    pub(crate) fn note(&self, reach: &Reach, moment: u64) {
        if reach.everything {
            self.everything.fetch_max(moment, Ordering::SeqCst);
        }
        for &(workspace, what) in &reach.workspaces {
            self.of(workspace).workspace.note(what, moment);
        }
    }

    pub(crate) fn note_everything(&self, moment: u64) {
        self.everything.fetch_max(moment, Ordering::SeqCst);
    }
}

/// What a transaction has changed, of all that answers may be remembered of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    everything: bool,
    workspaces: Vec<(WorkspaceId, What)>,
}

/// Who changes more pieces than this together has changed all.
const REACH_MAX: usize = 256;

/// What of a workspace was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// One piece, and nothing of others.
    Piece(ContentPieceId),
    Content,
    /// Who may do what, and all that answers show of it.
    Access,
}

/// Tables that have nothing to do with who may do what.
const CONTENT: [&str; 4] = ["content_group_paths", "content_groups", "tags", "variants"];

/// Tables of pieces, whose rows belong to one each.
const PIECES: [&str; 9] = [
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

/// Tables of which no answer is remembered ([`crate::Database::moment`] says which those may be).
const NOT_REMEMBERED: [&str; 16] = [
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

impl Reach {
    /// Adds what a statement has changed with these parameters.
    pub(crate) fn add_statement(&mut self, sql: &str, params: &[Value<'_>]) {
        let table = changed_table(sql);
        // Of a user who is new, answers show nothing until one is made a member.
        let is_new_user = table == Some("users") && sql.starts_with("INSERT");
        if is_new_user || table.is_some_and(|table| NOT_REMEMBERED.contains(&table)) {
            return;
        }
        let is_of = |tables: &[&str]| table.is_some_and(|table| tables.contains(&table));
        let what = if is_of(&PIECES) {
            only_piece(params).map_or(What::Content, What::Piece)
        } else if is_of(&CONTENT) {
            What::Content
        } else {
            What::Access
        };
        match named_workspace(params) {
            Some(workspace) => self.add_workspace((workspace, what)),
            None => self.everything = true,
        }
    }

    /// Whether it may be every workspace's.
    pub(crate) fn is_of_everything(&self) -> bool {
        self.everything
    }

    /// The workspaces that it names.
    pub(crate) fn workspaces(&self) -> BTreeSet<WorkspaceId> {
        self.workspaces.iter().map(|&(workspace, _)| workspace).collect()
    }

    fn add_workspace(&mut self, changed: (WorkspaceId, What)) {
        let is_long = self.workspaces.len() >= REACH_MAX;
        let changed = match changed {
            (workspace, What::Piece(_)) if is_long => (workspace, What::Content),
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

/// The only workspace and the only piece that a statement with these parameters is taken to change.
pub(crate) fn named_by(
    sql: &str,
    params: &[Value<'_>],
) -> (Option<WorkspaceId>, Option<ContentPieceId>) {
    let mut reach = Reach::default();
    reach.add_statement(sql, params);
    match reach.workspaces.as_slice() {
        [(workspace, What::Piece(piece))] => (Some(*workspace), Some(*piece)),
        [(workspace, _)] => (Some(*workspace), None),
        _ => (None, None),
    }
}

/// The table that a statement changes.
fn changed_table(sql: &str) -> Option<&str> {
    let mut words = sql.split_whitespace();
    match words.next()? {
        "UPDATE" => words.next(),
        "INSERT" | "DELETE" => words.nth(1),
        _ => None,
    }
}

/// The workspace that the first parameter names: in this crate's statements nothing of others is changed then.
fn named_workspace(params: &[Value<'_>]) -> Option<WorkspaceId> {
    match params.first()? {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// The only piece that the parameters name: in this crate's statements no other is changed then.
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
    fn what_a_statement_changes_is_known_by_its_table_and_first_parameter() {
        let workspace = WorkspaceId::new(7);
        let of = |sql: &str, params: &[Value<'_>]| {
            let mut reach = Reach::default();
            reach.add_statement(sql, params);
            reach
        };
        let nothing = Reach::default();
        let everything = Reach { everything: true, workspaces: Vec::new() };
        let own_of = |what| Reach { everything: false, workspaces: vec![(workspace, what)] };
        let own = own_of(What::Content);
        let named = [Value::from(workspace), Value::Int(1)];
        assert_eq!(of("UPDATE tags SET label = ?2 WHERE workspace_id = ?1", &named), own);
        let (piece, other) = (ContentPieceId::new(1), ContentPieceId::new(2));
        let by_piece = [Value::from(workspace), Value::from("title"), Value::from(piece)];
        assert_eq!(
            of(
                "UPDATE content_pieces SET title = ?2 WHERE workspace_id = ?1 AND id = ?3",
                &by_piece
            ),
            own_of(What::Piece(piece))
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
            own_of(What::Access)
        );
        assert_eq!(
            of("UPDATE tokens SET name = ?2 WHERE workspace_id = ?1", &named),
            own_of(What::Access)
        );
        assert_eq!(of("UPDATE deliveries AS d SET lane = 1", &named), nothing);
        assert_eq!(of("INSERT INTO events (workspace_id) VALUES (?1)", &named), nothing);
    }
}
