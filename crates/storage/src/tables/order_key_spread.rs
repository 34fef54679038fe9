//! Spreads of order keys: long keys of neighbouring pieces are replaced by short ones.
//!
//! The worker plans a window of pieces in a read transaction ([`plan_spread`]), and then moves a
//! slice of it in each write transaction ([`spread_slice`]). It moves the pieces before a large gap
//! within the window to the right, from the last one on. It moves those after the gap to the left,
//! from the first one on. So the order is correct in every intermediate state, and inserts continue
//! meanwhile.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use galley_domain::content_piece::ContentPiece;
use galley_domain::order_key::Gap;
use galley_domain::publication::ContentView;
use galley_domain::{OrderKey, WorkspaceId};

use crate::engine::{Affects, Error, Result, Row, Tx, WriteTx, params, read_row};
use crate::tables::ordering::{END, SPREAD_LENGTH_LIMIT, lock_exclusively, next, previous};
use crate::tables::piece_tables::{affects, tables};
use crate::tables::{content_piece_references, content_pieces, published_pieces};

/// The pieces on each side in the smallest window.
const WINDOW_SIDE_MIN: i64 = 32;

/// The limits of pieces that one transaction moves, and of the bytes of their rows and events.
const SLICE_PIECES: i64 = 128;
const SLICE_BYTES: usize = 1024 * 1024;

/// The limit of rows that one transaction changes for them, including the rows of references.
const SLICE_ROWS: usize = 512;

/// A workspace with keys to spread out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSpread {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The key around which a spread is to be planned; `None` if it is planned.
    pub unplanned: Option<OrderKey>,
}

/// Lists some workspaces with keys to spread out, by id, after one if given.
pub async fn pending_spreads(
    tx: &Tx<'_>,
    behind: Option<WorkspaceId>,
) -> Result<Vec<PendingSpread>> {
    let sql = "SELECT workspace_id, around, left_end FROM order_spreads WHERE workspace_id > ?1
        ORDER BY workspace_id LIMIT 16";
    let behind = behind.map_or_else(String::new, |workspace| workspace.to_string());
    tx.query(sql, params![behind], |row| {
        let around = row.get(1)?;
        let unplanned = row.opt_text(2)?.is_none().then_some(around);
        Ok(PendingSpread { workspace: row.get(0)?, unplanned })
    })
    .await
}

/// A planned spread: the window of pieces that get new keys, and the gap within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadPlan {
    /// The key around which it was planned.
    around: OrderKey,
    low: Option<OrderKey>,
    high: Option<OrderKey>,
    /// Pieces before `left_end` and after `right_start` are still to be moved towards these keys.
    left_end: OrderKey,
    right_start: OrderKey,
    /// The approximate numbers of these pieces.
    left_count: u32,
    right_count: u32,
}

/// The number of random positions of a window that are compared to find a large gap.
const GAP_CANDIDATES: usize = 16;

/// Plans the smallest window around a key in which evenly spaced keys are short.
///
/// A random key falls into a gap with a probability proportional to the gap's width, so that narrow
/// gaps are hardly ever chosen.
pub async fn plan_spread(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    around: &OrderKey,
    mut random: impl FnMut() -> u32,
) -> Result<SpreadPlan> {
    let mut side = WINDOW_SIDE_MIN;
    let (low, high) = loop {
        let low = key_before(tx, workspace, around, side).await?;
        let high = key_after(tx, workspace, around, side).await?;
        let count = u32::try_from(2 * side).unwrap_or(u32::MAX);
        let is_whole = low.is_none() && high.is_none();
        let length = OrderKey::spread_length(low.as_ref(), high.as_ref(), count);
        if is_whole || length <= SPREAD_LENGTH_LIMIT {
            break (low, high);
        }
        side *= 2;
    };
    let mut widest: Option<(Gap, Option<OrderKey>, Option<OrderKey>)> = None;
    for _ in 0..GAP_CANDIDATES {
        let place = OrderKey::at_fraction(low.as_ref(), high.as_ref(), random(), u32::MAX);
        let before = previous(tx, workspace, &place).await?.map(|place| place.order);
        let after = next(tx, workspace, &place).await?.map(|place| place.order);
        let (before, after) = (before.max(low.clone()), [after, high.clone()]);
        let after = after.into_iter().flatten().min();
        let gap = OrderKey::gap(before.as_ref(), after.as_ref());
        if widest.as_ref().is_none_or(|(known, ..)| gap > *known) {
            widest = Some((gap, before, after));
        }
    }
    let (_, before, after) = widest.ok_or_else(|| Error::corrupt("no place was compared"))?;
    let left_count = count(tx, workspace, low.as_ref(), after.as_ref()).await?;
    let right_count = count(tx, workspace, before.as_ref(), high.as_ref()).await?;
    let all = left_count.saturating_add(right_count);
    let middle = OrderKey::at_fraction(before.as_ref(), after.as_ref(), left_count, all);
    Ok(SpreadPlan {
        around: around.clone(),
        low,
        high,
        left_end: middle.clone(),
        right_start: middle,
        left_count,
        right_count,
    })
}

/// Returns the key of the piece before `order` that is separated from it by `skipped` others.
async fn key_before(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
    skipped: i64,
) -> Result<Option<OrderKey>> {
    let sql = "SELECT order_key FROM content_pieces WHERE workspace_id = ?1 AND order_key < ?2
        ORDER BY order_key DESC LIMIT 1 OFFSET ?3";
    tx.find(sql, params![workspace, order, skipped], read_key).await
}

async fn key_after(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
    skipped: i64,
) -> Result<Option<OrderKey>> {
    let sql = "SELECT order_key FROM content_pieces WHERE workspace_id = ?1 AND order_key > ?2
        ORDER BY order_key LIMIT 1 OFFSET ?3";
    tx.find(sql, params![workspace, order, skipped], read_key).await
}

fn read_key(row: &Row<'_>) -> Result<OrderKey> {
    row.get(0)
}

/// Counts the pieces between two keys.
async fn count(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    low: Option<&OrderKey>,
    high: Option<&OrderKey>,
) -> Result<u32> {
    let sql = "SELECT COUNT(*) FROM content_pieces
        WHERE workspace_id = ?1 AND order_key > ?2 AND order_key < ?3";
    let bounds = params![workspace, lower(low), upper(high)];
    tx.get(sql, bounds, |row| row.get(0)).await
}

fn lower(key: Option<&OrderKey>) -> &str {
    key.map_or("", OrderKey::as_str)
}

fn upper(key: Option<&OrderKey>) -> &str {
    key.map_or(END, OrderKey::as_str)
}

/// Pieces with new keys, without custom data, in the order of their keys.
#[derive(Debug, Default)]
pub struct MovedPieces {
    /// The pieces in their new state.
    pub current: Vec<ContentPiece>,
    /// The published ones among them, as the published view has them.
    pub published: Vec<ContentPiece>,
}

/// Moves the next pieces of a workspace to their new keys, and returns them. Returns `None` if none
/// are left, or if another node moves them.
///
/// `plan` is stored if there is none yet.
pub async fn spread_slice(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    plan: Option<&SpreadPlan>,
) -> Result<Option<MovedPieces>> {
    lock_exclusively(tx, workspace).await?;
    let sql = format!(
        "SELECT low, high, left_end, right_start, left_count, right_count, around
         FROM order_spreads WHERE workspace_id = ?1{}",
        tx.for_update_skip_locked()
    );
    let Some((around, stored)) = tx.find(&sql, params![workspace], read_plan).await? else {
        return Ok(None);
    };
    // Another node may have completed the plan, so that the row is about another place.
    let plan = plan.filter(|plan| plan.around == around).cloned();
    let Some(mut plan) = stored.or(plan) else { return Ok(None) };
    let mut moved = plan.move_left_part(tx, workspace).await?;
    if moved.current.is_empty() {
        moved = plan.move_right_part(tx, workspace).await?;
    }
    if moved.current.is_empty() {
        end_spread(tx, workspace).await?;
        return Ok(None);
    }
    let sql = "UPDATE order_spreads SET low = ?2, high = ?3, left_end = ?4, right_start = ?5,
            left_count = ?6, right_count = ?7
        WHERE workspace_id = ?1";
    tx.execute(
        sql,
        params! {
            workspace, &plan.low, &plan.high, &plan.left_end, &plan.right_start, plan.left_count,
            plan.right_count
        },
        Affects::Nothing,
    )
    .await?;
    Ok(Some(moved))
}

/// Ends a spread, and starts the next one if keys elsewhere became long during it.
async fn end_spread(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    let sql = "UPDATE order_spreads SET around = next_around, next_around = NULL, low = NULL,
            high = NULL, left_end = NULL, right_start = NULL, left_count = NULL, right_count = NULL
        WHERE workspace_id = ?1 AND next_around IS NOT NULL";
    if tx.execute(sql, params![workspace], Affects::Nothing).await? == 0 {
        let sql = "DELETE FROM order_spreads WHERE workspace_id = ?1";
        tx.execute(sql, params![workspace], Affects::Nothing).await?;
    }
    Ok(())
}

fn read_plan(row: &Row<'_>) -> Result<(OrderKey, Option<SpreadPlan>)> {
    let around: OrderKey = row.get(6)?;
    if row.opt_text(2)?.is_none() || row.opt_text(3)?.is_none() {
        return Ok((around, None));
    }
    let plan = read_row!(row, 0 => SpreadPlan {
        low, high, left_end, right_start, left_count, right_count; around: around.clone()
    });
    Ok((around, Some(plan)))
}

impl SpreadPlan {
    /// Moves the last pieces before the gap. The gap then ends at the first of them.
    async fn move_left_part(
        &mut self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
    ) -> Result<MovedPieces> {
        let bounds = (lower(self.low.as_ref()), self.left_end.as_str());
        let slice = SpreadSlice::read(tx, workspace, bounds, "DESC").await?;
        let SpreadSlice { mut pieces, beyond } = slice;
        let moved = u32::try_from(pieces.len()).map_err(Error::corrupt)?;
        let all = self.left_count.max(moved);
        let bound = beyond.or(self.low.clone());
        let numbers = all - moved + 1..=all;
        let keys = OrderKey::spread_part(bound.as_ref(), Some(&self.left_end), numbers, all);
        pieces.reverse();
        self.left_count = all - moved;
        if let Some(first) = keys.first() {
            self.left_end = first.clone();
        }
        move_to(tx, workspace, pieces, keys).await
    }

    /// Moves the first pieces after the gap. The gap then begins at the last of them.
    async fn move_right_part(
        &mut self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
    ) -> Result<MovedPieces> {
        let bounds = (self.right_start.as_str(), upper(self.high.as_ref()));
        let SpreadSlice { pieces, beyond } =
            SpreadSlice::read(tx, workspace, bounds, "ASC").await?;
        let moved = u32::try_from(pieces.len()).map_err(Error::corrupt)?;
        let all = self.right_count.max(moved);
        let bound = beyond.or(self.high.clone());
        let keys = OrderKey::spread_part(Some(&self.right_start), bound.as_ref(), 1..=moved, all);
        self.right_count = all - moved;
        if let Some(last) = keys.last() {
            self.right_start = last.clone();
        }
        move_to(tx, workspace, pieces, keys).await
    }
}

/// The pieces that one transaction moves.
struct SpreadSlice {
    pieces: Vec<ContentPiece>,
    /// The key of the next piece, which is not moved.
    beyond: Option<OrderKey>,
}

impl SpreadSlice {
    /// Reads the first pieces between two keys in one direction, without custom data.
    async fn read(
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
        (low, high): (&str, &str),
        direction: &str,
    ) -> Result<Self> {
        let sql = format!(
            "SELECT {} FROM content_pieces p
             WHERE p.workspace_id = ?1 AND p.order_key > ?2 AND p.order_key < ?3
             ORDER BY p.order_key {direction} LIMIT ?4{}",
            content_pieces::COLUMNS_WITHOUT_CUSTOM_DATA,
            tx.for_update()
        );
        let params = params![workspace, low, high, SLICE_PIECES + 1];
        let mut pieces = tx.query(&sql, params, content_pieces::read).await?;
        let (mut bytes, mut rows) = (0, 0);
        let fits = pieces.iter().take_while(|piece| {
            let is_first = rows == 0;
            bytes += content_pieces::spread_size(piece);
            rows += 1 + content_piece_references::count(piece);
            is_first || (bytes <= SLICE_BYTES && rows <= SLICE_ROWS)
        });
        let most = usize::try_from(SLICE_PIECES).unwrap_or(usize::MAX);
        let count = fits.count().min(most);
        let beyond = pieces.get(count).map(|piece| piece.order.clone());
        pieces.truncate(count);
        Ok(Self { pieces, beyond })
    }
}

/// Updates the keys of pieces in both views. Pieces and keys are in ascending order.
async fn move_to(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    pieces: Vec<ContentPiece>,
    keys: Vec<OrderKey>,
) -> Result<MovedPieces> {
    let ids: Vec<_> = pieces.iter().map(|piece| piece.id).collect();
    let new_keys: HashMap<_, _> = ids.iter().copied().zip(keys.iter().cloned()).collect();
    let current = move_in(tx, workspace, ContentView::Current, pieces, keys).await?;
    let mut published = published_pieces::find_all_without_custom_data(tx, workspace, &ids).await?;
    published.sort_by(|one, other| one.order.cmp(&other.order));
    let keys = published.iter().filter_map(|piece| new_keys.get(&piece.id).cloned()).collect();
    let published = move_in(tx, workspace, ContentView::Published, published, keys).await?;
    Ok(MovedPieces { current, published })
}

/// Updates the keys of pieces in a view. Returns the pieces in their new state.
///
/// No new key is in use at any step: pieces that move left are updated from the first one on, the
/// others from the last one on.
async fn move_in(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    pieces: Vec<ContentPiece>,
    keys: Vec<OrderKey>,
) -> Result<Vec<ContentPiece>> {
    let moves: Vec<(&ContentPiece, &OrderKey)> = pieces.iter().zip(&keys).collect();
    let (left, right): (Vec<_>, Vec<_>) =
        moves.iter().partition(|(piece, key)| **key < piece.order);
    let sql = format!(
        "UPDATE {} SET order_key = ?3, version = version + 1 WHERE workspace_id = ?1 AND id = ?2",
        tables(view).pieces
    );
    let in_order = left.into_iter().chain(right.into_iter().rev());
    try_join_all(in_order.map(async |(piece, key)| {
        let affects = affects(view, workspace, piece.id);
        tx.execute(&sql, params![workspace, piece.id, key], affects).await
    }))
    .await?;
    content_piece_references::update_positions(tx, workspace, view, &moves).await?;
    let with_key = |(piece, order): (ContentPiece, OrderKey)| {
        let version = piece.version + 1;
        ContentPiece { order, version, ..piece }
    };
    Ok(pieces.into_iter().zip(keys).map(with_key).collect())
}
