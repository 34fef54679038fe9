//! The published view: published pieces, each as it is at its published revision.
//!
//! Its tables have the columns of those of the current view, and the functions of these write them
//! (`piece_rows`, [`crate::tables::content_piece_variants`]). Reads of pieces take the view
//! ([`crate::content_piece_view::View`]).

use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::{ContentView, Publication};
use galley_domain::{ContentGroupId, ContentPieceId, Timestamp, WorkspaceId};

use crate::engine::{Result, Tx, WriteTx, in_list, params};
use crate::tables::content_piece_variants::{self, Override};
use crate::tables::{content_pieces, piece_rows};

const VIEW: ContentView = ContentView::Published;

/// Finds a published piece.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
) -> Result<Option<ContentPiece>> {
    content_pieces::find_in(tx, workspace, VIEW, id).await
}

/// Finds a published piece for update, and locks it until the transaction ends. The caller has
/// locked the piece itself, but a removed tag or member changes its published state alone.
pub async fn find_for_update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
) -> Result<Option<ContentPiece>> {
    if tx.has_other_writers() {
        let lock = format!(
            "SELECT 1 FROM published_pieces WHERE workspace_id = ?1 AND id = ?2{}",
            tx.for_update()
        );
        tx.exists(&lock, params![workspace, id]).await?;
    }
    find(tx, workspace, id).await
}

/// Leaves the group of a write that deletes a published piece. The write may have to wait for its
/// row, and the other writes of the group would wait, too.
pub fn leave_write_group(tx: &WriteTx<'_>) -> Result<()> {
    tx.leave_group()
}

/// Finds published pieces, without their custom data, in any order.
pub async fn find_all_without_custom_data(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    ids: &[ContentPieceId],
) -> Result<Vec<ContentPiece>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = params![workspace].to_vec();
    let listed = in_list("p.id", ids.iter().copied(), &mut params);
    let sql = format!(
        "SELECT {} FROM published_pieces p WHERE p.workspace_id = ?1{listed}",
        content_pieces::COLUMNS_WITHOUT_CUSTOM_DATA
    );
    tx.query(&sql, &params, content_pieces::read).await
}

/// Returns the first pieces in a group, and with `subtree` below it, whose latest revision is not
/// published, by id.
pub async fn unpublished_in(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
    subtree: bool,
    limit: i64,
) -> Result<Vec<ContentPieceId>> {
    let of_groups = if subtree {
        "IN (SELECT g.group_id FROM content_group_paths g
            WHERE g.workspace_id = ?1 AND g.ancestor_id = ?2)"
    } else {
        "= ?2"
    };
    let sql = format!(
        "SELECT p.id FROM content_pieces p
         WHERE p.workspace_id = ?1 AND p.content_group_id {of_groups}
            AND (p.published_revision IS NULL
                OR (p.published_revision <> p.revision AND p.revision > 1))
         ORDER BY p.id LIMIT ?3"
    );
    tx.query(&sql, params![workspace, group, limit], |row| row.get(0)).await
}

/// Inserts a published piece with its content, as the JSON text of the tree, and its overrides.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    tree: &str,
    overrides: &[Override],
) -> Result<()> {
    piece_rows::insert_in(tx, workspace, VIEW, piece, tree).await?;
    for overrides in overrides {
        content_piece_variants::insert(tx, workspace, VIEW, piece.id, overrides).await?;
    }
    let publication = &piece.publication;
    piece_rows::update_publication(tx, workspace, VIEW, piece.id, publication).await
}

/// Updates the group and the position of a published piece. `before` is its state in the database.
pub async fn update_place(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: &ContentPiece,
    piece: &ContentPiece,
) -> Result<()> {
    piece_rows::update_in(tx, workspace, VIEW, before, piece).await
}

/// Deletes a piece from the published view.
pub async fn delete(tx: &WriteTx<'_>, workspace: WorkspaceId, piece: &ContentPiece) -> Result<()> {
    piece_rows::delete_in(tx, workspace, VIEW, piece).await
}

/// A piece whose publication is to change.
pub type DuePiece = (WorkspaceId, ContentPieceId);

/// Returns pieces that are to be published or unpublished at `now` or earlier, by time.
pub async fn due(tx: &Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<DuePiece>> {
    let due_by = |column: &str| {
        format!(
            "SELECT workspace_id, id, {column} AS due_at_ms FROM content_pieces
             WHERE {column} <= ?1 ORDER BY {column} LIMIT ?2"
        )
    };
    let (publish, unpublish) = (due_by("publish_at_ms"), due_by("unpublish_at_ms"));
    let sql = format!(
        "SELECT workspace_id, id, MIN(due_at_ms) FROM (
            SELECT * FROM ({publish}) AS p UNION ALL SELECT * FROM ({unpublish}) AS u) AS due
         GROUP BY workspace_id, id ORDER BY 3, 2 LIMIT ?2"
    );
    tx.query(&sql, params![now, limit], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Stores the publication of a piece in the current view.
pub async fn update_publication(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
    publication: &Publication,
) -> Result<()> {
    let view = ContentView::Current;
    piece_rows::update_publication(tx, workspace, view, id, publication).await
}
