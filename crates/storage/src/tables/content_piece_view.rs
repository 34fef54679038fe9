//! The forms in which pieces are read: the view, the variant, and with content or without.

use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, ContentPieceId, VariantId, WorkspaceId};

use crate::engine::{Result, Row, Tx, Value};
use crate::tables::content_piece_variants;
use crate::tables::content_pieces::{
    COLUMNS_END, COLUMNS_WITHOUT_CUSTOM_DATA, columns, read, under_filter,
};
use crate::tables::piece_tables::{PieceTables, tables};

/// The form in which pieces are read: with the overrides of a variant or without, with content or
/// without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// The view of the content.
    pub of: ContentView,
    /// The variant whose overrides are applied.
    pub variant: Option<VariantId>,
    /// True to read the content.
    pub content: bool,
    /// True to read no custom data, which may be large.
    pub skips_custom_data: bool,
}

/// A piece in the requested form, with its content as the JSON text of the tree.
pub type PieceInView = (ContentPiece, Option<String>);

/// Returns its approximate size in bytes.
pub fn size((piece, tree): &PieceInView) -> usize {
    let custom_data = piece.fields.custom_data.as_ref().map_or(0, |text| text.as_str().len());
    row_size(piece) + custom_data + tree.as_ref().map_or(0, String::len)
}

/// Returns the approximate size of its row in bytes, without content and custom data.
fn row_size(piece: &ContentPiece) -> usize {
    /// The total of the short columns.
    const REST: usize = 1_024;
    REST + piece.fields.description.as_ref().map_or(0, |text| text.as_str().len())
}

impl View {
    /// Returns `SELECT … FROM …`, whose rows [`View::read`] reads. The pieces are `p`, their
    /// overrides in the variant `v`.
    pub(crate) fn select(self, params: &mut Vec<Value<'_>>) -> String {
        let tree = match (self.content, self.variant) {
            (false, _) => "",
            (true, None) => ", c.tree",
            (true, Some(_)) => ", COALESCE(vc.tree, c.tree)",
        };
        let (columns, overrides) = if self.skips_custom_data {
            (COLUMNS_WITHOUT_CUSTOM_DATA, content_piece_variants::COLUMNS_WITHOUT_CUSTOM_DATA)
        } else {
            (columns(self.of), content_piece_variants::COLUMNS)
        };
        let from = self.tables(params);
        match self.variant {
            Some(_) => format!("SELECT {columns}{tree}, {overrides} {from}"),
            None => format!("SELECT {columns}{tree} {from}"),
        }
    }

    /// Returns the `FROM …` of the same statement.
    pub(super) fn tables(self, params: &mut Vec<Value<'_>>) -> String {
        let PieceTables { pieces, contents, variants, variant_contents, .. } = tables(self.of);
        let content = if self.content {
            format!(
                " JOIN {contents} c ON c.workspace_id = p.workspace_id AND c.content_piece_id = p.id"
            )
        } else {
            String::new()
        };
        let Some(variant) = self.variant else { return format!("FROM {pieces} p{content}") };
        params.push(variant.into());
        let variant = params.len();
        let join = |table: &str, alias: &str| {
            format!(
                " LEFT JOIN {table} {alias} ON {alias}.workspace_id = p.workspace_id
                    AND {alias}.content_piece_id = p.id AND {alias}.variant_id = ?{variant}"
            )
        };
        let overrides = join(variants, "v");
        let own_content = if self.content { join(variant_contents, "vc") } else { String::new() };
        format!("FROM {pieces} p{content}{overrides}{own_content}")
    }

    pub(crate) fn read(self, row: &Row<'_>) -> Result<PieceInView> {
        let piece = read(row)?;
        let tree = self.content.then(|| row.get::<String>(COLUMNS_END)).transpose()?;
        if self.variant.is_none() {
            return Ok((piece, tree));
        }
        let first = COLUMNS_END + usize::from(self.content);
        Ok((piece.with_overrides(content_piece_variants::read(row, first)?), tree))
    }
}

/// Finds a piece in this view, in one statement. If `within` is set, the piece must be in the
/// subtree of one of its groups.
pub async fn find_visible(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
    within: Option<&[ContentGroupId]>,
    view: View,
) -> Result<Option<PieceInView>> {
    let mut params = vec![Value::from(workspace), Value::from(id)];
    let select = view.select(&mut params);
    let filter = within.map_or_else(String::new, |roots| under_filter(roots, &mut params));
    let sql = format!("{select} WHERE p.workspace_id = ?1 AND p.id = ?2{filter}");
    tx.find(&sql, &params, |row| view.read(row)).await
}
