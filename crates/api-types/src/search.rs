//! The hits of searches.

use serde::Serialize;
use utoipa::ToSchema;

use crate::content_piece::ContentPieceBody;

/// A piece that matches a search.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchHit)]
pub struct SearchHitBody<'a> {
    piece: ContentPieceBody<'a>,
    /// The relevance. That of the best hit of the search is 1.
    #[schema(minimum = 0, maximum = 1, example = 0.42)]
    score: f64,
    highlights: HighlightsBody,
}

/// The parts of a piece that match a search, as plain text.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Highlights)]
pub struct HighlightsBody {
    /// The title. Null without a match.
    pub title: Option<HighlightBody>,
    /// The text of the description. Null without a match.
    pub description: Option<HighlightBody>,
    /// Passages of the content, the best first: at most 3, each of up to 240 characters.
    pub content: Vec<HighlightBody>,
}

/// A text with the places of its matches.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Highlight)]
pub struct HighlightBody {
    #[schema(example = "A harbour at dawn")]
    pub text: String,
    /// The places, in order and without overlaps.
    pub ranges: Vec<RangeBody>,
}

/// A place in a text, in UTF-16 code units, as the strings of JavaScript count.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TextRange)]
pub struct RangeBody {
    #[schema(minimum = 0, example = 2)]
    pub start: usize,
    /// The place behind the last code unit.
    #[schema(minimum = 1, example = 9)]
    pub end: usize,
}
