//! The sources that pieces were imported from, as hashes. With them an import detects the changes
//! since the previous one.

use galley_domain::import_source::ImportSource;
use galley_domain::{ContentPieceId, VariantId, WorkspaceId};

use crate::engine::{Affects, Result, Tx, Value, WriteTx, in_list, read_row, row};

/// The source of a piece, or of a piece in a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceSource {
    /// The piece.
    pub piece: ContentPieceId,
    /// The variant; `None` for the piece itself.
    pub variant: Option<VariantId>,
    /// Its source.
    pub source: ImportSource,
}

/// Lists the sources of some pieces, by piece and variant.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    pieces: &[ContentPieceId],
) -> Result<Vec<PieceSource>> {
    if pieces.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Value::from(workspace)];
    let listed = in_list("s.content_piece_id", pieces.iter().copied(), &mut params);
    let sql = format!(
        "SELECT s.content_piece_id, '' AS variant_id, s.source_hash, s.imported_hash
         FROM content_piece_sources s WHERE s.workspace_id = ?1{listed}
         UNION ALL
         SELECT s.content_piece_id, s.variant_id, s.source_hash, s.imported_hash
         FROM content_piece_variant_sources s WHERE s.workspace_id = ?1{listed}
         ORDER BY content_piece_id, variant_id"
    );
    tx.query(&sql, &params, |row| {
        // Both engines sort an empty text first.
        let variant = match row.text(1)? {
            "" => None,
            _ => Some(row.get(1)?),
        };
        let source = read_row!(row, 2 => ImportSource { source_hash, imported_hash });
        Ok(PieceSource { piece: row.get(0)?, variant, source })
    })
    .await
}

/// Stores the source of a piece, or of a piece in a variant, replacing the previous one.
pub async fn save(tx: &WriteTx<'_>, workspace: WorkspaceId, of: &PieceSource) -> Result<()> {
    let ImportSource { source_hash, imported_hash } = &of.source;
    let mut params = row![workspace, of.piece, source_hash, imported_hash].to_vec();
    params.extend(of.variant.map(Value::from));
    let (table, column, number) = match of.variant {
        None => ("content_piece_sources", "", ""),
        Some(_) => ("content_piece_variant_sources", ", variant_id", ", ?5"),
    };
    let sql = format!(
        "INSERT INTO {table}
            (workspace_id, content_piece_id, source_hash, imported_hash{column})
         VALUES (?1, ?2, ?3, ?4{number})
         ON CONFLICT (workspace_id, content_piece_id{column}) DO UPDATE
            SET source_hash = excluded.source_hash, imported_hash = excluded.imported_hash"
    );
    tx.change(&sql, &params, Affects::Nothing).await
}
