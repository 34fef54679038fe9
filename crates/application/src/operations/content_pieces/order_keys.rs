//! Order keys of pieces.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use galley_api_types::content_piece::ContentPieceBody;
use galley_domain::content_group::GroupPath;
use galley_domain::content_piece::ContentPiece;
use galley_domain::event::ResourceChange;
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, WorkspaceId};
use galley_storage::content_piece_view::{self, View};
use galley_storage::event_append::{self, NewEvent};
use galley_storage::order_key_spread::{self, MovedPieces, SpreadPlan};
use galley_storage::ordering::OrderedPiece;
use galley_storage::{Tx, WriteTx, content_groups, ordering};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::event;
use crate::references;
use crate::scope::Scope;

/// Returns the new order key of a piece, if it moves: after `reference`, or to the start of the
/// group if it is `Some(None)`.
pub(super) async fn new_order_key(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
    group: ContentGroupId,
    reference: Option<Option<ContentPiece>>,
) -> Result<Option<OrderKey>, Error> {
    let workspace = scope.workspace;
    let moves_group = group != piece.content_group_id;
    let random = environment.random();
    let Some(reference) = reference else {
        if !moves_group {
            return Ok(None);
        }
        return Ok(Some(ordering::at_the_end(tx, workspace, random).await?));
    };
    if let Some(reference) = reference {
        let next = ordering::next_in_group(tx, workspace, group, Some(&reference.order)).await?;
        if next.is_some_and(|next| next.id == piece.id) {
            return Ok(None);
        }
        return Ok(Some(ordering::after(tx, workspace, &place_of(&reference), random).await?));
    }
    match ordering::next_in_group(tx, workspace, group, None).await? {
        Some(first) if first.id == piece.id => Ok(None),
        Some(first) => Ok(Some(ordering::before(tx, workspace, &first, random).await?)),
        None => Ok(Some(ordering::at_the_end(tx, workspace, random).await?)),
    }
}

pub(super) async fn find_reference(
    tx: &Tx<'_>,
    scope: &Scope,
    id: Option<ContentPieceId>,
) -> Result<Option<ContentPiece>, Error> {
    match id {
        Some(id) => {
            let within = scope.content_groups.as_deref();
            let found =
                content_piece_view::find_visible(tx, scope.workspace, id, within, View::default());
            Ok(found.await?.map(|(piece, _)| piece))
        }
        None => Ok(None),
    }
}

/// Assigns new order keys to the next pieces of a workspace whose keys have grown long, and appends
/// an event for each. Returns true if more may be left.
///
/// The events omit custom data, to keep the transaction small. Readers of events add it.
pub async fn spread_order_keys(
    tx: &WriteTx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    plan: Option<&SpreadPlan>,
) -> Result<bool, Error> {
    let Some(moved) = order_key_spread::spread_slice(tx, workspace, plan).await? else {
        return Ok(false);
    };
    let MovedPieces { current, published } = moved;
    let referenced = references::of_pieces(tx, workspace, current.iter().chain(&published)).await?;
    let mut paths: HashMap<ContentGroupId, GroupPath> = HashMap::new();
    let mut updated_events = Vec::with_capacity(current.len() + published.len());
    let in_view = |view: ContentView| move |piece| (view, piece);
    let current = current.iter().map(in_view(ContentView::Current));
    let published = published.iter().map(in_view(ContentView::Published));
    for (view, piece) in current.chain(published) {
        let path = match paths.entry(piece.content_group_id) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let path = content_groups::path(tx, workspace, piece.content_group_id).await?;
                new.insert(path).clone()
            }
        };
        let occurrence = ResourceChange::PieceUpdated { before: path.clone(), after: path };
        let data = ContentPieceBody::event_data(piece, &referenced, None);
        let updated = event(environment, occurrence, data, None);
        let custom_data_of = Some((piece.id, piece.version));
        updated_events.push(NewEvent { view, custom_data_of, ..updated });
    }
    event_append::append(tx, workspace, updated_events, environment.now()).await?;
    Ok(true)
}

pub(super) fn place_of(piece: &ContentPiece) -> OrderedPiece {
    OrderedPiece { id: piece.id, order: piece.order.clone(), placed_at: piece.placed_at }
}
