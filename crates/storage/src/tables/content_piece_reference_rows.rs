//! The rows of a piece's tags and members.

use galley_domain::WorkspaceId;
use galley_domain::content_piece::ContentPiece;

use crate::engine::{Affects, Result, Value, WriteTx, row};

pub(super) async fn insert_tags(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<()> {
    let sql = "INSERT INTO content_piece_tags (workspace_id, tag_id, order_key, content_piece_id)
        VALUES (?1, ?2, ?3, ?4)";
    tx.insert_each(sql, tag_rows(workspace, piece), Affects::Piece(workspace, piece.id)).await
}

pub(super) async fn delete_tags(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<()> {
    let sql = "DELETE FROM content_piece_tags WHERE workspace_id = ?1 AND tag_id = ?2
        AND order_key = ?3 AND content_piece_id = ?4";
    tx.change_each(sql, tag_rows(workspace, piece), Affects::Piece(workspace, piece.id)).await
}

fn tag_rows(
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> impl Iterator<Item = [Value<'_>; 4]> + Send {
    piece.fields.tags.iter().map(move |tag| row![workspace, tag, &piece.order, piece.id])
}

pub(super) async fn insert_members(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<()> {
    let sql = "INSERT INTO content_piece_members (workspace_id, member_id, content_piece_id)
        VALUES (?1, ?2, ?3)";
    tx.insert_each(sql, member_rows(workspace, piece), Affects::Piece(workspace, piece.id)).await
}

pub(super) async fn delete_members(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<()> {
    let sql = "DELETE FROM content_piece_members WHERE workspace_id = ?1 AND member_id = ?2
        AND content_piece_id = ?3";
    tx.change_each(sql, member_rows(workspace, piece), Affects::Piece(workspace, piece.id)).await
}

fn member_rows(
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> impl Iterator<Item = [Value<'_>; 3]> + Send {
    piece.fields.members.iter().map(move |member| row![workspace, member, piece.id])
}
