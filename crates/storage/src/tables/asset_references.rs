//! The addresses of assets in pieces, found by the key of the asset.
//!
//! A piece refers to an asset by its address in a text: its content, description, cover or custom
//! data. So a row may name an asset that does not exist, or not yet. The pieces are read in
//! [`crate::tables::asset_usage`].

use std::collections::BTreeSet;

use galley_domain::asset::referenced_keys;
use galley_domain::content_piece::{
    ContentPieceFields, ContentPieceOverrides, CustomData, Description,
};
use galley_domain::publication::ContentView;
use galley_domain::text::WebReference;
use galley_domain::{AssetKey, ContentPieceId, VariantId, WorkspaceId};

use crate::engine::{Affects, Result, WriteTx, params, row};
use crate::tables::content_piece_revisions::part_key;
use crate::tables::piece_tables::{affects, tables};

/// A part of a piece that refers to assets: its fields or its content, in itself or in a variant.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReferringPart {
    pub(super) workspace: WorkspaceId,
    pub(super) view: ContentView,
    pub(super) piece: ContentPieceId,
    pub(super) variant: Option<VariantId>,
    pub(super) is_content: bool,
}

impl ReferringPart {
    /// Stores the assets to which the part refers. Those of its state in the database are `before`.
    /// Without a difference, which is the common case, no statement runs.
    pub(super) async fn update(
        self,
        tx: &WriteTx<'_>,
        before: &BTreeSet<AssetKey>,
        after: &BTreeSet<AssetKey>,
    ) -> Result<()> {
        if before == after {
            return Ok(());
        }
        let (table, affects) =
            (tables(self.view).assets, affects(self.view, self.workspace, self.piece));
        let rows = |keys: Vec<AssetKey>| {
            let rows = keys.into_iter();
            rows.map(|key| {
                let Self { workspace, piece, variant, is_content, .. } = self;
                row![workspace, key, piece, part_key(variant), is_content]
            })
        };
        let sql = format!(
            "DELETE FROM {table} WHERE workspace_id = ?1 AND asset_key = ?2
                AND content_piece_id = ?3 AND variant_id = ?4 AND is_content = ?5"
        );
        let removed = before.difference(after).copied().collect();
        tx.change_each(&sql, rows(removed), affects).await?;
        let sql = format!(
            "INSERT INTO {table}
                (workspace_id, asset_key, content_piece_id, variant_id, is_content)
             VALUES (?1, ?2, ?3, ?4, ?5)"
        );
        let added = after.difference(before).copied().collect();
        tx.insert_each(&sql, rows(added), affects).await
    }
}

/// Returns the assets to which a content refers, the JSON text of the tree.
pub(super) fn keys_of_content(tree: Option<&str>) -> BTreeSet<AssetKey> {
    tree.map(referenced_keys).unwrap_or_default()
}

/// Returns the assets to which a piece's fields refer.
pub(super) fn keys_of_fields(fields: &ContentPieceFields) -> BTreeSet<AssetKey> {
    let ContentPieceFields { cover_url, description, custom_data, .. } = fields;
    keys_of(cover_url.as_ref(), description.as_ref(), custom_data.as_ref())
}

/// Returns the assets to which the overrides of a variant refer.
pub(super) fn keys_of_overrides(fields: &ContentPieceOverrides) -> BTreeSet<AssetKey> {
    let ContentPieceOverrides { cover_url, description, custom_data, .. } = fields;
    keys_of(cover_url.as_ref(), description.as_ref(), custom_data.as_ref())
}

fn keys_of(
    cover_url: Option<&WebReference>,
    description: Option<&Description>,
    custom_data: Option<&CustomData>,
) -> BTreeSet<AssetKey> {
    let texts = [
        cover_url.map(WebReference::as_str),
        description.map(Description::as_str),
        custom_data.map(CustomData::as_str),
    ];
    texts.into_iter().flatten().flat_map(referenced_keys).collect()
}

/// Stores the assets to which a trashed piece refers, in any of its parts.
pub(super) async fn insert_trashed(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    keys: BTreeSet<AssetKey>,
) -> Result<()> {
    let rows = keys.into_iter().map(|key| row![workspace, key, piece]);
    let sql = "INSERT INTO trashed_piece_assets (workspace_id, asset_key, content_piece_id)
        VALUES (?1, ?2, ?3)";
    tx.insert_each(sql, rows, Affects::Nothing).await
}

/// Deletes the rows of a variant that is deleted.
pub(super) async fn delete_of_variant(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: VariantId,
) -> Result<()> {
    for &view in ContentView::ALL {
        let sql = format!(
            "DELETE FROM {} WHERE workspace_id = ?1 AND variant_id = ?2 AND variant_id <> ''",
            tables(view).assets
        );
        tx.change(&sql, params![workspace, id], Affects::Content(workspace)).await?;
    }
    Ok(())
}
