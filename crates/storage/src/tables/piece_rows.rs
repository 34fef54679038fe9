//! The rows of a piece in the tables of a view: the piece itself, its content and its custom data.

use std::collections::BTreeSet;

use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::{ContentView, Publication};
use galley_domain::{ContentPieceId, WorkspaceId};

use crate::engine::{Result, Value, WriteTx, params, row};
use crate::tables::asset_references::{ReferringPart, keys_of_content, keys_of_fields};
use crate::tables::content_piece_references;
use crate::tables::piece_tables::{affects, tables};

/// Inserts a piece and its content into a view, without its publication.
pub(super) async fn insert_in(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: &ContentPiece,
    tree: &str,
) -> Result<()> {
    let (tables, affects) = (tables(view), affects(view, workspace, piece.id));
    let mut params = params_of(workspace, piece);
    params.extend(indexed_values(piece));
    params.extend(row![piece.created_at, piece.created_by]);
    let sql = format!(
        "INSERT INTO {} (workspace_id, id, version, updated_at_ms, description, cover_url,
            cover_alt, cover_width, canonical_link, filename, tag_ids, member_ids, placed_at_ms,
            variant_ids, updated_by, revision, content_group_id, order_key, date_ms, title, slug,
            created_at_ms, created_by)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
            ?19, ?20, ?21, ?22, ?23)",
        tables.pieces
    );
    tx.execute(&sql, &params, affects).await?;
    let sql = format!(
        "INSERT INTO {} (workspace_id, content_piece_id, tree) VALUES (?1, ?2, ?3)",
        tables.contents
    );
    tx.execute(&sql, params![workspace, piece.id, tree], affects).await?;
    if piece.fields.custom_data.is_some() {
        update_custom_data(tx, workspace, view, piece).await?;
    }
    let part = part_of(workspace, view, piece.id);
    part.update(tx, &BTreeSet::new(), &keys_of_fields(&piece.fields)).await?;
    let content = ReferringPart { is_content: true, ..part };
    content.update(tx, &BTreeSet::new(), &keys_of_content(Some(tree))).await?;
    content_piece_references::insert(tx, workspace, view, piece).await
}

/// Returns the fields of a piece as a part that refers to assets.
pub(super) const fn part_of(
    workspace: WorkspaceId,
    view: ContentView,
    piece: ContentPieceId,
) -> ReferringPart {
    ReferringPart { workspace, view, piece, variant: None, is_content: false }
}

/// Stores a piece's custom data, or deletes it if there is none.
async fn update_custom_data(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: &ContentPiece,
) -> Result<()> {
    let table = tables(view).custom_data;
    let sql = match piece.fields.custom_data {
        Some(_) => format!(
            "INSERT INTO {table} (workspace_id, content_piece_id, custom_data)
             VALUES (?1, ?2, ?3)
             ON CONFLICT (workspace_id, content_piece_id)
                DO UPDATE SET custom_data = excluded.custom_data"
        ),
        None => format!("DELETE FROM {table} WHERE workspace_id = ?1 AND content_piece_id = ?2"),
    };
    let mut params = vec![Value::from(workspace), Value::from(piece.id)];
    params.extend(piece.fields.custom_data.as_ref().map(|text| Value::from(text.as_str())));
    tx.change(&sql, &params, affects(view, workspace, piece.id)).await
}

/// Updates a piece in a view.
pub(super) async fn update_in(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    before: &ContentPiece,
    piece: &ContentPiece,
) -> Result<()> {
    let (was, is) = (indexed_values(before), indexed_values(piece));
    let mut params = params_of(workspace, piece);
    let mut changes = String::new();
    for ((column, was), is) in INDEXED_COLUMNS.into_iter().zip(was).zip(is) {
        if was != is {
            params.push(is);
            changes.push_str(&format!(", {column} = ?{}", params.len()));
        }
    }
    let sql = format!(
        "UPDATE {} SET version = ?3, updated_at_ms = ?4, description = ?5, cover_url = ?6,
            cover_alt = ?7, cover_width = ?8, canonical_link = ?9, filename = ?10, tag_ids = ?11,
            member_ids = ?12, placed_at_ms = ?13, variant_ids = ?14, updated_by = ?15,
            revision = ?16{changes}
        WHERE workspace_id = ?1 AND id = ?2",
        tables(view).pieces
    );
    tx.execute(&sql, &params, affects(view, workspace, piece.id)).await?;
    if before.fields.custom_data != piece.fields.custom_data {
        update_custom_data(tx, workspace, view, piece).await?;
    }
    let (assets_before, assets) = (keys_of_fields(&before.fields), keys_of_fields(&piece.fields));
    part_of(workspace, view, piece.id).update(tx, &assets_before, &assets).await?;
    content_piece_references::update(tx, workspace, view, before, piece).await
}

/// Updates the publication of a piece, as both views show it. Its version stays.
pub(super) async fn update_publication(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    id: ContentPieceId,
    publication: &Publication,
) -> Result<()> {
    let sql = format!(
        "UPDATE {} SET published_revision = ?3, published_at_ms = ?4, published_by = ?5,
            publish_at_ms = ?6, publish_revision = ?7, unpublish_at_ms = ?8
         WHERE workspace_id = ?1 AND id = ?2",
        tables(view).pieces
    );
    let published = publication.published;
    let params = params! {
        workspace, id, published.map(|one| one.number), published.map(|one| one.at),
        published.map(|one| one.by), publication.publish_at, publication.publish_revision,
        publication.unpublish_at
    };
    tx.change(&sql, params, affects(view, workspace, id)).await
}

/// Deletes a piece from a view.
pub(super) async fn delete_in(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: &ContentPiece,
) -> Result<()> {
    let (tables, affects) = (tables(view), affects(view, workspace, piece.id));
    content_piece_references::delete(tx, workspace, view, piece).await?;
    let key = params![workspace, piece.id];
    let sql = format!(
        "DELETE FROM {} WHERE workspace_id = ?1 AND content_piece_id = ?2",
        tables.contents
    );
    tx.execute(&sql, key, affects).await?;
    let sql = format!("DELETE FROM {} WHERE workspace_id = ?1 AND id = ?2", tables.pieces);
    tx.change(&sql, key, affects).await
}

/// The columns that an update includes only if they change, as SQLite rewrites the indexes of all
/// columns that a statement names. Updates include all other columns, so that few statements need
/// to be prepared.
const INDEXED_COLUMNS: [&str; 5] = ["content_group_id", "order_key", "date_ms", "title", "slug"];

/// Returns the values of [`INDEXED_COLUMNS`].
fn indexed_values(piece: &ContentPiece) -> [Value<'_>; 5] {
    let fields = &piece.fields;
    row![piece.content_group_id, &piece.order, fields.date, &fields.title, &fields.slug]
}

/// Returns the key of a piece, and the values of the other columns that updates may change.
fn params_of(workspace: WorkspaceId, piece: &ContentPiece) -> Vec<Value<'_>> {
    let fields = &piece.fields;
    let mut params = Vec::with_capacity(23);
    params.extend(row! {
        workspace, piece.id, piece.version, piece.updated_at, &fields.description,
        &fields.cover_url, &fields.cover_alt, &fields.cover_width, &fields.canonical_link,
        &fields.filename, &fields.tags, &fields.members, piece.placed_at, &piece.variants,
        piece.updated_by, piece.revision
    });
    params
}
