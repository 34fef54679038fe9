//! Restoration of pieces from the trash.

use galley_api_types::problem::{Issue, Step};
use galley_domain::content_piece::ContentPiece;
use galley_domain::trash::TrashedId;
use galley_domain::{ContentGroupId, ContentPieceId, Invalid};
use galley_storage::trash::{self, TrashedPiece};
use galley_storage::{WriteTx, import_sources, ordering, variants};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::custom_data::{CustomDataChange, issues_of_change};
use crate::operations::content_pieces::in_transaction::{RestoredPiece, StoredPiece, restore};
use crate::operations::content_pieces::revision_reads::leave_out_deleted;
use crate::scope::Scope;

/// Restores a piece of an entry of the trash: to its former position, or to the end of `group`.
/// Tags, members and variants that were deleted meanwhile are left out.
pub(crate) async fn restore_from_trash(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    entry: TrashedId,
    id: ContentPieceId,
    group: Option<ContentGroupId>,
) -> Result<StoredPiece, Error> {
    let workspace = scope.workspace;
    let trashed =
        trash::find_piece(tx, workspace, entry, id).await?.ok_or_else(Error::not_found)?;
    let mut parts = Vec::with_capacity(trashed.parts.len());
    for mut part in trashed.parts {
        if let Some(variant) = part.variant
            && variants::find(tx, workspace, variant).await?.is_none()
        {
            continue;
        }
        leave_out_deleted(tx, scope, &mut part.state).await?;
        parts.push(part);
    }
    let (mut piece, content, overrides, sources) =
        TrashedPiece { parts, ..trashed }.into_whole()?;
    let now = environment.now();
    (piece.updated_at, piece.updated_by) = (now, Some(scope.author));
    let variants = overrides.iter().map(|(variant, ..)| *variant).collect();
    let before = ContentPiece { variants, ..piece.clone() };
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
    for source in &sources {
        import_sources::save(tx, workspace, source).await?;
    }
    StoredPiece::find(tx, scope, id).await
}
