//! Places in a workspace's list of pieces.
//!
//! A new key is chosen between two neighbours; nobody else moves. Only when somebody has made a
//! key grow beyond [`OrderKey::LENGTH_MAX`] are neighbours spread out anew, in the same
//! transaction.

use galley_domain::content_piece::ContentPiece;
use galley_domain::order_key::Moving;
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, Timestamp, WorkspaceId};

use crate::content_pieces;
use crate::error::Result;
use crate::row::Row;
use crate::tx::{Tx, WriteTx};
use crate::value::params;

/// A piece's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which piece.
    pub id: ContentPieceId,
    /// Where it stands.
    pub order: OrderKey,
    /// When it was put there.
    pub placed_at: Timestamp,
}

/// A place that nobody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreePlace {
    /// Where it is.
    pub order: OrderKey,
    /// The neighbours that had to move for it, as they are now: hardly ever any.
    pub rewritten: Vec<ContentPiece>,
}

/// How many pieces on each side are spread out together, at first.
const SPREAD: i64 = 64;

fn read(row: &Row<'_>) -> Result<Place> {
    Ok(Place {
        id: row.parse(0)?,
        order: OrderKey::from_stored(row.text(1)?),
        placed_at: row.time(2)?,
    })
}

/// The last piece of the workspace.
pub async fn last(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Option<Place>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces WHERE workspace_id = ?1
        ORDER BY order_key DESC LIMIT 1";
    tx.find(sql, params![workspace], read).await
}

/// The piece of the workspace right after `order`.
pub async fn next(tx: &Tx<'_>, workspace: WorkspaceId, order: &OrderKey) -> Result<Option<Place>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces WHERE workspace_id = ?1 AND order_key > ?2
        ORDER BY order_key LIMIT 1";
    tx.find(sql, params![workspace, order], read).await
}

/// Whether a piece of the workspace has this place.
pub async fn is_taken(tx: &Tx<'_>, workspace: WorkspaceId, order: &OrderKey) -> Result<bool> {
    let sql = "SELECT 1 FROM content_pieces WHERE workspace_id = ?1 AND order_key = ?2 LIMIT 1";
    tx.exists(sql, params![workspace, order]).await
}

/// The piece of the workspace right before `order`.
pub async fn previous(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
) -> Result<Option<Place>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces WHERE workspace_id = ?1 AND order_key < ?2
        ORDER BY order_key DESC LIMIT 1";
    tx.find(sql, params![workspace, order], read).await
}

/// The first piece of a group, or the first after `order`.
pub async fn next_in_group(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
    order: Option<&OrderKey>,
) -> Result<Option<Place>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces
        WHERE workspace_id = ?1 AND content_group_id = ?2 AND order_key > ?3
        ORDER BY order_key LIMIT 1";
    let order = order.map_or("", OrderKey::as_str);
    tx.find(sql, params![workspace, group, order], read).await
}

/// A key at the end of the workspace's list. `random` chooses the step.
pub async fn at_the_end(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    random: u32,
) -> Result<FreePlace> {
    let last = last(tx, workspace).await?;
    choose(tx, workspace, last.as_ref(), None, random).await
}

/// A key right after the piece at `place`.
pub async fn after(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    place: &Place,
    random: u32,
) -> Result<FreePlace> {
    let next = next(tx, workspace, &place.order).await?;
    choose(tx, workspace, Some(place), next.as_ref(), random).await
}

/// A key right before the piece at `place`.
pub async fn before(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    place: &Place,
    random: u32,
) -> Result<FreePlace> {
    let previous = previous(tx, workspace, &place.order).await?;
    choose(tx, workspace, previous.as_ref(), Some(place), random).await
}

async fn choose(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: Option<&Place>,
    after: Option<&Place>,
    random: u32,
) -> Result<FreePlace> {
    // Of two of the same millisecond, identifiers tell which one came later.
    let placed = |place: Option<&Place>| place.map(|place| (place.placed_at, place.id));
    let moving = if placed(before) > placed(after) { Moving::Before } else { Moving::After };
    let [before, after] = [before, after].map(|place| place.map(|place| &place.order));
    let order = OrderKey::between(before, after, moving, random);
    if order.as_str().len() <= OrderKey::LENGTH_MAX {
        return Ok(FreePlace { order, rewritten: Vec::new() });
    }
    spread_around(tx, workspace, &order).await
}

/// Spreads out the pieces around `crowded` and gives the key of the free place among them.
async fn spread_around(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    crowded: &OrderKey,
) -> Result<FreePlace> {
    crate::workspaces::lock(tx, workspace).await?;
    let mut count = SPREAD;
    loop {
        let mut before = neighbours_before(tx, workspace, crowded, count + 1).await?;
        let mut after = neighbours_after(tx, workspace, crowded, count + 1).await?;
        let wanted = usize::try_from(count).expect("a small number");
        // What lies beyond stays and is the bound; there may be nothing beyond.
        let first = (before.len() > wanted).then(|| before.pop()).flatten();
        let last = (after.len() > wanted).then(|| after.pop()).flatten();
        let mut keys = OrderKey::spread(
            first.as_ref().map(|place| &place.order),
            last.as_ref().map(|place| &place.order),
            u32::try_from(before.len() + after.len() + 1).expect("a small number"),
        );
        let short = keys.iter().all(|key| key.as_str().len() <= OrderKey::LENGTH_MAX / 2);
        if !short && (first.is_some() || last.is_some()) {
            count *= 2;
            continue;
        }
        let order = keys.remove(before.len());
        before.reverse();
        before.append(&mut after);
        return Ok(FreePlace { order, rewritten: rewrite(tx, workspace, &before, keys).await? });
    }
}

async fn neighbours_before(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
    limit: i64,
) -> Result<Vec<Place>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces WHERE workspace_id = ?1 AND order_key < ?2
        ORDER BY order_key DESC LIMIT ?3";
    tx.query(sql, params![workspace, order, limit], read).await
}

async fn neighbours_after(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
    limit: i64,
) -> Result<Vec<Place>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces WHERE workspace_id = ?1 AND order_key > ?2
        ORDER BY order_key LIMIT ?3";
    tx.query(sql, params![workspace, order, limit], read).await
}

/// Gives each of `places` its new key; the pieces as they are then.
async fn rewrite(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    places: &[Place],
    keys: Vec<OrderKey>,
) -> Result<Vec<ContentPiece>> {
    // First out of the way: a new key may be one that another piece still has. `~` sorts behind
    // every digit, and is in no key.
    let away: Vec<_> = places
        .iter()
        .map(|place| params![workspace, place.id, format!("~{}", place.id)].to_vec())
        .collect();
    let sql = "UPDATE content_pieces SET order_key = ?3 WHERE workspace_id = ?1 AND id = ?2";
    tx.execute_each(sql, &away).await?;
    let mut rewritten = Vec::with_capacity(places.len());
    for (place, order) in places.iter().zip(keys) {
        let found = content_pieces::find(tx, workspace, place.id).await?;
        let Some(mut before) = found else { continue };
        before.order = place.order.clone();
        let piece = ContentPiece { order, version: before.version + 1, ..before.clone() };
        content_pieces::update(tx, workspace, &before, &piece).await?;
        rewritten.push(piece);
    }
    Ok(rewritten)
}
