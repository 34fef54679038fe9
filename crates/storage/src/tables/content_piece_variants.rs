//! Overrides of pieces in variants: a row for a piece's fields, one for its content, and rows that
//! index tags and members. They are read with their piece ([`crate::tables::content_piece_view`],
//! [`crate::tables::content_piece_list`]), and deleted with it by foreign keys.

use std::collections::BTreeSet;

use galley_domain::content_piece::ContentPieceOverrides;
use galley_domain::publication::ContentView;
use galley_domain::{ContentPieceId, VariantId, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, params, read_row, row};
use crate::tables::asset_references::{ReferringPart, keys_of_content, keys_of_overrides};
use crate::tables::piece_tables::{affects, tables};

macro_rules! columns {
    ($custom_data:literal) => {
        concat!(
            "v.date_ms, v.title, v.description, v.slug, v.cover_url, v.cover_alt, v.cover_width, \
             v.canonical_link, v.filename, ",
            $custom_data,
            ", v.tag_ids, v.member_ids"
        )
    };
}

/// The columns of the table `v` that [`read`] reads.
pub(crate) const COLUMNS: &str = columns!("v.custom_data");

/// The same columns without custom data.
pub(crate) const COLUMNS_WITHOUT_CUSTOM_DATA: &str = columns!("NULL");

/// Reads overrides from column `first` on. Without a row, nothing is overridden.
pub(crate) fn read(row: &Row<'_>, first: usize) -> Result<ContentPieceOverrides> {
    Ok(read_row!(row, first => ContentPieceOverrides {
        date, title, description, slug, cover_url, cover_alt, cover_width, canonical_link, filename,
        custom_data, tags, members,
    }))
}

/// Finds the overrides of a piece in a variant.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: VariantId,
) -> Result<Option<ContentPieceOverrides>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM content_piece_variants v
         WHERE v.workspace_id = ?1 AND v.content_piece_id = ?2 AND v.variant_id = ?3"
    );
    tx.find(&sql, params![workspace, piece, variant], |row| read(row, 0)).await
}

/// Selects the variants of a piece. A variant may override fields, content, or both.
const IDS_OF_PIECE: &str = "SELECT variant_id FROM content_piece_variants
    WHERE workspace_id = ?1 AND content_piece_id = ?2
    UNION SELECT variant_id FROM content_piece_variant_contents
    WHERE workspace_id = ?1 AND content_piece_id = ?2";

/// The overrides of a piece in one variant, and its own content there as the JSON text of the tree.
pub type Override = (VariantId, ContentPieceOverrides, Option<String>);

/// Returns the overrides of a piece in all variants, by variant id.
pub async fn of_piece(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
) -> Result<Vec<Override>> {
    let sql = format!(
        "SELECT i.variant_id, vc.tree, {COLUMNS} FROM ({IDS_OF_PIECE}) i
         LEFT JOIN content_piece_variants v ON v.workspace_id = ?1
            AND v.content_piece_id = ?2 AND v.variant_id = i.variant_id
         LEFT JOIN content_piece_variant_contents vc ON vc.workspace_id = ?1
            AND vc.content_piece_id = ?2 AND vc.variant_id = i.variant_id
         ORDER BY i.variant_id"
    );
    let read = |row: &Row<'_>| Ok((row.get(0)?, read(row, 2)?, row.get(1)?));
    tx.query(&sql, params![workspace, piece], read).await
}

/// Finds the own content of a piece in a variant.
pub async fn find_content(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: VariantId,
) -> Result<Option<String>> {
    let sql = "SELECT tree FROM content_piece_variant_contents
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND variant_id = ?3";
    tx.find(sql, params![workspace, piece, variant], |row| row.get(0)).await
}

/// Returns the variants in which a piece overrides fields or its content, by id.
pub async fn ids_of_piece(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
) -> Result<Vec<VariantId>> {
    let sql = format!("{IDS_OF_PIECE} ORDER BY variant_id");
    tx.query(&sql, params![workspace, piece], |row| row.get(0)).await
}

/// Replaces the overrides of a piece in a variant. `before` are those in the database. The caller
/// updates the variants of the piece.
pub async fn update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: VariantId,
    before: &ContentPieceOverrides,
    overrides: &ContentPieceOverrides,
) -> Result<()> {
    let part = part_of(workspace, ContentView::Current, piece, variant);
    part.update(tx, &keys_of_overrides(before), &keys_of_overrides(overrides)).await?;
    // The rows of tags and members are deleted by a foreign key.
    let sql = "DELETE FROM content_piece_variants
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND variant_id = ?3";
    let key = params![workspace, piece, variant];
    tx.execute(sql, key, Affects::Piece(workspace, piece)).await?;
    insert_in(tx, workspace, ContentView::Current, piece, variant, overrides).await
}

/// Returns the overrides of a piece in a variant as a part that refers to assets.
const fn part_of(
    workspace: WorkspaceId,
    view: ContentView,
    piece: ContentPieceId,
    variant: VariantId,
) -> ReferringPart {
    ReferringPart { workspace, view, piece, variant: Some(variant), is_content: false }
}

/// Inserts the overrides and the content of a new piece in a variant into a view. The caller
/// updates the variants of the piece.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: ContentPieceId,
    (variant, overrides, tree): &Override,
) -> Result<()> {
    let variant = *variant;
    let part = part_of(workspace, view, piece, variant);
    part.update(tx, &BTreeSet::new(), &keys_of_overrides(overrides)).await?;
    insert_in(tx, workspace, view, piece, variant, overrides).await?;
    let Some(tree) = tree else { return Ok(()) };
    update_content_in(tx, workspace, view, piece, variant, (None, tree)).await
}

/// Inserts the overrides of a piece in a variant into a view, if there are any.
async fn insert_in(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: ContentPieceId,
    variant: VariantId,
    overrides: &ContentPieceOverrides,
) -> Result<()> {
    if *overrides == ContentPieceOverrides::default() {
        return Ok(());
    }
    let (tables, affects) = (tables(view), affects(view, workspace, piece));
    let mut params = params![workspace, piece, variant].to_vec();
    push_columns(overrides, &mut params);
    let sql = format!(
        "INSERT INTO {} (workspace_id, content_piece_id, variant_id, date_ms,
            title, description, slug, cover_url, cover_alt, cover_width, canonical_link, filename,
            custom_data, tag_ids, member_ids)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        tables.variants
    );
    tx.execute(&sql, &params, affects).await?;
    let rows = overrides.tags.iter().flatten().map(|tag| row![workspace, piece, variant, tag]);
    let sql = format!(
        "INSERT INTO {} (workspace_id, content_piece_id, variant_id, tag_id)
         VALUES (?1, ?2, ?3, ?4)",
        tables.variant_tags
    );
    tx.insert_each(&sql, rows, affects).await?;
    let members = overrides.members.iter().flatten();
    let rows = members.map(|member| row![workspace, piece, variant, member]);
    let sql = format!(
        "INSERT INTO {} (workspace_id, content_piece_id, variant_id, member_id)
         VALUES (?1, ?2, ?3, ?4)",
        tables.variant_members
    );
    tx.insert_each(&sql, rows, affects).await
}

/// Adds the values in the order of [`COLUMNS`].
fn push_columns<'o>(overrides: &'o ContentPieceOverrides, params: &mut Vec<Value<'o>>) {
    params.extend(row! {
        overrides.date, &overrides.title, &overrides.description, &overrides.slug,
        &overrides.cover_url, &overrides.cover_alt, &overrides.cover_width,
        &overrides.canonical_link, &overrides.filename, &overrides.custom_data, &overrides.tags,
        &overrides.members
    });
}

/// Stores a variant's own content, the JSON text of the tree. `before` is that in the database.
pub async fn update_content(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: VariantId,
    before: Option<&str>,
    tree: &str,
) -> Result<()> {
    let (view, trees) = (ContentView::Current, (before, tree));
    update_content_in(tx, workspace, view, piece, variant, trees).await
}

/// Stores a variant's own content in a view.
async fn update_content_in(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: ContentPieceId,
    variant: VariantId,
    (before, tree): (Option<&str>, &str),
) -> Result<()> {
    let part = ReferringPart { is_content: true, ..part_of(workspace, view, piece, variant) };
    part.update(tx, &keys_of_content(before), &keys_of_content(Some(tree))).await?;
    let sql = format!(
        "INSERT INTO {} (workspace_id, content_piece_id, variant_id, tree) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (workspace_id, content_piece_id, variant_id)
            DO UPDATE SET tree = excluded.tree",
        tables(view).variant_contents
    );
    let params = params![workspace, piece, variant, tree];
    tx.change(&sql, params, affects(view, workspace, piece)).await
}

/// Deletes a variant's own content, so that the piece's is shown. `before` is that in the database.
pub async fn delete_content(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    variant: VariantId,
    before: Option<&str>,
) -> Result<()> {
    let view = ContentView::Current;
    let part = ReferringPart { is_content: true, ..part_of(workspace, view, piece, variant) };
    part.update(tx, &keys_of_content(before), &BTreeSet::new()).await?;
    let sql = "DELETE FROM content_piece_variant_contents
        WHERE workspace_id = ?1 AND content_piece_id = ?2 AND variant_id = ?3";
    let params = params![workspace, piece, variant];
    tx.change(sql, params, Affects::Piece(workspace, piece)).await
}
