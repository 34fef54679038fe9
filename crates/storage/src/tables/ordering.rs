//! Order keys of a workspace's list of pieces.
//!
//! An insert chooses a key between two neighbours and moves no other piece. Inserts that are always
//! between the two newest pieces make keys longer, by up to 5 bytes each. Above 64 bytes, the
//! workspace is listed in `order_spreads`. A background worker then gives the pieces around that
//! place new, evenly spaced keys.

use futures_util::future::try_join;
use galley_domain::order_key::MovingNeighbour;
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, Timestamp, WorkspaceId};

use crate::engine::{Affects, Error, Result, Row, Tx, WriteTx, params, read_row};

/// A piece's position in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedPiece {
    /// The piece.
    pub id: ContentPieceId,
    /// Its order key.
    pub order: OrderKey,
    /// The time at which it was placed there.
    pub placed_at: Timestamp,
}

/// The limit of the length of new keys, in bytes, that makes a window large enough.
pub(super) const SPREAD_LENGTH_LIMIT: usize = 40;

/// A bound that sorts after every key, as `""` sorts before every key.
pub(super) const END: &str = "~";

fn read(row: &Row<'_>) -> Result<OrderedPiece> {
    Ok(read_row!(row, 0 => OrderedPiece { id, order, placed_at }))
}

/// Blocks background slices in the workspace until the transaction ends. Called before reading the
/// keys between which a new one is chosen. Such transactions don't block one another. SQLite has
/// one writer and needs no lock. A group of writes takes the lock in [`at_the_end`].
pub async fn lock(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    if tx.is_shared() {
        return Ok(());
    }
    advisory_lock(tx, "pg_advisory_xact_lock_shared", workspace, 0).await
}

/// Blocks all choices of keys in the workspace until the transaction ends. Called before rows of
/// pieces are locked, so that no transaction waits for both.
pub async fn lock_exclusively(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    advisory_lock(tx, "pg_advisory_xact_lock", workspace, 0).await
}

/// Blocks the batches of other imports in the workspace until the transaction ends. Called before
/// all other locks.
pub async fn lock_imports(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    advisory_lock(tx, "pg_advisory_xact_lock", workspace, 2).await
}

/// Blocks the checks of unique slugs in the workspace until the transaction ends. Called after the
/// lock of [`lock`], and after rows of pieces are locked.
pub(super) async fn lock_slugs(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    advisory_lock(tx, "pg_advisory_xact_lock", workspace, 1).await
}

/// Acquires an advisory lock, as these are granted in turn. Share locks of a row would starve the
/// exclusive one: with many clients that create pieces, they overlap without end.
/// The seed distinguishes the locks of a workspace.
async fn advisory_lock(
    tx: &WriteTx<'_>,
    function: &str,
    workspace: WorkspaceId,
    seed: i64,
) -> Result<()> {
    if !tx.has_other_writers() {
        return Ok(());
    }
    let sql = format!("SELECT {function}(hashtextextended(?1, {seed}))");
    tx.exists(&sql, params![workspace]).await.map(drop)
}

/// Returns the last piece of the workspace.
pub async fn last(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Option<OrderedPiece>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces WHERE workspace_id = ?1
        ORDER BY order_key DESC LIMIT 1";
    tx.find(sql, params![workspace], read).await
}

/// Returns the first piece of the workspace after `order`.
pub async fn next(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
) -> Result<Option<OrderedPiece>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces
        WHERE workspace_id = ?1 AND order_key > ?2 ORDER BY order_key LIMIT 1";
    tx.find(sql, params![workspace, order], read).await
}

/// Returns the piece of the workspace that has this key.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
) -> Result<Option<OrderedPiece>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces
        WHERE workspace_id = ?1 AND order_key = ?2";
    tx.find(sql, params![workspace, order], read).await
}

/// Returns the last piece of the workspace before `order`.
pub async fn previous(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
) -> Result<Option<OrderedPiece>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces
        WHERE workspace_id = ?1 AND order_key < ?2 ORDER BY order_key DESC LIMIT 1";
    tx.find(sql, params![workspace, order], read).await
}

/// Returns the first piece of a group, or the first after `order`.
pub async fn next_in_group(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
    order: Option<&OrderKey>,
) -> Result<Option<OrderedPiece>> {
    let sql = "SELECT id, order_key, placed_at_ms FROM content_pieces
        WHERE workspace_id = ?1 AND content_group_id = ?2 AND order_key > ?3
        ORDER BY order_key LIMIT 1";
    let order = order.map_or("", OrderKey::as_str);
    tx.find(sql, params![workspace, group, order], read).await
}

/// Takes the lock of [`lock`], unless that would wait.
const TRY_LOCK: &str = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended(?1, 0))";

/// Returns a key at the end of the workspace's list. `random` chooses the step.
pub async fn at_the_end(tx: &WriteTx<'_>, workspace: WorkspaceId, random: u32) -> Result<OrderKey> {
    let Some(group) = tx.group() else {
        let last = last(tx, workspace).await?;
        return choose(tx, workspace, last.as_ref(), None, random).await;
    };
    let list_end = group.list_end(workspace);
    let mut list_end = list_end.lock().await;
    let last = match list_end.take() {
        Some(last) => last,
        None => {
            // Both are sent together, as in `lock`.
            tx.prepare(TRY_LOCK).await?;
            let key = params![workspace];
            let is_locked = tx.get(TRY_LOCK, key, |row| row.get::<bool>(0));
            let (is_locked, last) = try_join(is_locked, last(tx, workspace)).await?;
            if !is_locked {
                tx.leave_group()?;
            }
            last.map(|last| last.order)
        }
    };
    let order = OrderKey::between(last.as_ref(), None, MovingNeighbour::Before, random);
    if order.as_str().len() > LONG_KEY_LENGTH {
        tx.leave_group()?;
    }
    *list_end = Some(Some(order.clone()));
    Ok(order)
}

/// Returns a key right after the piece at `place`.
pub async fn after(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    place: &OrderedPiece,
    random: u32,
) -> Result<OrderKey> {
    tx.leave_group()?;
    let next = next(tx, workspace, &place.order).await?;
    choose(tx, workspace, Some(place), next.as_ref(), random).await
}

/// Returns a key right before the piece at `place`.
pub async fn before(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    place: &OrderedPiece,
    random: u32,
) -> Result<OrderKey> {
    tx.leave_group()?;
    let previous = previous(tx, workspace, &place.order).await?;
    choose(tx, workspace, previous.as_ref(), Some(place), random).await
}

async fn choose(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: Option<&OrderedPiece>,
    after: Option<&OrderedPiece>,
    random: u32,
) -> Result<OrderKey> {
    // Ids order two pieces of the same millisecond.
    let placed = |place: Option<&OrderedPiece>| place.map(|place| (place.placed_at, place.id));
    let moving = if placed(before) > placed(after) {
        MovingNeighbour::Before
    } else {
        MovingNeighbour::After
    };
    let [before, after] = [before, after].map(|place| place.map(|place| &place.order));
    let order = OrderKey::between(before, after, moving, random);
    if order.as_str().len() > OrderKey::LENGTH_MAX {
        // After the rollback, the place is recorded, and a later attempt succeeds.
        let longest = [before, after].into_iter().flatten().max_by_key(|key| key.as_str().len());
        let around = longest.cloned().unwrap_or(order);
        return Err(Error::KeySpaceExhausted(workspace, around));
    }
    note_if_long(tx, workspace, &order).await?;
    Ok(order)
}

/// The length, in bytes, above which keys are spread out in the background.
const LONG_KEY_LENGTH: usize = 64;

/// Records a long key, so that the pieces around it are spread out.
pub async fn note_if_long(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
) -> Result<()> {
    if order.as_str().len() <= LONG_KEY_LENGTH {
        return Ok(());
    }
    let sql = "INSERT INTO order_spreads (workspace_id, around) VALUES (?1, ?2)
        ON CONFLICT (workspace_id) DO UPDATE SET next_around = excluded.around";
    tx.change(sql, params![workspace, order], Affects::Nothing).await
}
