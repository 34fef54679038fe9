//! Whether a textblock's white space survives being read as HTML again.
//!
//! It does where it would not collapse. Where it would, which is rare (a tree gets such white space
//! from around a `pre`, or from an editor), the block has to say that it is to be kept.

use crate::node::Kind;
use crate::tree::Tree;

/// What a textblock needs to keep its white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Nothing: none would collapse.
    Plain,
    /// A style that keeps it.
    Kept,
    /// The same, and one more space behind the text: parsers cut the end of the last text whatever
    /// the style.
    KeptAtEnd,
}

/// Finds out what a paragraph or heading needs.
pub(crate) fn of(tree: &Tree, textblock: usize) -> Space {
    let mut space = Space::Plain;
    // The beginning of a line drops a space as one before does.
    let mut drops_space = true;
    for child in tree.children(textblock) {
        let Kind::Text { start, end, .. } = tree.kind(child) else {
            drops_space = true;
            continue;
        };
        for c in tree.text(start, end).chars() {
            let is_space = matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
            if is_space && (drops_space || c != ' ') {
                space = Space::Kept;
            }
            drops_space = is_space;
        }
        if drops_space && tree.end(child) == tree.end(textblock) {
            space = Space::KeptAtEnd;
        }
    }
    space
}
