//! The revisions of pieces. Each has the values before its change, so that reading an earlier state
//! begins with the piece and undoes its changes, latest first.
//!
//! A part is the piece itself or its overrides in one variant. The changes of each part are undone
//! independently of other parts. A revision at [`COMPLETE_EVERY`] changes of a part has all of its
//! values, which limits the number of changes to undo.

use std::collections::BTreeSet;

use galley_domain::revision::{PartState, Revision, RevisionNote};
use galley_domain::revision_retention::RevisionAge;
use galley_domain::{ContentPieceId, Timestamp, VariantId, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, params, read_row, row};

pub use crate::tables::revision_undo::Undo;

/// The number of changes of a part after which a revision has all values.
pub const COMPLETE_EVERY: i64 = 32;

/// A revision as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRevision {
    /// The revision.
    pub revision: Revision,
    /// True if the revision is kept for the states of others only, and not shown.
    pub is_hidden: bool,
    /// True if the revision was published, or is to be. It is not replaced, and it does not expire.
    pub is_published: bool,
    /// The time at which the event of an autosave is raised, unless it was.
    pub event_due_at: Option<Timestamp>,
    /// The number of revisions of the part since the last one with all values, which has 0.
    pub depth: i64,
    /// The values before the change.
    pub undo: Undo,
}

/// The columns of the table `r` that [`read`] reads.
const COLUMNS: &str = "r.number, r.variant_id, r.created_at_ms, r.created_by, r.origin, r.fields, \
    r.note, r.is_autosave";

/// The first column after these.
const COLUMNS_END: usize = 8;

/// The columns of the table `r` that [`read_stored`] reads.
const STORED_COLUMNS: &str = "r.number, r.variant_id, r.created_at_ms, r.created_by, r.origin, \
    r.fields, r.note, r.is_autosave, r.is_hidden, r.is_published, \
    r.event_due_at_ms, r.depth, r.undo";

fn read(row: &Row<'_>) -> Result<Revision> {
    Ok(read_row!(row, 0 => Revision {
        number, variant, created_at, created_by, origin, fields, note, is_autosave,
    }))
}

fn read_stored(row: &Row<'_>) -> Result<StoredRevision> {
    let undo = Undo::from_stored(row.get(COLUMNS_END + 4)?);
    Ok(read_row!(row, COLUMNS_END => StoredRevision {
        is_hidden, is_published, event_due_at, depth;
        revision: read(row)?, undo
    }))
}

/// Returns the stored form of a part: an empty text for the piece itself.
pub(crate) fn part_key(variant: Option<VariantId>) -> String {
    variant.map(|variant| variant.to_string()).unwrap_or_default()
}

/// The latest revision of a piece, as far as an update needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatestRevision {
    /// The piece has no revision but the first, which has no row.
    None,
    /// It is an autosave.
    Autosave,
    /// It changed another part than the update.
    OfOtherPart,
    /// It changed the same part, at this depth.
    OfSamePart(i64),
}

impl LatestRevision {
    /// The latest revision of the piece `p`, for a part whose key is the parameter `?3`. The first
    /// parameter is the workspace.
    pub(crate) const SELECT: &str =
        "(SELECT CASE WHEN r.is_autosave THEN -1 WHEN COALESCE(r.variant_id, '') <> ?3 THEN -2
            ELSE r.depth END
          FROM content_piece_revisions r
          WHERE r.workspace_id = ?1 AND r.content_piece_id = p.id AND r.number = p.revision)";

    pub(crate) fn read(row: &Row<'_>, column: usize) -> Result<Self> {
        Ok(match row.get::<Option<i64>>(column)? {
            None => Self::None,
            Some(-1) => Self::Autosave,
            Some(-2) => Self::OfOtherPart,
            Some(depth) => Self::OfSamePart(depth),
        })
    }
}

/// Inserts revisions of a piece.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    revisions: &[StoredRevision],
) -> Result<()> {
    let sql = "INSERT INTO content_piece_revisions (workspace_id, content_piece_id, number,
            variant_id, created_at_ms, created_by, origin, note, fields, is_autosave, is_hidden,
            is_published, event_due_at_ms, depth, undo)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let rows = revisions.iter().map(|stored| {
        let revision = &stored.revision;
        row! {
            workspace, piece, revision.number, revision.variant, revision.created_at,
            revision.created_by, revision.origin, &revision.note, &revision.fields,
            revision.is_autosave, stored.is_hidden, stored.is_published, stored.event_due_at,
            stored.depth, stored.undo.value()
        }
    });
    tx.insert_each(sql, rows, Affects::Nothing).await
}

/// Replaces the change that a revision records, and the time at which its event is raised.
pub async fn replace(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    stored: &StoredRevision,
) -> Result<()> {
    let sql = "UPDATE content_piece_revisions
        SET fields = ?4, undo = ?5, depth = ?6, event_due_at_ms = ?7, note = ?8, is_autosave = ?9
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND number = ?3";
    let revision = &stored.revision;
    let params = row! {
        workspace, piece, revision.number, &revision.fields, stored.undo.value(), stored.depth,
        stored.event_due_at, &revision.note, revision.is_autosave
    };
    tx.change(sql, &params, Affects::Nothing).await
}

/// Sets or removes the note of a revision. Returns false if the revision has no row.
pub async fn update_note(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    number: i64,
    note: Option<&RevisionNote>,
) -> Result<bool> {
    let sql = "UPDATE content_piece_revisions SET note = ?4
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND number = ?3";
    Ok(tx.execute(sql, params![workspace, piece, number, note], Affects::Nothing).await? > 0)
}

/// Records that a revision was published, or is to be.
pub async fn mark_published(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    number: i64,
) -> Result<()> {
    let sql = "UPDATE content_piece_revisions SET is_published = TRUE
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND number = ?3";
    tx.change(sql, params![workspace, piece, number], Affects::Nothing).await
}

/// Ends the wait for the event of an autosave. Returns false if none was due.
pub async fn clear_due_event(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    number: i64,
) -> Result<bool> {
    let sql = "UPDATE content_piece_revisions SET event_due_at_ms = NULL
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND number = ?3
            AND event_due_at_ms IS NOT NULL";
    Ok(tx.execute(sql, params![workspace, piece, number], Affects::Nothing).await? > 0)
}

/// A revision whose event is due: its piece and its number.
pub type DueRevision = (WorkspaceId, ContentPieceId, i64);

/// Returns the revisions whose events are due at `now`, in the order of their times.
pub async fn due_events(tx: &Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<DueRevision>> {
    let sql = "SELECT workspace_id, content_piece_id, number FROM content_piece_revisions
        WHERE event_due_at_ms <= ?1 ORDER BY event_due_at_ms LIMIT ?2";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    tx.query(sql, params![now, limit], read).await
}

/// Finds a revision that has a row, with the values before its change.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    number: i64,
) -> Result<Option<StoredRevision>> {
    let sql = format!(
        "SELECT {STORED_COLUMNS} FROM content_piece_revisions r
         WHERE r.workspace_id = ?1 AND r.content_piece_id = ?2 AND r.number = ?3
            AND NOT r.is_hidden"
    );
    tx.find(&sql, params![workspace, piece, number], read_stored).await
}

/// Returns the depth of the latest revision of a part.
pub async fn latest_depth(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: Option<VariantId>,
) -> Result<Option<i64>> {
    let sql = "SELECT depth FROM content_piece_revisions
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND COALESCE(variant_id, '') = ?3
        ORDER BY number DESC LIMIT 1";
    tx.find(sql, params![workspace, piece, part_key(variant)], |row| row.get(0)).await
}

/// A page of the revisions of a piece, latest first.
#[derive(Debug, Clone, Copy)]
pub struct RevisionPage {
    /// The variant whose revisions are listed; `None` for those of the piece and all variants.
    pub variant: Option<VariantId>,
    /// Only revisions with a lower number are listed.
    pub before: Option<i64>,
    /// The limit on revisions.
    pub limit: i64,
    /// The number of revisions to skip.
    pub offset: i64,
}

/// A revision, and the size in bytes of the values before it.
pub type RevisionWithSize = (Revision, i64);

/// Lists revisions that have a row, latest first, each with the size of the values before it.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    page: RevisionPage,
) -> Result<Vec<RevisionWithSize>> {
    let mut params =
        vec![Value::from(workspace), piece.into(), page.limit.into(), page.offset.into()];
    let mut filters = String::new();
    for (column, value) in [
        ("r.variant_id =", page.variant.map(Value::from)),
        ("r.number <", page.before.map(Value::from)),
    ] {
        if let Some(value) = value {
            params.push(value);
            filters.push_str(&format!(" AND {column} ?{}", params.len()));
        }
    }
    let sql = format!(
        "SELECT {COLUMNS}, CAST(LENGTH(r.undo) AS BIGINT) FROM content_piece_revisions r
         WHERE r.workspace_id = ?1 AND r.content_piece_id = ?2 AND NOT r.is_hidden{filters}
         ORDER BY r.number DESC LIMIT ?3 OFFSET ?4"
    );
    let read = |row: &Row<'_>| Ok((read(row)?, row.get(COLUMNS_END)?));
    tx.query(&sql, &params, read).await
}

/// Returns revisions that have a row, hidden ones too, latest first. If `before` is set, they have
/// a lower number.
pub async fn list_stored(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<StoredRevision>> {
    let sql = format!(
        "SELECT {STORED_COLUMNS} FROM content_piece_revisions r
         WHERE r.workspace_id = ?1 AND r.content_piece_id = ?2 AND r.number < ?3
         ORDER BY r.number DESC LIMIT ?4"
    );
    let before = before.unwrap_or(i64::MAX);
    tx.query(&sql, params![workspace, piece, before, limit], read_stored).await
}

/// Returns the variants that have revisions after `number`.
pub async fn variants_changed_after(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    number: i64,
) -> Result<Vec<VariantId>> {
    let sql = "SELECT DISTINCT variant_id FROM content_piece_revisions
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND number > ?3
            AND variant_id IS NOT NULL
        ORDER BY variant_id";
    tx.query(sql, params![workspace, piece, number], |row| row.get(0)).await
}

/// Returns the state of a part at the revision `number`. `latest` is its latest state.
pub async fn state_at(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: Option<VariantId>,
    latest: PartState,
    number: i64,
) -> Result<PartState> {
    let sql = format!(
        "SELECT {STORED_COLUMNS} FROM content_piece_revisions r
         WHERE r.workspace_id = ?1 AND r.content_piece_id = ?2 AND r.number > ?3
            AND COALESCE(r.variant_id, '') = ?4
            AND r.number <= COALESCE((SELECT c.number FROM content_piece_revisions c
                WHERE c.workspace_id = ?1 AND c.content_piece_id = ?2 AND c.number > ?3
                    AND COALESCE(c.variant_id, '') = ?4 AND c.depth = 0
                ORDER BY c.number LIMIT 1), ?5)
         ORDER BY r.number"
    );
    // A change with all values needs no later one.
    let params = params![workspace, piece, number, part_key(variant), i64::MAX];
    let changes = tx.query(&sql, params, read_stored).await?;
    let mut state = latest;
    for change in changes.into_iter().rev() {
        change.undo.apply(&mut state)?;
    }
    Ok(state)
}

/// Returns pieces that have a revision from before a time, by id. If `after` is set, they follow
/// it.
pub async fn pieces_with_older(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    before: Timestamp,
    after: Option<ContentPieceId>,
    limit: i64,
) -> Result<Vec<ContentPieceId>> {
    let sql = "SELECT p.id FROM content_pieces p
        WHERE p.workspace_id = ?1 AND p.id > ?2 AND p.id < ?5 AND p.revision > 1 AND EXISTS (
            SELECT 1 FROM content_piece_revisions r
            WHERE r.workspace_id = ?1 AND r.content_piece_id = p.id AND r.created_at_ms < ?3)
        ORDER BY p.id LIMIT ?4";
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    // The rows of pieces that were created later are not read.
    let end = ContentPieceId::first_at(before);
    tx.query(sql, params![workspace, after, before, limit, end], |row| row.get(0)).await
}

/// Returns the ages of a piece's revisions, latest last.
pub async fn ages(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
) -> Result<Vec<RevisionAge>> {
    let sql =
        "SELECT number, variant_id, created_at_ms, note IS NOT NULL OR is_published, is_hidden
        FROM content_piece_revisions
        WHERE workspace_id = ?1 AND content_piece_id = ?2 ORDER BY number";
    let read = |row: &Row<'_>| {
        Ok(read_row!(row, 0 => RevisionAge { number, variant, created_at, is_kept, is_hidden }))
    };
    tx.query(sql, params![workspace, piece], read).await
}

/// Returns the revisions of a part, latest first. If `before` is set, they have a lower number.
pub async fn list_of_part(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: Option<VariantId>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<StoredRevision>> {
    let sql = format!(
        "SELECT {STORED_COLUMNS} FROM content_piece_revisions r
         WHERE r.workspace_id = ?1 AND r.content_piece_id = ?2 AND r.number < ?3
            AND COALESCE(r.variant_id, '') = ?4
         ORDER BY r.number DESC LIMIT ?5"
    );
    let before = before.unwrap_or(i64::MAX);
    let params = params![workspace, piece, before, part_key(variant), limit];
    tx.query(&sql, params, read_stored).await
}

/// Hides revisions of a piece.
pub async fn hide(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    numbers: &BTreeSet<i64>,
) -> Result<()> {
    let sql = "UPDATE content_piece_revisions SET is_hidden = TRUE
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND number = ?3";
    let rows = numbers.iter().map(|&number| row![workspace, piece, number]);
    tx.change_each(sql, rows, Affects::Nothing).await
}

/// Deletes revisions of a piece.
pub async fn delete(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    numbers: &BTreeSet<i64>,
) -> Result<()> {
    let sql = "DELETE FROM content_piece_revisions
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND number = ?3";
    let rows = numbers.iter().map(|&number| row![workspace, piece, number]);
    tx.change_each(sql, rows, Affects::Nothing).await
}

/// Removes the values from the revisions of a deleted variant, so that nothing is to be undone if a
/// variant with its id is created again.
pub(super) async fn clear_variant(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    variant: VariantId,
) -> Result<()> {
    let sql = "UPDATE content_piece_revisions SET fields = '', undo = ?3, depth = 1
        WHERE workspace_id = ?1 AND variant_id = ?2";
    let nothing = Undo::nothing()?;
    tx.change(sql, &row![workspace, variant, nothing.value()], Affects::Nothing).await
}

/// Deletes the revisions of a piece.
pub async fn delete_of_piece(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
) -> Result<()> {
    let sql =
        "DELETE FROM content_piece_revisions WHERE workspace_id = ?1 AND content_piece_id = ?2";
    tx.change(sql, params![workspace, piece], Affects::Nothing).await
}
