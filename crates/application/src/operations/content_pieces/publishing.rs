//! Publication of pieces.

use galley_domain::audit::AuditAction;
use galley_domain::content_piece::ContentPiece;
use galley_domain::event::ResourceChange;
use galley_domain::permission::Resource;
use galley_domain::publication::{Publication, PublishedRevision};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentPieceId, Permission, RevisionId, Timestamp};
use galley_storage::event_append;
use galley_storage::{
    WriteTx, content_groups, content_piece_revisions, content_pieces, ordering, published_pieces,
    variants,
};
use serde_json::json;

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::content_pieces::in_transaction::StoredPiece;
use crate::operations::content_pieces::published_copy::{
    insert_published, piece_event, published_event, record_if_unrecorded, remove_published,
};
use crate::operations::content_pieces::restore_revision::lock_visible;
use crate::operations::content_pieces::revision_reads::{
    existing_variants_changed_after, find_revision,
};
use crate::precondition::VersionPrecondition;
use crate::scope::Scope;

/// The permission that publications require besides their own, as they may return the piece.
pub(crate) const READ_PERMISSION: Permission = Permission::read(Resource::ContentPieces);

/// A publication of a piece, or a change of its schedule.
#[derive(Debug, Clone, Copy)]
pub struct PublicationRequest {
    /// The piece.
    pub id: ContentPieceId,
    /// The revision; `None` for the latest one.
    pub revision: Option<RevisionId>,
    /// The scheduled time: `None` publishes at once, `Some(None)` cancels the schedule.
    pub at: Option<Option<Timestamp>>,
    /// The time at which the piece is unpublished. `Some(None)` cancels that.
    pub unpublish_at: Option<Option<Timestamp>>,
}

/// Publishes a revision of a piece, or changes its schedule.
pub async fn publish(
    caller: &Caller,
    publication: PublicationRequest,
    expected: VersionPrecondition,
    request: IdempotentRequest,
    respond: Respond<StoredPiece>,
) -> Result<CreatedResponse, Error> {
    caller.require(READ_PERMISSION)?;
    let (environment, scope) = (caller.environment().clone(), caller.scope());
    let publish = async move |tx: &WriteTx<'_>| {
        Box::pin(publish_in(tx, &environment, &scope, &publication, &expected)).await
    };
    idempotency::create(caller, "content_pieces.publish", request, None, publish, respond).await
}

/// Unpublishes a piece: at once without `at`, or at that time. `Some(None)` cancels the schedule.
pub async fn unpublish(
    caller: &Caller,
    id: ContentPieceId,
    at: Option<Option<Timestamp>>,
    expected: VersionPrecondition,
    request: IdempotentRequest,
    respond: Respond<StoredPiece>,
) -> Result<CreatedResponse, Error> {
    caller.require(READ_PERMISSION)?;
    let (environment, scope) = (caller.environment().clone(), caller.scope());
    let unpublish = async move |tx: &WriteTx<'_>| {
        unpublish_in(tx, &environment, &scope, id, at, &expected).await
    };
    idempotency::create(caller, "content_pieces.unpublish", request, None, unpublish, respond).await
}

/// Publishes within a transaction.
pub async fn publish_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    request: &PublicationRequest,
    expected: &VersionPrecondition,
) -> Result<StoredPiece, Error> {
    let workspace = scope.workspace;
    // The published slug is compared with others, and this lock comes before that of the piece.
    ordering::lock(tx, workspace).await?;
    let number = request.revision.and_then(|revision| revision.number_in(request.id));
    lock_variants(tx, scope, request.id, number).await?;
    let mut piece = lock_visible(tx, scope, request.id).await?;
    let number = match request.revision {
        Some(id) => Some(find_revision(tx, workspace, &piece, id).await?.revision.number),
        None => None,
    };
    expected.check_version(piece.version)?;
    let mut publication = piece.publication;
    if let Some(at) = request.at {
        publication.publish_at = at;
        publication.publish_revision = at.and(number);
        if let Some(number) = publication.publish_revision {
            record_if_unrecorded(tx, workspace, &mut piece).await?;
            content_piece_revisions::mark_published(tx, workspace, piece.id, number).await?;
        }
    }
    publication.unpublish_at = request.unpublish_at.unwrap_or(publication.unpublish_at);
    if publication != piece.publication {
        published_pieces::update_publication(tx, workspace, piece.id, &publication).await?;
        record_schedule(tx, environment, scope, piece.id, piece.publication, publication);
        piece.publication = publication;
    }
    if request.at.is_none() {
        publish_piece(tx, environment, scope, &piece, number).await?;
    }
    StoredPiece::find(tx, scope, piece.id).await
}

/// Unpublishes within a transaction.
pub async fn unpublish_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentPieceId,
    at: Option<Option<Timestamp>>,
    expected: &VersionPrecondition,
) -> Result<StoredPiece, Error> {
    let workspace = scope.workspace;
    let piece = lock_visible(tx, scope, id).await?;
    expected.check_version(piece.version)?;
    match at {
        Some(unpublish_at) => {
            let publication = Publication { unpublish_at, ..piece.publication };
            if publication != piece.publication {
                published_pieces::update_publication(tx, workspace, id, &publication).await?;
                record_schedule(tx, environment, scope, id, piece.publication, publication);
            }
        }
        None => unpublish_piece(tx, environment, scope, &piece).await?,
    }
    StoredPiece::find(tx, scope, id).await
}

/// Records the change of a schedule.
pub(crate) fn record_schedule(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentPieceId,
    before: Publication,
    after: Publication,
) {
    let times = |publication: Publication| {
        let Publication { publish_at, unpublish_at, .. } = publication;
        json!({"publishAt": publish_at, "unpublishAt": unpublish_at})
    };
    let changes = AuditChanges::updated(times(before), times(after));
    let changes = changes.with_revision(after.publish_revision);
    audit::record(tx, environment, scope, AuditAction::ContentPieceSchedule, id, changes);
}

/// Locks the variants that the publication of a revision refers to: `number`, or the latest one.
/// The deletion of a variant locks it before its pieces, too.
pub(crate) async fn lock_variants(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: ContentPieceId,
    number: Option<i64>,
) -> Result<(), Error> {
    let workspace = scope.workspace;
    let found = content_pieces::find(tx, workspace, id).await?;
    let mut variants = found.map(|piece| piece.variants).unwrap_or_default();
    if let Some(number) = number {
        variants.extend(existing_variants_changed_after(tx, workspace, id, number).await?);
    }
    variants.sort_unstable();
    variants.dedup();
    for variant in variants {
        variants::find_named_for_override(tx, workspace, &VariantRef::Id(variant)).await?;
    }
    Ok(())
}

/// Publishes a revision of a locked piece: `number`, or the latest one. Nothing changes if it is
/// published already.
pub async fn publish_piece(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
    number: Option<i64>,
) -> Result<(), Error> {
    let number = number.unwrap_or_else(|| piece.latest_revision());
    let workspace = scope.workspace;
    if piece.publication.published.is_some_and(|published| published.number == number) {
        return Ok(());
    }
    let mut piece = piece.clone();
    record_if_unrecorded(tx, workspace, &mut piece).await?;
    let now = environment.now();
    let published = PublishedRevision { number, at: now, by: scope.author };
    let was_published = piece.publication.published.is_some();
    let copy = insert_published(tx, scope, &piece, published).await?;
    content_piece_revisions::mark_published(tx, workspace, piece.id, number).await?;
    piece.publication.published = Some(published);
    published_pieces::update_publication(tx, workspace, piece.id, &piece.publication).await?;
    let changes = AuditChanges::of_piece([], Some(number));
    audit::record(tx, environment, scope, AuditAction::ContentPiecePublish, piece.id, changes);
    let path = content_groups::path(tx, workspace, piece.content_group_id).await?;
    let change = if was_published {
        ResourceChange::PieceUpdated { before: path.clone(), after: path.clone() }
    } else {
        ResourceChange::PieceAdded(path.clone())
    };
    let events = [
        piece_event(tx, environment, workspace, &piece, ResourceChange::PiecePublished(path))
            .await?,
        published_event(tx, environment, workspace, &copy, change).await?,
    ];
    Ok(event_append::append(tx, workspace, events, now).await?)
}

/// Unpublishes a locked piece. Nothing changes if it is not published.
pub(crate) async fn unpublish_piece(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
) -> Result<(), Error> {
    let workspace = scope.workspace;
    if piece.publication.published.is_none() {
        return Ok(());
    }
    let path = content_groups::path(tx, workspace, piece.content_group_id).await?;
    let removed = remove_published(tx, environment, scope, piece, &path).await?;
    let publication = Publication { published: None, ..piece.publication };
    let piece = ContentPiece { publication, ..piece.clone() };
    published_pieces::update_publication(tx, workspace, piece.id, &publication).await?;
    let (action, changes) = (AuditAction::ContentPieceUnpublish, AuditChanges::default());
    audit::record(tx, environment, scope, action, piece.id, changes);
    let change = ResourceChange::PieceUnpublished(path);
    let unpublished = piece_event(tx, environment, workspace, &piece, change).await?;
    let events = removed.into_iter().chain([unpublished]);
    Ok(event_append::append(tx, workspace, events, environment.now()).await?)
}
