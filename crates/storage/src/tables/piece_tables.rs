//! The tables of pieces in each view. Those of the published view have the same columns and indexes
//! as those of the current one.

use galley_domain::publication::ContentView;
use galley_domain::{ContentPieceId, WorkspaceId};

use crate::engine::Affects;

/// The names of the tables of pieces in one view.
#[derive(Debug)]
pub(crate) struct PieceTables {
    pub(crate) pieces: &'static str,
    pub(crate) contents: &'static str,
    pub(crate) custom_data: &'static str,
    pub(crate) tags: &'static str,
    pub(crate) members: &'static str,
    pub(crate) overridden_variants: &'static str,
    pub(crate) variants: &'static str,
    pub(crate) variant_contents: &'static str,
    pub(crate) variant_tags: &'static str,
    pub(crate) variant_members: &'static str,
    pub(crate) assets: &'static str,
}

const CURRENT: PieceTables = PieceTables {
    pieces: "content_pieces",
    contents: "content_piece_contents",
    custom_data: "content_piece_custom_data",
    tags: "content_piece_tags",
    members: "content_piece_members",
    overridden_variants: "content_piece_overridden_variants",
    variants: "content_piece_variants",
    variant_contents: "content_piece_variant_contents",
    variant_tags: "content_piece_variant_tags",
    variant_members: "content_piece_variant_members",
    assets: "content_piece_assets",
};

const PUBLISHED: PieceTables = PieceTables {
    pieces: "published_pieces",
    contents: "published_piece_contents",
    custom_data: "published_piece_custom_data",
    tags: "published_piece_tags",
    members: "published_piece_members",
    overridden_variants: "published_piece_overridden_variants",
    variants: "published_piece_variants",
    variant_contents: "published_piece_variant_contents",
    variant_tags: "published_piece_variant_tags",
    variant_members: "published_piece_variant_members",
    assets: "published_piece_assets",
};

/// Returns the tables of pieces in `view`.
pub(crate) const fn tables(view: ContentView) -> &'static PieceTables {
    match view {
        ContentView::Current => &CURRENT,
        ContentView::Published => &PUBLISHED,
    }
}

/// Returns the effect of a change of one piece in `view` alone.
pub(crate) const fn affects(
    view: ContentView,
    workspace: WorkspaceId,
    piece: ContentPieceId,
) -> Affects {
    match view {
        ContentView::Current => Affects::Piece(workspace, piece),
        ContentView::Published => Affects::PublishedPiece(workspace, piece),
    }
}
