//! The use of assets by pieces, and their visibility, which depends on it.

use galley_domain::content_piece::Title;
use galley_domain::publication::ContentView;
use galley_domain::{AssetKey, ContentGroupId, ContentPieceId, VariantId, WorkspaceId};

use crate::engine::{Result, Row, Tx, Value, in_list, params};
use crate::tables::content_pieces::under_filter;
use crate::tables::piece_tables::tables;

/// A place in which an asset is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssetUse {
    /// The piece as it is in this view.
    View(ContentView),
    /// The piece in the trash.
    Trash,
}

/// A piece that refers to an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferringPiece {
    /// The piece.
    pub id: ContentPieceId,
    /// Its title, in the place in which it refers to the asset.
    pub title: Title,
    /// The variant; `None` for the piece itself, and in the trash.
    pub variant: Option<VariantId>,
    /// The place.
    pub place: AssetUse,
}

/// Lists the places that refer to an asset, at most `limit`, by piece. If `within` is set, the
/// pieces are in the subtree of one of its groups.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    key: AssetKey,
    within: Option<&[ContentGroupId]>,
    limit: i64,
) -> Result<Vec<ReferringPiece>> {
    let mut params = params![workspace, key, limit].to_vec();
    let filter = within.map_or_else(String::new, |roots| under_filter(roots, &mut params));
    let of_view = |view: ContentView| {
        let tables = tables(view);
        format!(
            "SELECT DISTINCT p.id AS id, r.variant_id AS variant_id, '{}' AS place, p.title AS title
             FROM {} r JOIN {} p ON p.workspace_id = ?1 AND p.id = r.content_piece_id
             WHERE r.workspace_id = ?1 AND r.asset_key = ?2{filter}",
            view.as_str(),
            tables.assets,
            tables.pieces
        )
    };
    let [current, published] = [ContentView::Current, ContentView::Published].map(of_view);
    let sql = format!(
        "SELECT id, variant_id, place, title FROM (
            {current} UNION ALL {published} UNION ALL
            SELECT p.id, '', '', e.title FROM trashed_piece_assets r
            JOIN trashed_pieces p ON p.workspace_id = ?1 AND p.id = r.content_piece_id
            JOIN trash_entries e ON e.workspace_id = ?1 AND e.id = p.entry_id
            WHERE r.workspace_id = ?1 AND r.asset_key = ?2{filter}) AS uses
         ORDER BY id, variant_id, place LIMIT ?3"
    );
    tx.query(&sql, &params, read).await
}

fn read(row: &Row<'_>) -> Result<ReferringPiece> {
    let variant = match row.text(1)? {
        "" => None,
        _ => Some(row.get(1)?),
    };
    let place = match row.text(2)? {
        "" => AssetUse::Trash,
        _ => AssetUse::View(row.get(2)?),
    };
    Ok(ReferringPiece { id: row.get(0)?, title: row.get(3)?, variant, place })
}

/// Returns true if a piece in either view or in the trash refers to the asset.
pub async fn exist(tx: &Tx<'_>, workspace: WorkspaceId, key: AssetKey) -> Result<bool> {
    let has =
        |table: &str| format!("SELECT 1 FROM {table} WHERE workspace_id = ?1 AND asset_key = ?2");
    let [current, published] =
        [ContentView::Current, ContentView::Published].map(|view| has(tables(view).assets));
    let sql = format!("{current} UNION ALL {published} UNION ALL {}", has("trashed_piece_assets"));
    tx.exists(&sql, params![workspace, key]).await
}

/// The assets that a token sees.
#[derive(Debug, Clone, Copy)]
pub struct VisibleAssets<'g> {
    /// The view of the token. In the published view, only assets of published pieces are visible.
    pub view: ContentView,
    /// The groups to which the token is limited. Assets of these groups, and those of pieces in
    /// them, are visible.
    pub within: Option<&'g [ContentGroupId]>,
}

impl VisibleAssets<'_> {
    /// Returns the condition on the assets `a`.
    pub(super) fn condition(self, params: &mut Vec<Value<'_>>) -> String {
        let is_current = self.view == ContentView::Current;
        if is_current && self.within.is_none() {
            return String::new();
        }
        let tables = tables(self.view);
        let filter = self.within.map_or_else(String::new, |roots| under_filter(roots, params));
        let is_used = format!(
            "EXISTS (SELECT 1 FROM {} r
                JOIN {} p ON p.workspace_id = ?1 AND p.id = r.content_piece_id
                WHERE r.workspace_id = ?1 AND r.asset_key = a.key{filter})",
            tables.assets, tables.pieces
        );
        let Some(roots) = self.within.filter(|_| is_current) else {
            return format!(" AND {is_used}");
        };
        let listed = in_list("g.ancestor_id", roots.iter().copied(), params);
        format!(
            " AND (a.content_group_id IN (SELECT g.group_id FROM content_group_paths g
                WHERE g.workspace_id = ?1{listed}) OR {is_used})"
        )
    }
}
