//! Pieces that move into the trash and back.

use galley_api_types::problem::{Issue, Step};
use galley_domain::content_piece::ContentPiece;
use galley_domain::trash::TrashedId;
use galley_domain::variant::VariantRef;
use galley_domain::{ContentGroupId, ContentPieceId, Invalid};
use galley_storage::trash::{self, TrashedPart, TrashedPiece};
use galley_storage::{WriteTx, content_piece_revisions, content_pieces, ordering, variants};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::custom_data::{CustomDataChange, issues_of_change};
use crate::operations::content_pieces::in_transaction::{RestoredPiece, StoredPiece, restore};
use crate::operations::content_pieces::restore_revision::leave_out_deleted;
use crate::operations::content_pieces::revision_reads::fields_of;
use crate::operations::content_pieces::revisions;
use crate::operations::import_sources::{self, NewSource};
use crate::references;
use crate::scope::Scope;

/// Removes a piece from the workspace: into an entry of the trash, or for good.
pub(crate) async fn remove(
    tx: &WriteTx<'_>,
    scope: &Scope,
    piece: &ContentPiece,
    entry: Option<TrashedId>,
) -> Result<(), Error> {
    let workspace = scope.workspace;
    match entry {
        Some(entry) if piece.revision.is_none() => {
            // The first revision of an older piece would show the time of its restoration.
            revisions::record_first(tx, workspace, piece).await?;
            let recorded = ContentPiece { revision: Some(1), ..piece.clone() };
            trash::insert_piece(tx, workspace, entry, &recorded).await?;
        }
        Some(entry) => trash::insert_piece(tx, workspace, entry, piece).await?,
        None if piece.has_revisions() => {
            content_piece_revisions::delete_of_piece(tx, workspace, piece.id).await?;
        }
        None => {}
    }
    Ok(content_pieces::delete(tx, workspace, piece).await?)
}

/// Restores a piece of an entry of the trash: to its former position, or to the end of `group`.
/// Tags, members and variants that were deleted meanwhile are left out.
pub(crate) async fn restore_from_trash(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentPieceId,
    group: Option<ContentGroupId>,
) -> Result<StoredPiece, Error> {
    let workspace = scope.workspace;
    let trashed = trash::find_piece(tx, workspace, id).await?.ok_or_else(Error::not_found)?;
    let mut sources = Vec::new();
    let (mut own, mut overrides) = (None, Vec::new());
    for TrashedPart { variant, mut state, source } in trashed.parts {
        if let Some(variant) = variant
            && variants::find(tx, workspace, variant).await?.is_none()
        {
            continue;
        }
        leave_out_deleted(tx, scope, &mut state).await?;
        sources.extend(source.map(|source| NewSource {
            piece: id,
            variant: variant.map(VariantRef::Id),
            source,
        }));
        match variant {
            Some(variant) => overrides.push((variant, state.fields, state.content)),
            None => own = Some(state),
        }
    }
    let mut own = own.ok_or_else(Error::not_found)?;
    let content = own.content.take().ok_or_else(Error::not_found)?;
    let now = environment.now();
    let TrashedPiece { order, placed_at, created_at, created_by, revision, .. } = trashed;
    let mut piece = ContentPiece {
        id,
        content_group_id: trashed.content_group_id,
        order,
        placed_at,
        fields: fields_of(own)?,
        variants: Vec::new(),
        version: 0,
        created_at,
        updated_at: now,
        created_by,
        updated_by: Some(scope.author),
        revision: Some(revision),
    };
    let before = piece.clone();
    if let Some(group) = group.filter(|&group| group != piece.content_group_id) {
        ordering::lock(tx, workspace).await?;
        piece.content_group_id = group;
        piece.order = ordering::at_the_end(tx, workspace, environment.random()).await?;
        piece.placed_at = now;
    }
    let restored =
        RestoredPiece { piece: &piece, content: &content, overrides: &overrides, revisions: &[] };
    if !restore(tx, environment, scope, restored).await? {
        return Err(Error::not_found());
    }
    let (fields, group) = (&piece.fields, piece.content_group_id);
    let change = CustomDataChange { before: &before, fields, overrides: None, group };
    let issues = issues_of_change(tx, scope, change).await?.into_iter().map(|issue| {
        let message = format!("names a group whose schema rejects the piece: {}", issue.message);
        let path = vec![Step::Field("contentGroupId".to_owned())];
        Issue::new(path, &Invalid::new(issue.code, message))
    });
    Error::reject_issues(issues.collect())?;
    import_sources::save_in(tx, scope, &sources).await?;
    let piece = content_pieces::find(tx, workspace, id).await?.ok_or_else(Error::not_found)?;
    let mut referenced = references::of_pieces(tx, workspace, [&piece].into_iter()).await?;
    referenced.hides_emails = scope.hides_emails;
    Ok(StoredPiece { piece, referenced })
}
