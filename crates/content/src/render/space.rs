//! Checks if a textblock's white space survives a round trip through HTML.
//!
//! It does unless it would collapse. A block with collapsible white space needs a style that
//! preserves it. This is rare, as only a `pre` around the block or an editor creates it.

use crate::node::NodeKind;
use crate::tree::Tree;

/// The additions that preserve a textblock's white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpaceMarkup {
    /// None, as no white space would collapse.
    Plain,
    /// A style that preserves it.
    Kept,
    /// The same style, and one more space after the text. Parsers trim the end of the last text
    /// regardless of the style.
    KeptAtEnd,
}

/// Returns the additions that a paragraph or heading needs.
pub(crate) fn of(tree: &Tree, textblock: usize) -> SpaceMarkup {
    let mut space = SpaceMarkup::Plain;
    // A space is dropped at the beginning of a line, and after another space.
    let mut drops_space = true;
    for child in tree.children(textblock) {
        let NodeKind::Text { start, end, .. } = tree.kind(child) else {
            drops_space = true;
            continue;
        };
        for c in tree.text(start, end).chars() {
            let is_space = matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
            if is_space && (drops_space || c != ' ') {
                space = SpaceMarkup::Kept;
            }
            drops_space = is_space;
        }
        if drops_space && tree.end(child) == tree.end(textblock) {
            space = SpaceMarkup::KeptAtEnd;
        }
    }
    space
}
