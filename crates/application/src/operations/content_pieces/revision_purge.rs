//! Removal of single revisions, whose values must not stay in the database.

use std::collections::BTreeSet;

use galley_domain::audit::AuditAction;
use galley_domain::variant::VariantRef;
use galley_domain::{ContentPieceId, RevisionId};
use galley_storage::{WriteTx, content_piece_revisions, variants};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::error::Error;
use crate::operations::content_pieces::restore_revision::lock_visible;
use crate::operations::content_pieces::revision_reads::find_revision;
use crate::operations::content_pieces::revision_retention::merge;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};

/// Removes a revision of a piece for good. Later revisions of other parts then show the values
/// before it, too. The latest revision of a part is rejected, as its values are current.
pub async fn purge_revision(
    caller: &Caller,
    id: ContentPieceId,
    revision: RevisionId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let purge = async move |tx: &WriteTx<'_>| {
        let scope = own.scope();
        let workspace = scope.workspace;
        // The deletion of a variant locks it first, too, and removes the values of its revisions.
        if let Some(number) = revision.number_in(id)
            && let Some(found) = content_piece_revisions::find(tx, workspace, id, number).await?
            && let Some(variant) = found.revision.variant
        {
            variants::find_named_for_override(tx, workspace, &VariantRef::Id(variant)).await?;
        }
        let piece = lock_visible(tx, &scope, id).await?;
        let found = find_revision(tx, workspace, &piece, revision).await?.revision;
        expected.check_version(piece.version)?;
        let (number, part) = (found.number, found.variant);
        let latest =
            content_piece_revisions::list_of_part(tx, workspace, piece.id, part, None, 1).await?;
        if latest.first().is_none_or(|latest| latest.revision.number == number) {
            let detail = "the values of the revision are current: change or delete the piece";
            return Err(Rejection::new(Reason::LatestRevision, detail).into());
        }
        let publication = &piece.publication;
        let published = publication.published.map(|published| published.number);
        for shown in [published, publication.publish_revision].into_iter().flatten() {
            // The published state has the last change of each part.
            let before = Some(shown + 1);
            let last = content_piece_revisions::list_of_part(tx, workspace, id, part, before, 1);
            if last.await?.first().is_some_and(|last| last.revision.number == number) {
                let detail = "the values of the revision are published, or are to be: publish \
                              another revision, or unpublish the piece";
                return Err(Rejection::new(Reason::PublishedRevision, detail).into());
            }
        }
        let changes = AuditChanges::default().with_revision(Some(number));
        own.record(tx, AuditAction::RevisionPurge, id, changes);
        let removed = BTreeSet::from([number]);
        merge(tx, workspace, &piece, part, &removed).await?;
        Ok(content_piece_revisions::delete(tx, workspace, piece.id, &removed).await?)
    };
    caller.write("content_pieces.purge_revision", purge).await
}
