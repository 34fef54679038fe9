//! References of pieces: the rows that find pieces by their tags, their members and the variants
//! that they override.

use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::ContentView;
use galley_domain::{OrderKey, TagId, VariantId, WorkspaceId, WorkspaceMemberId};

use crate::engine::{Affects, Result, Value, WriteTx, row};
use crate::tables::piece_tables::{affects, tables};

/// A table of such rows. Its key is the referenced id, then the position and id of the piece, so
/// that the pieces with one reference are read in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferenceTable {
    Tags,
    Members,
    OverriddenVariants,
}

impl ReferenceTable {
    const ALL: [Self; 3] = [Self::Tags, Self::Members, Self::OverriddenVariants];

    pub(super) fn name(self, view: ContentView) -> &'static str {
        let tables = tables(view);
        match self {
            Self::Tags => tables.tags,
            Self::Members => tables.members,
            Self::OverriddenVariants => tables.overridden_variants,
        }
    }

    /// Returns the column of the referenced id.
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Tags => "tag_id",
            Self::Members => "member_id",
            Self::OverriddenVariants => "variant_id",
        }
    }

    /// Returns the table of these references as variants override them.
    pub(super) fn in_variants(self, view: ContentView) -> Option<&'static str> {
        let tables = tables(view);
        match self {
            Self::Tags => Some(tables.variant_tags),
            Self::Members => Some(tables.variant_members),
            Self::OverriddenVariants => None,
        }
    }

    /// Returns the ids that the piece refers to.
    fn ids(self, piece: &ContentPiece) -> Vec<Value<'static>> {
        match self {
            Self::Tags => piece.fields.tags.iter().copied().map(Value::from).collect(),
            Self::Members => piece.fields.members.iter().copied().map(Value::from).collect(),
            Self::OverriddenVariants => piece.variants.iter().copied().map(Value::from).collect(),
        }
    }

    fn is_unchanged(self, before: &ContentPiece, piece: &ContentPiece) -> bool {
        match self {
            Self::Tags => before.fields.tags == piece.fields.tags,
            Self::Members => before.fields.members == piece.fields.members,
            Self::OverriddenVariants => before.variants == piece.variants,
        }
    }

    fn rows(
        self,
        workspace: WorkspaceId,
        piece: &ContentPiece,
    ) -> impl Iterator<Item = [Value<'_>; 4]> + Send {
        let ids = self.ids(piece).into_iter();
        ids.map(move |id| row![workspace, id, &piece.order, piece.id])
    }

    async fn insert(
        self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
        view: ContentView,
        piece: &ContentPiece,
    ) -> Result<()> {
        let sql = format!(
            "INSERT INTO {} (workspace_id, {}, order_key, content_piece_id)
             VALUES (?1, ?2, ?3, ?4)",
            self.name(view),
            self.column()
        );
        let affects = affects(view, workspace, piece.id);
        tx.insert_each(&sql, self.rows(workspace, piece), affects).await
    }

    async fn delete(
        self,
        tx: &WriteTx<'_>,
        workspace: WorkspaceId,
        view: ContentView,
        piece: &ContentPiece,
    ) -> Result<()> {
        let sql = format!(
            "DELETE FROM {} WHERE workspace_id = ?1 AND {} = ?2
             AND order_key = ?3 AND content_piece_id = ?4",
            self.name(view),
            self.column()
        );
        let affects = affects(view, workspace, piece.id);
        tx.change_each(&sql, self.rows(workspace, piece), affects).await
    }
}

/// Returns the number of rows of a piece.
pub(super) fn count(piece: &ContentPiece) -> usize {
    piece.fields.tags.len() + piece.fields.members.len() + piece.variants.len()
}

/// Inserts the rows of a new piece.
pub(super) async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: &ContentPiece,
) -> Result<()> {
    for table in ReferenceTable::ALL {
        table.insert(tx, workspace, view, piece).await?;
    }
    Ok(())
}

/// Replaces the rows of a piece whose state was `before`.
pub(super) async fn update(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    before: &ContentPiece,
    piece: &ContentPiece,
) -> Result<()> {
    for table in ReferenceTable::ALL {
        if before.order != piece.order || !table.is_unchanged(before, piece) {
            table.delete(tx, workspace, view, before).await?;
            table.insert(tx, workspace, view, piece).await?;
        }
    }
    Ok(())
}

/// Deletes the rows of a piece.
pub(super) async fn delete(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    piece: &ContentPiece,
) -> Result<()> {
    for table in ReferenceTable::ALL {
        table.delete(tx, workspace, view, piece).await?;
    }
    Ok(())
}

/// Updates the rows of pieces that get other positions.
pub(super) async fn update_positions(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    view: ContentView,
    moves: &[(&ContentPiece, &OrderKey)],
) -> Result<()> {
    for table in ReferenceTable::ALL {
        let rows = moves.iter().flat_map(|(piece, key)| {
            let ids = table.ids(piece).into_iter();
            ids.map(|id| row![workspace, id, &piece.order, piece.id, *key])
        });
        let sql = format!(
            "UPDATE {} SET order_key = ?5 WHERE workspace_id = ?1 AND {} = ?2
             AND order_key = ?3 AND content_piece_id = ?4",
            table.name(view),
            table.column()
        );
        tx.change_each(&sql, rows, Affects::Content(workspace)).await?;
    }
    Ok(())
}

/// Removes a tag from all pieces and their variants, and increments the versions of these pieces.
pub(super) async fn remove_tag(tx: &WriteTx<'_>, workspace: WorkspaceId, id: TagId) -> Result<()> {
    remove(tx, workspace, ReferenceTable::Tags, id.into()).await
}

/// Removes a member from all pieces and their variants, and increments the versions of these
/// pieces.
pub async fn remove_member(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: WorkspaceMemberId,
) -> Result<()> {
    remove(tx, workspace, ReferenceTable::Members, id.into()).await
}

/// Removes a variant from the lists of all pieces, and increments the versions of these pieces.
pub(super) async fn remove_variant(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: VariantId,
) -> Result<()> {
    remove(tx, workspace, ReferenceTable::OverriddenVariants, id.into()).await
}

/// Removes a referenced resource from all lists in both views. A variant's list that becomes empty
/// remains an override.
async fn remove(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    table: ReferenceTable,
    id: Value<'_>,
) -> Result<()> {
    let (params, affects) = (&[Value::from(workspace), id], Affects::Content(workspace));
    let column = table.column();
    let rest =
        format!("trim(replace(',' || {column}s || ',', ',' || CAST(?2 AS TEXT) || ',', ','), ',')");
    let without = format!("{column}s = {rest}");
    let rows_of = |table: &str| format!("{table} WHERE workspace_id = ?1 AND {column} = ?2");
    let update_pieces = |view: ContentView| {
        let of_pieces = rows_of(table.name(view));
        let in_variants = table.in_variants(view).map_or_else(String::new, |table| {
            format!(" UNION ALL SELECT content_piece_id FROM {}", rows_of(table))
        });
        format!(
            "UPDATE {} SET version = version + 1, {without} WHERE workspace_id = ?1
             AND id IN (SELECT content_piece_id FROM {of_pieces}{in_variants})",
            tables(view).pieces
        )
    };
    // All pieces are updated first, as their row locks protect their variants.
    for &view in ContentView::ALL {
        tx.execute(&update_pieces(view), params, affects).await?;
    }
    if matches!(table, ReferenceTable::Members) && tx.has_other_writers() {
        // Another piece may have got the member meanwhile. From this lock on, none can. The pieces
        // come first, as an update locks its piece before the member, too. Tags and variants are
        // locked by their deletion.
        let lock = format!(
            "SELECT 1 FROM workspace_members WHERE workspace_id = ?1 AND id = ?2{}",
            tx.for_update()
        );
        tx.exists(&lock, params).await?;
        for &view in ContentView::ALL {
            let sql = format!("{} AND {column}s <> {rest}", update_pieces(view));
            tx.execute(&sql, params, affects).await?;
        }
    }
    for &view in ContentView::ALL {
        if let Some(rows) = table.in_variants(view).map(rows_of) {
            let sql = format!(
                "UPDATE {} SET {without}
                 WHERE workspace_id = ?1 AND (content_piece_id, variant_id) IN (
                    SELECT content_piece_id, variant_id FROM {rows})",
                tables(view).variants
            );
            tx.execute(&sql, params, affects).await?;
            tx.execute(&format!("DELETE FROM {rows}"), params, affects).await?;
        }
        let of_pieces = rows_of(table.name(view));
        tx.change(&format!("DELETE FROM {of_pieces}"), params, affects).await?;
    }
    Ok(())
}
