//! Content pieces. Each change emits an event.

mod custom_data;
mod deletion;
mod in_transaction;
mod list;
mod missing_references;
mod order_keys;
mod piece_view;
mod published_copy;
mod publishing;
mod restore_revision;
mod restore_trashed;
mod revision_purge;
mod revision_reads;
mod revision_retention;
mod revisions;
pub(super) mod unique_slugs;
mod update;

use std::collections::BTreeSet;

pub(crate) use deletion::remove;
pub use deletion::{delete_in, removal_event};
use galley_api_types::problem::Step;
use galley_domain::ContentPieceId;
use galley_domain::variant::VariantRef;
use galley_storage::content_piece_view::{self, View};
use galley_storage::{Tx, WriteKey, WriteTx, content_pieces};
pub use in_transaction::*;
pub use list::{PageStart, PieceListRequest, PiecePage, RequestedFilters, list};
pub use missing_references::{missing_references, missing_references_of_several};
pub(crate) use missing_references::{unknown_field, unknown_item};
pub use order_keys::spread_order_keys;
pub use piece_view::PieceView;
pub use publishing::{
    PublicationRequest, publish, publish_in, publish_piece, unpublish, unpublish_in,
};
pub(crate) use publishing::{READ_PERMISSION, lock_variants, record_schedule, unpublish_piece};
pub use restore_revision::{
    NotedRevision, RevisionNoteChange, RevisionRestoration, restore_revision, update_revision_note,
};
pub(crate) use restore_trashed::restore_from_trash;
pub use revision_purge::purge_revision;
pub use revision_reads::*;
pub use revision_retention::remove_expired_revisions;
pub use revisions::raise_due_events;
pub use unique_slugs::lock_slugs;
pub use update::*;

use crate::caller::Caller;
use crate::custom_data_schema::WorkBudget;
use crate::dry_run::dry_run;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::variants;
use crate::precondition::VersionPrecondition;
use crate::references::StateBeforeRead;

/// Creates a piece.
pub async fn create(
    caller: &Caller,
    new: NewContentPiece,
    request: IdempotentRequest,
    respond: Respond<StoredPiece>,
) -> Result<CreatedResponse, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    // Another position depends on the neighbours, which other writes of a group may change.
    let keys = new.reference_id.is_none().then(Vec::new);
    let create = async move |tx: &WriteTx<'_>| {
        create_in(tx, &environment, &scope, &new, &mut WorkBudget::default()).await
    };
    idempotency::create(caller, "content_pieces.create", request, keys, create, respond).await
}

/// Creates several pieces, or none. Issues have the path `pieces[index]`.
pub async fn create_several(
    caller: &Caller,
    new: Vec<NewContentPiece>,
    request: IdempotentRequest,
    respond: Respond<Vec<StoredPiece>>,
) -> Result<CreatedResponse, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let create = async move |tx: &WriteTx<'_>| {
        let mut pieces: Vec<StoredPiece> = Vec::with_capacity(new.len());
        let mut budget = WorkBudget::default();
        let groups: BTreeSet<_> = new.iter().map(|new| new.content_group_id).collect();
        lock_slugs(tx, &scope, &groups.into_iter().collect::<Vec<_>>()).await?;
        for (index, new) in new.iter().enumerate() {
            let path = [Step::Field("pieces".to_owned()), Step::Item(index)];
            match create_in(tx, &environment, &scope, new, &mut budget).await {
                Ok(created) => pieces.push(created),
                Err(error) => {
                    let created: Vec<_> = pieces.iter().map(|created| created.piece.id).collect();
                    return Err(unique_slugs::with_indexes(error, &created).prefixed(&path));
                }
            }
        }
        Ok(pieces)
    };
    idempotency::create(caller, "content_pieces.create_several", request, None, create, respond)
        .await
}

/// Creates a piece, and rolls back.
pub async fn create_dry(caller: &Caller, new: NewContentPiece) -> Result<(), Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let create = async move |tx: &WriteTx<'_>| {
        create_in(tx, &environment, &scope, &new, &mut WorkBudget::default()).await.map(drop)
    };
    dry_run(caller.service(), "content_pieces.create_dry", create).await
}

/// Updates a piece.
pub async fn update(
    caller: &Caller,
    update: ContentPieceUpdate,
    expected: VersionPrecondition,
) -> Result<StoredPiece, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    // A move depends on the neighbours, too, and a slug on those of other pieces.
    let keys = (!update.needs_order_lock()).then(|| vec![key_of(update.id)]);
    let write =
        async move |tx: &WriteTx<'_>| update_in(tx, &environment, &scope, &update, &expected).await;
    caller.write_grouped("content_pieces.update", keys, write).await
}

/// Updates a piece, and rolls back. Returns the content after the update.
pub async fn update_dry(
    caller: &Caller,
    update: ContentPieceUpdate,
    expected: VersionPrecondition,
) -> Result<String, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let update = async move |tx: &WriteTx<'_>| {
        update_in(tx, &environment, &scope, &update, &expected).await?;
        content_after(tx, &scope, &update).await
    };
    dry_run(caller.service(), "content_pieces.update_dry", update).await
}

/// Returns the content of a piece of the workspace, as seen in a variant, to compare it with new
/// content. It may be outside of the caller's scope, so no response may depend on it.
pub async fn content(
    caller: &Caller,
    id: ContentPieceId,
    variant: Option<VariantRef>,
) -> Result<Option<String>, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let variant = variants::find_named(tx, &scope, variant.as_ref()).await?;
        let variant = variant.map(|variant| variant.id);
        Ok::<_, Error>(content_pieces::find_content(tx, scope.workspace, id, variant).await?)
    };
    caller.read_current("content_pieces.content", read).await
}

/// Deletes a piece. It moves into the trash, unless that is turned off.
pub async fn delete(
    caller: &Caller,
    id: ContentPieceId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let kind = caller.usual_deletion();
    let write = async move |tx: &WriteTx<'_>| {
        delete_in(tx, &environment, &scope, id, &expected, kind).await
    };
    caller.write_grouped("content_pieces.delete", Some(vec![key_of(id)]), write).await
}

/// Returns the key of writes that change a piece.
fn key_of(id: ContentPieceId) -> WriteKey {
    WriteKey::of(("content piece", id))
}

/// Returns a piece in the caller's scope, as seen in the variant. `view` has the parts to read.
pub async fn get(
    caller: &Caller,
    id: ContentPieceId,
    variant: Option<VariantRef>,
    view: View,
) -> Result<PieceView, Error> {
    let (scope, service) = (caller.scope(), caller.service().clone());
    if scope.piece.is_some_and(|piece| piece != id) {
        return Err(Error::not_found());
    }
    let state = StateBeforeRead::of(service.database(), scope.workspace);
    let read = async move |tx: &Tx<'_>| {
        let workspace = scope.workspace;
        let within = scope.content_groups.as_deref();
        let variant = variants::find_named(tx, &scope, variant.as_ref()).await?;
        let variant = variant.map(|variant| variant.id);
        let view = View { of: scope.view, variant, ..view };
        let found = content_piece_view::find_visible(tx, workspace, id, within, view).await?;
        let piece = found.ok_or_else(Error::not_found)?;
        let cache = service.references();
        let pieces = [&piece.0].into_iter();
        let mut referenced = cache.of_pieces(state.as_ref(), tx, workspace, pieces).await?;
        referenced.hides_emails = scope.hides_emails;
        Ok(PieceView { piece, referenced })
    };
    caller.read("content_pieces.get", read).await
}
