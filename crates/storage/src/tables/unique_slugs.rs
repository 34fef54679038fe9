//! Groups whose pieces have unique slugs.
//!
//! A piece shows its slug in each variant that doesn't override it. The shown slugs are compared,
//! so that a slug and a variant find at most one piece.

use galley_domain::content_piece::Slug;
use galley_domain::publication::ContentView;
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId, WorkspaceId};

use crate::engine::{Result, Row, Tx, WriteTx, in_list, params, read_row};
use crate::tables::ordering;
use crate::tables::piece_tables::{PieceTables, tables};

/// Two pieces that show the same slug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlugConflict {
    /// The slug.
    pub slug: Slug,
    /// The key of the variant in which they show it, or `None` if it is their own slug.
    pub variant: Option<VariantKey>,
    /// The examined piece.
    pub piece: ContentPieceId,
    /// The other piece.
    pub other: ContentPieceId,
    /// The group of the other piece.
    pub group_of_other: ContentGroupId,
}

/// The pieces whose slugs are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExaminedPieces {
    /// One piece.
    One(ContentPieceId),
    /// The pieces in a group and its subtree.
    Under(ContentGroupId),
}

/// Returns the topmost group with unique slugs among a group and its ancestors.
pub async fn root(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<Option<ContentGroupId>> {
    let sql = "SELECT g.id FROM content_groups g
        JOIN content_group_paths p ON p.workspace_id = g.workspace_id AND p.ancestor_id = g.id
        WHERE g.workspace_id = ?1 AND g.unique_slugs AND p.group_id = ?2
        ORDER BY p.depth DESC LIMIT 1";
    tx.find(sql, params![workspace, group], |row| row.get(0)).await
}

/// Returns true if one of `groups` or of their ancestors has unique slugs.
pub async fn is_any(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    groups: &[ContentGroupId],
) -> Result<bool> {
    if groups.is_empty() {
        return Ok(false);
    }
    let mut params = params![workspace].to_vec();
    let listed = in_list("p.group_id", groups.iter().copied(), &mut params);
    let sql = format!(
        "SELECT 1 FROM content_groups g
        JOIN content_group_paths p ON p.workspace_id = g.workspace_id AND p.ancestor_id = g.id
        WHERE g.workspace_id = ?1 AND g.unique_slugs{listed} LIMIT 1"
    );
    tx.exists(&sql, &params).await
}

/// Waits until the other changes of slugs in the workspace have ended, so that their pieces are
/// seen. Writes leave their group, as a group's pieces are committed together.
pub async fn lock(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    tx.leave_group()?;
    ordering::lock_slugs(tx, workspace).await
}

/// Finds pieces under `root` that show the same slug as an examined piece, in any of the views.
pub async fn conflicts(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    root: ContentGroupId,
    examined: ExaminedPieces,
    limit: i64,
) -> Result<Vec<SlugConflict>> {
    for &view in ContentView::ALL {
        for &of_others in ContentView::ALL {
            let views = (tables(view), tables(of_others));
            let found = conflicts_in(tx, workspace, root, examined, views, limit).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
    Ok(Vec::new())
}

async fn conflicts_in(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    root: ContentGroupId,
    examined: ExaminedPieces,
    (own, others): (&PieceTables, &PieceTables),
    limit: i64,
) -> Result<Vec<SlugConflict>> {
    let (pieces, variants) = (own.pieces, own.variants);
    let (other_pieces, other_variants) = (others.pieces, others.variants);
    let (of_piece, of_overrides) = match examined {
        ExaminedPieces::One(_) => ("p.id = ?3", "w.content_piece_id = ?3"),
        ExaminedPieces::Under(_) => (
            "p.content_group_id IN (SELECT s.group_id FROM content_group_paths s
                WHERE s.workspace_id = ?1 AND s.ancestor_id = ?3)",
            "w.content_piece_id IN (SELECT i.id FROM content_pieces i
                WHERE i.workspace_id = ?1 AND i.content_group_id IN (
                    SELECT s.group_id FROM content_group_paths s
                    WHERE s.workspace_id = ?1 AND s.ancestor_id = ?3))",
        ),
    };
    let under_root = "q.content_group_id IN (SELECT r.group_id FROM content_group_paths r
        WHERE r.workspace_id = ?1 AND r.ancestor_id = ?2)";
    let no_override = |piece: &str, variants: &str| {
        format!(
            "NOT EXISTS (SELECT 1 FROM {variants} n WHERE n.workspace_id = ?1
                AND n.content_piece_id = {piece}.id AND n.variant_id = x.id
                AND n.slug IS NOT NULL)"
        )
    };
    let sql = format!(
        "SELECT p.slug, NULL, p.id, q.id, q.content_group_id
         FROM {pieces} p
         JOIN {other_pieces} q ON q.workspace_id = ?1 AND q.slug = p.slug AND q.id <> p.id
         WHERE p.workspace_id = ?1 AND {of_piece} AND {under_root}
         UNION ALL
         SELECT p.slug, x.key, p.id, q.id, q.content_group_id
         FROM {pieces} p
         JOIN variants x ON x.workspace_id = ?1
         JOIN {other_variants} o ON o.workspace_id = ?1 AND o.variant_id = x.id
            AND o.slug = p.slug AND o.content_piece_id <> p.id
         JOIN {other_pieces} q ON q.workspace_id = ?1 AND q.id = o.content_piece_id
         WHERE p.workspace_id = ?1 AND {of_piece} AND {under_root} AND {piece_shows}
         UNION ALL
         SELECT w.slug, x.key, w.content_piece_id, q.id, q.content_group_id
         FROM {variants} w
         JOIN variants x ON x.workspace_id = ?1 AND x.id = w.variant_id
         JOIN {other_variants} o ON o.workspace_id = ?1 AND o.variant_id = x.id
            AND o.slug = w.slug AND o.content_piece_id <> w.content_piece_id
         JOIN {other_pieces} q ON q.workspace_id = ?1 AND q.id = o.content_piece_id
         WHERE w.workspace_id = ?1 AND {of_overrides} AND {under_root}
         UNION ALL
         SELECT w.slug, x.key, w.content_piece_id, q.id, q.content_group_id
         FROM {variants} w
         JOIN variants x ON x.workspace_id = ?1 AND x.id = w.variant_id
         JOIN {other_pieces} q ON q.workspace_id = ?1 AND q.slug = w.slug
            AND q.id <> w.content_piece_id
         WHERE w.workspace_id = ?1 AND {of_overrides} AND {under_root} AND {other_shows}
         LIMIT ?4",
        piece_shows = no_override("p", variants),
        other_shows = no_override("q", other_variants),
    );
    let read = |row: &Row<'_>| {
        Ok(read_row!(row, 0 => SlugConflict { slug, variant, piece, other, group_of_other }))
    };
    let examined = match examined {
        ExaminedPieces::One(piece) => piece.to_string(),
        ExaminedPieces::Under(group) => group.to_string(),
    };
    tx.query(&sql, params![workspace, root, examined, limit], read).await
}
