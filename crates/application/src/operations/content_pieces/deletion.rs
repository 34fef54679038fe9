//! Deletion of pieces: into the trash, or for good.

use galley_api_types::content_piece::{ContentPieceBody, ReferencedResources};
use galley_domain::ContentPieceId;
use galley_domain::audit::AuditAction;
use galley_domain::content_group::GroupPath;
use galley_domain::content_piece::ContentPiece;
use galley_domain::event::ResourceChange;
use galley_domain::trash::{Deletion, TrashEntry, TrashedId};
use galley_storage::event_append::{self, NewEvent};
use galley_storage::{WriteTx, content_piece_revisions, content_pieces, published_pieces, trash};

use crate::audit::{self, AuditChanges};
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::published_copy::remove_published;
use crate::operations::content_pieces::revisions;
use crate::operations::event;
use crate::precondition::VersionPrecondition;
use crate::references;
use crate::scope::Scope;

/// Deletes a piece.
pub async fn delete_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentPieceId,
    expected: &VersionPrecondition,
    kind: Deletion,
) -> Result<(), Error> {
    let found = content_pieces::find_for_update(tx, scope.workspace, id).await?;
    let (piece, path) = found.ok_or_else(Error::not_found)?;
    if !scope.contains(&path) {
        return Err(Error::not_found());
    }
    expected.check_version(piece.version)?;
    if piece.publication.published.is_some() {
        published_pieces::leave_write_group(tx)?;
    }
    let referenced = references::of_pieces(tx, scope.workspace, [&piece].into_iter()).await?;
    let removed = removal_event(environment, &piece, &referenced, path.clone());
    let now = environment.now();
    let entry = TrashEntry {
        id: TrashedId::Piece(id),
        content_group_id: Some(piece.content_group_id),
        title: piece.fields.title.as_str().to_owned(),
        deleted_at: now,
        deleted_by: scope.author,
        pieces: 1,
    };
    if kind == Deletion::ToTrash {
        trash::insert(tx, scope.workspace, &entry).await?;
    }
    let trashed = (kind == Deletion::ToTrash).then_some(entry.id);
    let unpublished = remove(tx, environment, scope, &piece, &path, trashed).await?;
    let events = unpublished.into_iter().chain([removed]);
    event_append::append(tx, scope.workspace, events, now).await?;
    let action = match kind {
        Deletion::ToTrash => AuditAction::ContentPieceDelete,
        Deletion::Permanent => AuditAction::ContentPiecePurge,
    };
    let changes = AuditChanges::of_piece([], Some(piece.latest_revision()));
    audit::record(tx, environment, scope, action, id, changes);
    Ok(())
}

/// Creates the event of a piece's removal from the group at the end of `path`.
pub fn removal_event(
    environment: &Environment,
    piece: &ContentPiece,
    referenced: &ReferencedResources,
    path: GroupPath,
) -> NewEvent {
    let data = ContentPieceBody::event_data(piece, referenced, None);
    event(environment, ResourceChange::PieceRemoved(path), data, None)
}

/// Removes a piece from the workspace: into an entry of the trash, or for good. Returns the event
/// of the published view, if the piece was published.
pub(crate) async fn remove(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
    path: &GroupPath,
    entry: Option<TrashedId>,
) -> Result<Option<NewEvent>, Error> {
    let workspace = scope.workspace;
    let unpublished = remove_published(tx, environment, scope, piece, path).await?;
    match entry {
        Some(entry) if piece.revision.is_none() => {
            // The first revision of an older piece would show the time of its restoration.
            revisions::record_first(tx, workspace, piece).await?;
            let recorded = ContentPiece { revision: Some(1), ..piece.clone() };
            trash::copy_piece(tx, workspace, entry, &recorded).await?;
        }
        Some(entry) => trash::copy_piece(tx, workspace, entry, piece).await?,
        None if piece.has_revisions() => {
            content_piece_revisions::delete_of_piece(tx, workspace, piece.id).await?;
        }
        None => {}
    }
    content_pieces::delete(tx, workspace, piece).await?;
    Ok(unpublished)
}
