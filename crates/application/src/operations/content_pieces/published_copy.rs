//! The copies of pieces in the published view.
//!
//! A change of a piece's group or position, and its deletion, apply to both views at once. So their
//! operations call [`move_published`] and [`remove_published`].

use galley_api_types::content_piece::ContentPieceBody;
use galley_domain::content_group::GroupPath;
use galley_domain::content_piece::ContentPiece;
use galley_domain::event::ResourceChange;
use galley_domain::publication::{ContentView, Publication, PublishedRevision};
use galley_domain::revision::PartState;
use galley_domain::{VariantId, WorkspaceId};
use galley_storage::content_piece_revisions::StoredRevision;
use galley_storage::content_piece_variants::Override;
use galley_storage::event_append::{self, NewEvent};
use galley_storage::{
    Tx, WriteTx, content_piece_revisions, content_piece_variants, content_pieces, published_pieces,
};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::revision_reads::{
    existing_variants_changed_after, fields_of, leave_out_deleted, part_at,
};
use crate::operations::content_pieces::revisions;
use crate::operations::content_pieces::unique_slugs::SlugComparison;
use crate::operations::event;
use crate::references;
use crate::scope::Scope;

/// Records the first revision of a piece that has none recorded, so that it can be marked.
pub(super) async fn record_if_unrecorded(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &mut ContentPiece,
) -> Result<(), Error> {
    if !piece.has_revisions() {
        revisions::record_first(tx, workspace, piece).await?;
        piece.revision = Some(1);
    }
    Ok(())
}

/// Publishes a piece that is restored with its publication, without an event in the current view.
pub(super) async fn restore_published(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
    path: &GroupPath,
) -> Result<(), Error> {
    let publication = &piece.publication;
    if *publication == Publication::default() {
        return Ok(());
    }
    published_pieces::update_publication(tx, scope.workspace, piece.id, publication).await?;
    let Some(published) = publication.published else { return Ok(()) };
    let copy = insert_published(tx, scope, piece, published).await?;
    content_piece_revisions::mark_published(tx, scope.workspace, piece.id, published.number)
        .await?;
    let change = ResourceChange::PieceAdded(path.clone());
    let added = published_event(tx, environment, scope.workspace, &copy, change).await?;
    Ok(event_append::append(tx, scope.workspace, [added], environment.now()).await?)
}

/// Copies a revision of a piece to the published view, in place of another one. Returns the copy.
pub(super) async fn insert_published(
    tx: &WriteTx<'_>,
    scope: &Scope,
    piece: &ContentPiece,
    published: PublishedRevision,
) -> Result<ContentPiece, Error> {
    let workspace = scope.workspace;
    let slugs = SlugComparison::begin(tx, scope, piece.content_group_id).await?;
    let before = published_pieces::find(tx, workspace, piece.id).await?;
    if let Some(before) = &before {
        published_pieces::delete(tx, workspace, before).await?;
    }
    let (mut own, overrides) = state_at(tx, scope, piece, published.number).await?;
    let content = own.content.take().ok_or_else(Error::not_found)?;
    let revision = content_piece_revisions::find(tx, workspace, piece.id, published.number).await?;
    // A purged revision has no row.
    let (updated_at, updated_by) = revision
        .map_or((piece.updated_at, piece.updated_by), |StoredRevision { revision, .. }| {
            (revision.created_at, revision.created_by)
        });
    let copy = ContentPiece {
        fields: fields_of(own)?,
        variants: overrides.iter().map(|(variant, ..)| *variant).collect(),
        updated_at,
        updated_by,
        revision: Some(published.number),
        publication: Publication { published: Some(published), ..Publication::default() },
        ..piece.clone()
    };
    published_pieces::insert(tx, workspace, &copy, &content, &overrides).await?;
    slugs.check(tx, scope, piece.id, "revision").await?;
    Ok(copy)
}

/// Returns a piece as it was at a revision. Tags, members and variants that were deleted meanwhile
/// are left out.
async fn state_at(
    tx: &Tx<'_>,
    scope: &Scope,
    piece: &ContentPiece,
    number: i64,
) -> Result<(PartState, Vec<Override>), Error> {
    let workspace = scope.workspace;
    if number == piece.latest_revision() {
        let content = content_pieces::find_content(tx, workspace, piece.id, None).await?;
        let own = PartState { fields: piece.fields.clone().into(), content };
        let overrides = if piece.variants.is_empty() {
            Vec::new()
        } else {
            content_piece_variants::of_piece(tx, workspace, piece.id).await?
        };
        return Ok((own, overrides));
    }
    let part = async |variant: Option<VariantId>| -> Result<PartState, Error> {
        let mut state = part_at(tx, workspace, piece, variant, number).await?;
        leave_out_deleted(tx, scope, &mut state).await?;
        Ok(state)
    };
    let own = part(None).await?;
    let changed = existing_variants_changed_after(tx, workspace, piece.id, number).await?;
    let mut variants = [piece.variants.as_slice(), &changed].concat();
    variants.sort_unstable();
    variants.dedup();
    let mut overrides = Vec::new();
    for variant in variants {
        let state = part(Some(variant)).await?;
        if state != PartState::default() {
            overrides.push((variant, state.fields, state.content));
        }
    }
    Ok((own, overrides))
}

/// Removes a piece from the published view, if it is published. Returns the event.
pub(super) async fn remove_published(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
    path: &GroupPath,
) -> Result<Option<NewEvent>, Error> {
    let workspace = scope.workspace;
    if piece.publication.published.is_none() {
        return Ok(None);
    }
    let found = published_pieces::find(tx, workspace, piece.id).await?;
    let Some(published) = found else { return Ok(None) };
    let change = ResourceChange::PieceRemoved(path.clone());
    let removed = published_event(tx, environment, workspace, &published, change).await?;
    published_pieces::delete(tx, workspace, &published).await?;
    Ok(Some(removed))
}

/// Moves a piece in the published view to its place in the current one, if it is published. `paths`
/// are those of its groups before and after.
pub(super) async fn move_published(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
    (path_before, path): (GroupPath, GroupPath),
) -> Result<(), Error> {
    let workspace = scope.workspace;
    if piece.publication.published.is_none() {
        return Ok(());
    }
    let found = published_pieces::find_for_update(tx, workspace, piece.id).await?;
    let Some(before) = found else { return Ok(()) };
    let after = ContentPiece {
        content_group_id: piece.content_group_id,
        order: piece.order.clone(),
        placed_at: piece.placed_at,
        version: before.version + 1,
        ..before.clone()
    };
    published_pieces::update_place(tx, workspace, &before, &after).await?;
    let data_before =
        if path_before == path { None } else { Some(event_data(tx, workspace, &before).await?) };
    let change = ResourceChange::PieceUpdated { before: path_before, after: path };
    let moved = published_event(tx, environment, workspace, &after, change).await?;
    let moved = NewEvent { data_before, ..moved };
    Ok(event_append::append(tx, workspace, [moved], environment.now()).await?)
}

async fn event_data(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<String, Error> {
    let referenced = references::of_pieces(tx, workspace, [piece].into_iter()).await?;
    Ok(ContentPieceBody::event_data(piece, &referenced, None))
}

pub(super) async fn piece_event(
    tx: &Tx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    change: ResourceChange,
) -> Result<NewEvent, Error> {
    Ok(event(environment, change, event_data(tx, workspace, piece).await?, None))
}

/// Creates the event of a change that the published view shows, with the copy of the piece.
pub(super) async fn published_event(
    tx: &Tx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    copy: &ContentPiece,
    change: ResourceChange,
) -> Result<NewEvent, Error> {
    let event = piece_event(tx, environment, workspace, copy, change).await?;
    Ok(NewEvent { view: ContentView::Published, ..event })
}
