//! The recording of revisions, and the events of autosaves.
//!
//! An autosave raises its event later: with the author's next update of the same part, after a
//! minute without an edit, or before any other change. Each event then shows a state that was
//! current when it was raised.

use galley_api_types::content_piece::ContentPieceBody;
use galley_domain::audit::AuditAction;
use galley_domain::content_group::GroupPath;
use galley_domain::content_piece::{ContentPiece, ContentPieceOverrides, PieceField};
use galley_domain::event::ResourceChange;
use galley_domain::revision::{
    AUTOSAVE_EVENT_DELAY_MS, AUTOSAVE_REPLACED_MS, Origin, PartState, Revision, RevisionNote,
};
use galley_domain::{Timestamp, VariantId, WorkspaceId};
use galley_storage::content_piece_revisions::{
    self, COMPLETE_EVERY, DueRevision, LatestRevision, StoredRevision, Undo,
};
use galley_storage::event_append;
use galley_storage::{Tx, WriteTx, content_piece_variants, content_pieces, variants};

use crate::audit::{self, AuditChanges};
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::event;
use crate::references;
use crate::scope::Scope;
use crate::service::Service;

/// The content size in bytes from which a change of most of it is stored with all values.
const LARGE_CONTENT: usize = 16 << 10;

/// A change of a piece itself or of its overrides in one variant.
pub(super) struct PartChange<'c> {
    /// The piece before the change, and the path to its group.
    pub(super) piece: ContentPiece,
    pub(super) path: GroupPath,
    pub(super) latest: LatestRevision,
    pub(super) variant: Option<VariantId>,
    /// The values before and after, with the content if it may have changed.
    pub(super) before: PartState,
    pub(super) after: PartState,
    /// The changed fields.
    pub(super) fields: Vec<PieceField>,
    pub(super) is_autosave: bool,
    pub(super) note: Option<&'c RevisionNote>,
}

/// The result of recording a change.
pub(super) struct RecordedChange {
    /// The number of the latest revision.
    pub(super) number: Option<i64>,
    /// True if the event of the change is raised later.
    pub(super) delays_event: bool,
    /// True if an autosave's revision is continued, and no other field than its own was changed.
    pub(super) continues: bool,
}

/// Returns the revision number of a new piece: 1 if the creation is recorded at once, as its origin
/// is not the usual one.
pub(super) fn number_of_creation(origin: Origin) -> i64 {
    i64::from(origin != Origin::Api)
}

/// Records the creation of a piece.
pub(super) async fn record_creation(
    tx: &WriteTx<'_>,
    scope: &Scope,
    piece: &ContentPiece,
) -> Result<(), Error> {
    let revision = Revision { origin: scope.origin, ..first_revision(piece) };
    let row = stored_creation(revision)?;
    Ok(content_piece_revisions::insert(tx, scope.workspace, piece.id, &[row]).await?)
}

/// Records the first revision of a piece that has none recorded.
pub(super) async fn record_first(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<(), Error> {
    let row = stored_creation(first_revision(piece))?;
    content_piece_revisions::insert(tx, workspace, piece.id, &[row]).await?;
    let numbered = ContentPiece { revision: Some(1), ..piece.clone() };
    Ok(content_pieces::update(tx, workspace, piece, &numbered).await?)
}

/// Returns the first revision of a piece that has none recorded.
pub(super) fn first_revision(piece: &ContentPiece) -> Revision {
    // The earlier changes of a piece from before revisions are unknown.
    let is_creation = piece.revision.is_some();
    Revision {
        number: 1,
        variant: None,
        created_at: if is_creation { piece.created_at } else { piece.updated_at },
        created_by: if is_creation { piece.created_by } else { piece.updated_by },
        origin: Origin::Api,
        fields: Vec::new(),
        note: None,
        is_autosave: false,
    }
}

/// Returns the row of a first revision, which has no values before it.
fn stored_creation(revision: Revision) -> Result<StoredRevision, Error> {
    let undo = Undo::nothing()?;
    let (is_hidden, is_published) = (false, false);
    Ok(StoredRevision { revision, is_hidden, is_published, event_due_at: None, depth: 0, undo })
}

/// Records a change at `now`, and raises the event of an earlier autosave that this change does not
/// replace. A change of the position alone is not recorded.
pub(super) async fn record(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    change: PartChange<'_>,
    now: Timestamp,
) -> Result<RecordedChange, Error> {
    let (workspace, id) = (scope.workspace, change.piece.id);
    let latest = latest_autosave(tx, workspace, &change).await?;
    let is_own = latest.as_ref().is_some_and(|latest| change.continues(latest, scope));
    if let Some(autosave) = latest.as_ref().filter(|one| one.event_due_at.is_some()) {
        content_piece_revisions::clear_due_event(tx, workspace, id, autosave.revision.number)
            .await?;
        if !is_own {
            let variant = autosave.revision.variant;
            // The overrides of the changed part are stored already.
            let before = (variant == change.variant).then_some(&change.before.fields);
            let saved = SavedPart { piece: &change.piece, path: &change.path, variant, before };
            raise_event(tx, environment, workspace, saved, now).await?;
        }
    }
    let number = change.piece.revision;
    if change.fields.is_empty() {
        return Ok(RecordedChange { number, delays_event: false, continues: false });
    }
    let due = Timestamp::from_ms(now.ms() + AUTOSAVE_EVENT_DELAY_MS);
    let event_due_at = change.is_autosave.then_some(due);
    let recorded = RecordedChange { number, delays_event: change.is_autosave, continues: false };
    if let Some(replaced) =
        latest.as_ref().filter(|latest| is_own && change.is_autosave && is_recent(latest, now))
    {
        let stored = replacement(tx, workspace, replaced, &change, event_due_at).await?;
        content_piece_revisions::replace(tx, workspace, id, &stored).await?;
        let known = &replaced.revision.fields;
        let continues = change.fields.iter().all(|field| known.contains(field));
        return Ok(RecordedChange { continues, ..recorded });
    }
    let mut rows = Vec::with_capacity(2);
    if !change.piece.has_revisions() {
        rows.push(stored_creation(first_revision(&change.piece))?);
    }
    let (depth, undo) = undo(tx, workspace, &change, latest.as_ref()).await?;
    let number = number.unwrap_or(1).max(1) + 1;
    let revision = Revision {
        number,
        variant: change.variant,
        created_at: now,
        created_by: Some(scope.author),
        origin: scope.origin,
        fields: change.fields,
        note: change.note.cloned(),
        is_autosave: change.is_autosave,
    };
    let (is_hidden, is_published) = (false, false);
    rows.push(StoredRevision { revision, is_hidden, is_published, event_due_at, depth, undo });
    content_piece_revisions::insert(tx, workspace, id, &rows).await?;
    Ok(RecordedChange { number: Some(number), ..recorded })
}

impl PartChange<'_> {
    /// Returns true if the latest revision is an autosave by the same author of the same part.
    fn continues(&self, latest: &StoredRevision, scope: &Scope) -> bool {
        let revision = &latest.revision;
        revision.variant == self.variant && revision.created_by == Some(scope.author)
    }

    /// Returns false if the content was not read, as the update has none.
    fn has_content(&self) -> bool {
        self.before.content.is_some() || self.after.content.is_some()
    }
}

/// Returns true if the next autosave replaces this one.
fn is_recent(autosave: &StoredRevision, now: Timestamp) -> bool {
    let revision = &autosave.revision;
    !autosave.is_published
        && revision.note.is_none()
        && now.ms() - revision.created_at.ms() < AUTOSAVE_REPLACED_MS
}

/// Returns the latest revision if it is an autosave.
async fn latest_autosave(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    change: &PartChange<'_>,
) -> Result<Option<StoredRevision>, Error> {
    let (LatestRevision::Autosave, Some(number)) = (change.latest, change.piece.revision) else {
        return Ok(None);
    };
    let found = content_piece_revisions::find(tx, workspace, change.piece.id, number).await?;
    Ok(found.filter(|found| found.revision.is_autosave))
}

/// Returns an autosave that records both its own change and `change`.
async fn replacement(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    autosave: &StoredRevision,
    change: &PartChange<'_>,
    event_due_at: Option<Timestamp>,
) -> Result<StoredRevision, Error> {
    let (mut before, mut after) = (change.before.clone(), change.after.clone());
    let changed_content = autosave.revision.fields.contains(&PieceField::Content);
    if !change.has_content() && changed_content {
        before.content = content(tx, workspace, change).await?;
        after.content.clone_from(&before.content);
    }
    let has_content = change.has_content() || changed_content;
    autosave.undo.apply(&mut before)?;
    if autosave.depth == 0 && !has_content {
        // Its undo has the content, which did not change.
        after.content.clone_from(&before.content);
    }
    let fields = before.differences(&after);
    let (depth, undo) = match (autosave.depth, delta(&before, &after, &fields)?) {
        (0, _) => (0, autosave.undo.clone()),
        (depth, Some(undo)) => (depth, undo),
        (_, None) => (0, Undo::complete(&before)?),
    };
    let note = change.note.cloned();
    let revision = Revision { fields, note, ..autosave.revision.clone() };
    let (is_hidden, is_published) = (false, false);
    Ok(StoredRevision { revision, is_hidden, is_published, event_due_at, depth, undo })
}

/// Returns the values of `fields` in `before`, compressed against those in `after`. Returns `None`
/// if they are hardly smaller, as for a new content.
fn delta(
    before: &PartState,
    after: &PartState,
    fields: &[PieceField],
) -> Result<Option<Undo>, Error> {
    let undo = Undo::of(before, after, fields)?;
    let content = before.content.as_ref().filter(|_| fields.contains(&PieceField::Content));
    let size = content.map_or(0, String::len);
    Ok(Some(undo).filter(|undo| size < LARGE_CONTENT || undo.size() < size / 4))
}

/// Reads the own content of the changed part.
async fn content(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    change: &PartChange<'_>,
) -> Result<Option<String>, Error> {
    let piece = change.piece.id;
    Ok(match change.variant {
        Some(variant) => {
            content_piece_variants::find_content(tx, workspace, piece, variant).await?
        }
        None => content_pieces::find_content(tx, workspace, piece, None).await?,
    })
}

/// Returns the values before a change, and their depth.
async fn undo(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    change: &PartChange<'_>,
    autosave: Option<&StoredRevision>,
) -> Result<(i64, Undo), Error> {
    let (piece, part) = (change.piece.id, change.variant);
    let latest = match (change.latest, autosave) {
        (LatestRevision::None, _) => None,
        (LatestRevision::OfSamePart(depth), _) => Some(depth),
        (_, Some(autosave)) if autosave.revision.variant == part => Some(autosave.depth),
        _ => content_piece_revisions::latest_depth(tx, workspace, piece, part).await?,
    };
    let depth = latest.map_or(1, |latest| (latest + 1) % COMPLETE_EVERY);
    let (before, after) = (&change.before, &change.after);
    if depth > 0
        && let Some(undo) = delta(before, after, &change.fields)?
    {
        return Ok((depth, undo));
    }
    let mut before = before.clone();
    if !change.has_content() {
        before.content = content(tx, workspace, change).await?;
    }
    Ok((0, Undo::complete(&before)?))
}

/// Completes the author's latest autosave by an update without changes: it is not replaced any
/// more, gets the note of the update, and its event is raised.
pub(super) async fn complete_autosave(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    change: PartChange<'_>,
) -> Result<(), Error> {
    let (workspace, id) = (scope.workspace, change.piece.id);
    let latest = latest_autosave(tx, workspace, &change).await?;
    let Some(autosave) = latest.filter(|latest| change.continues(latest, scope)) else {
        return Ok(());
    };
    let revision = Revision {
        note: change.note.cloned().or(autosave.revision.note),
        is_autosave: false,
        ..autosave.revision
    };
    let is_due = autosave.event_due_at.is_some();
    let completed = StoredRevision { revision, event_due_at: None, ..autosave };
    content_piece_revisions::replace(tx, workspace, id, &completed).await?;
    let changes = AuditChanges::of_piece([], Some(completed.revision.number));
    audit::record(tx, environment, scope, AuditAction::ContentPieceUpdate, id, changes);
    if is_due {
        let (piece, path, variant) = (&change.piece, &change.path, change.variant);
        let saved = SavedPart { piece, path, variant, before: None };
        raise_event(tx, environment, workspace, saved, environment.now()).await?;
    }
    Ok(())
}

/// A part of a piece that was saved automatically.
struct SavedPart<'s> {
    piece: &'s ContentPiece,
    path: &'s GroupPath,
    variant: Option<VariantId>,
    /// The overrides, unless they are read from the database.
    before: Option<&'s ContentPieceOverrides>,
}

/// Appends the event of autosaves, with the piece as it is in the variant.
async fn raise_event(
    tx: &WriteTx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    SavedPart { piece, path, variant, before }: SavedPart<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut shown = piece.clone();
    let mut key = None;
    if let Some(variant) = variant {
        let Some(found) = variants::find(tx, workspace, variant).await? else { return Ok(()) };
        let overrides = match before {
            Some(overrides) => Some(overrides.clone()),
            None => content_piece_variants::find(tx, workspace, piece.id, variant).await?,
        };
        shown = shown.with_overrides(overrides.unwrap_or_default());
        key = Some(found.key);
    }
    let referenced = references::of_pieces(tx, workspace, [&shown].into_iter()).await?;
    let data = ContentPieceBody::event_data(&shown, &referenced, key.as_ref());
    let change = ResourceChange::PieceUpdated { before: path.clone(), after: path.clone() };
    let raised = event(environment, change, data, None);
    Ok(event_append::append(tx, workspace, [raised], now).await?)
}

/// The limit on events of one round.
const DUE_EVENTS_MAX: i64 = 100;

/// Raises the events of autosaves that are due, each in its own transaction. Returns true if more
/// may be due.
pub async fn raise_due_events(service: &Service) -> Result<bool, Error> {
    let (database, environment) = (service.database(), service.environment());
    let now = environment.now();
    let find = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(content_piece_revisions::due_events(tx, now, DUE_EVENTS_MAX).await?)
    };
    let due = database.read("revisions.due_events", find).await?;
    let mut raised = 0;
    for &one in &due {
        let environment = environment.clone();
        let raise = async move |tx: &WriteTx<'_>| raise_due_event(tx, &environment, one).await;
        match database.write("revisions.raise_event", raise).await {
            Ok(()) => raised += 1,
            Err(error) => tracing::warn!(%error, piece = %one.1, "an event could not be raised"),
        }
    }
    Ok(raised >= DUE_EVENTS_MAX)
}

async fn raise_due_event(
    tx: &WriteTx<'_>,
    environment: &Environment,
    (workspace, piece, number): DueRevision,
) -> Result<(), Error> {
    let found = content_pieces::find_for_update(tx, workspace, piece).await?;
    let Some((piece, path)) = found else {
        // The piece is in the trash. Its restoration raises an event with its state.
        content_piece_revisions::clear_due_event(tx, workspace, piece, number).await?;
        return Ok(());
    };
    // A later change may have raised the event or delayed it.
    let found = content_piece_revisions::find(tx, workspace, piece.id, number).await?;
    let now = environment.now();
    let Some(found) = found.filter(|found| found.event_due_at.is_some_and(|due| due <= now)) else {
        return Ok(());
    };
    content_piece_revisions::clear_due_event(tx, workspace, piece.id, number).await?;
    let variant = found.revision.variant;
    let saved = SavedPart { piece: &piece, path: &path, variant, before: None };
    raise_event(tx, environment, workspace, saved, now).await
}
