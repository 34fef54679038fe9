//! Restoration of earlier revisions, and notes on revisions.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::audit::AuditAction;
use galley_domain::content_piece::{ContentPiece, ContentPieceChange, PieceField};
use galley_domain::revision::{Origin, RevisionNote};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentPieceId, RevisionId, VariantId};
use galley_storage::{WriteTx, content_piece_revisions, content_pieces, ordering, variants};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::content_pieces::in_transaction::StoredPiece;
use crate::operations::content_pieces::revision_reads::{
    RevisionOfPiece, existing_variants_changed_after, find_revision, latest_part,
    leave_out_deleted, part_at,
};
use crate::operations::content_pieces::revisions;
use crate::operations::content_pieces::unique_slugs::lock_slugs;
use crate::operations::content_pieces::update::{ContentPieceUpdate, update_in};
use crate::precondition::VersionPrecondition;
use crate::references::{self, members_and_actors};
use crate::scope::Scope;

/// A revision to restore.
#[derive(Debug, Clone)]
pub struct RevisionRestoration {
    /// The piece.
    pub id: ContentPieceId,
    /// The revision.
    pub revision: RevisionId,
    /// The fields to restore; `None` for all.
    pub fields: Option<Vec<PieceField>>,
}

/// Restores a piece and its overrides in variants to a revision. Each part that differs gets a
/// revision and an event. Tags and members that no longer exist are left out.
pub async fn restore_revision(
    caller: &Caller,
    restoration: RevisionRestoration,
    expected: VersionPrecondition,
    request: IdempotentRequest,
    respond: Respond<StoredPiece>,
) -> Result<CreatedResponse, Error> {
    let environment = caller.environment().clone();
    let scope = Scope { origin: Origin::Restore, ..caller.scope() };
    let restore = async move |tx: &WriteTx<'_>| {
        Box::pin(restore_in(tx, &environment, &scope, &restoration, &expected)).await
    };
    let name = "content_pieces.restore_revision";
    idempotency::create(caller, name, request, None, restore, respond).await
}

async fn restore_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    restoration: &RevisionRestoration,
    expected: &VersionPrecondition,
) -> Result<StoredPiece, Error> {
    let workspace = scope.workspace;
    // The slug may change, and this lock comes before that of the piece.
    ordering::lock(tx, workspace).await?;
    lock_variants(tx, scope, restoration).await?;
    let piece = lock_visible(tx, scope, restoration.id).await?;
    let found = find_revision(tx, workspace, &piece, restoration.revision).await?;
    expected.check_version(piece.version)?;
    lock_slugs(tx, scope, &[piece.content_group_id]).await?;
    let number = found.revision.number;
    let changed = existing_variants_changed_after(tx, workspace, piece.id, number).await?;
    for part in std::iter::once(None).chain(changed.into_iter().map(Some)) {
        let update = restored_part(tx, scope, &piece, part, number, restoration).await?;
        if let Some(update) = update {
            let any = VersionPrecondition::Any;
            Box::pin(update_in(tx, environment, scope, &update, &any)).await?;
        }
    }
    StoredPiece::find(tx, scope, piece.id).await
}

/// Locks the variants that the restoration changes, before the piece, as the deletion of a variant
/// locks in this order, too.
async fn lock_variants(
    tx: &WriteTx<'_>,
    scope: &Scope,
    restoration: &RevisionRestoration,
) -> Result<(), Error> {
    let (workspace, piece) = (scope.workspace, restoration.id);
    let Some(number) = restoration.revision.number_in(piece) else { return Ok(()) };
    for variant in existing_variants_changed_after(tx, workspace, piece, number).await? {
        variants::find_named_for_override(tx, workspace, &VariantRef::Id(variant)).await?;
    }
    Ok(())
}

/// Returns the update that restores a part of a piece, or `None` if it does not differ.
async fn restored_part(
    tx: &WriteTx<'_>,
    scope: &Scope,
    piece: &ContentPiece,
    variant: Option<VariantId>,
    number: i64,
    restoration: &RevisionRestoration,
) -> Result<Option<ContentPieceUpdate>, Error> {
    let workspace = scope.workspace;
    let latest = latest_part(tx, workspace, piece, variant).await?;
    let mut state = part_at(tx, workspace, piece, variant, number).await?;
    leave_out_deleted(tx, scope, &mut state).await?;
    let mut fields = state.differences(&latest);
    if let Some(requested) = &restoration.fields {
        fields.retain(|field| requested.contains(field));
    }
    if fields.is_empty() {
        return Ok(None);
    }
    let has_content = fields.contains(&PieceField::Content);
    Ok(Some(ContentPieceUpdate {
        variant: variant.map(VariantRef::Id),
        change: ContentPieceChange::to(state.fields, &fields),
        content: has_content.then_some(state.content),
        is_exact: true,
        ..ContentPieceUpdate::of(piece.id)
    }))
}

/// Finds a piece in the scope, and locks it.
pub(super) async fn lock_visible(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: ContentPieceId,
) -> Result<ContentPiece, Error> {
    scope.require_current_view()?;
    let found = content_pieces::find_for_update(tx, scope.workspace, id).await?;
    let (piece, _) = found.filter(|(_, path)| scope.contains(path)).ok_or_else(Error::not_found)?;
    Ok(piece)
}

/// A change of a revision's note.
#[derive(Debug, Clone)]
pub struct RevisionNoteChange {
    /// The piece.
    pub id: ContentPieceId,
    /// The revision.
    pub revision: RevisionId,
    /// The new note. `Some(None)` removes it, and `None` changes nothing.
    pub note: Option<Option<RevisionNote>>,
}

/// A revision whose note was changed.
#[derive(Debug)]
pub struct NotedRevision {
    /// The revision.
    pub revision: RevisionOfPiece,
    /// The version of its piece.
    pub version: i64,
    /// Its author.
    pub referenced: ReferencedResources,
}

/// Sets or removes the note of a revision. No autosave replaces a revision with a note.
pub async fn update_revision_note(
    caller: &Caller,
    change: RevisionNoteChange,
    expected: VersionPrecondition,
) -> Result<NotedRevision, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let scope = own.scope();
        let workspace = scope.workspace;
        let piece = lock_visible(tx, &scope, change.id).await?;
        let mut found = find_revision(tx, workspace, &piece, change.revision).await?;
        expected.check_version(piece.version)?;
        let actors = members_and_actors(&[], found.revision.created_by);
        let mut referenced = references::find(tx, workspace, &[], &actors, &[]).await?;
        referenced.hides_emails = scope.hides_emails;
        let version = piece.version;
        let Some(note) = &change.note else {
            return Ok(NotedRevision { revision: found, version, referenced });
        };
        if found.revision.note != *note {
            let number = Some(found.revision.number);
            let changes = AuditChanges::default().with_field("note").with_revision(number);
            own.record(tx, AuditAction::RevisionUpdate, change.id, changes);
        }
        found.revision.note.clone_from(note);
        if !piece.has_revisions() {
            // The first revision has no row yet.
            revisions::record_first(tx, workspace, &piece).await?;
        }
        let number = found.revision.number;
        content_piece_revisions::update_note(tx, workspace, piece.id, number, note.as_ref())
            .await?;
        Ok(NotedRevision { revision: found, version, referenced })
    };
    caller.write("content_pieces.update_revision_note", write).await
}
