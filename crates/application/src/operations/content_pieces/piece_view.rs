//! A piece as a response shows it.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::content_piece::ContentPiece;

/// A piece as seen in a variant, with the rows that it refers to.
#[derive(Debug)]
pub struct PieceView {
    /// The piece, and its content if it was requested.
    pub piece: (ContentPiece, Option<String>),
    /// The tags and members.
    pub referenced: ReferencedResources,
}
