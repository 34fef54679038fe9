//! The limits on the size and depth of a document.
//!
//! They don't include the length of the input, which the caller limits.

/// Limits on parsing. The defaults are far above ordinary documents and far below harmful ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentLimits {
    /// The limit on nested block-level elements in the source. Inline elements don't count.
    pub blocks_deep: usize,
    /// The limit on levels below the document in the tree. A text in a paragraph is on the second.
    pub tree_depth: usize,
    /// The minimum bytes of input per DOM node (element, text or comment), beyond the first 100,000
    /// nodes. Ordinary documents have twenty or more.
    pub bytes_per_dom_node: usize,
    /// The limit on inspections of open elements per byte of input. Only malicious inputs need more
    /// than a few.
    pub parser_steps_per_byte: usize,
    /// The limit on attributes of one element, as html5ever compares them in quadratic time.
    pub attributes_per_element: usize,
}

impl Default for ContentLimits {
    fn default() -> Self {
        Self {
            blocks_deep: 256,
            tree_depth: 100,
            bytes_per_dom_node: 5,
            parser_steps_per_byte: 12,
            attributes_per_element: 1_000,
        }
    }
}

/// The limit on columns that a cell may span (HTML Standard, section 4.9.11). Every column is
/// rendered, so a short attribute could otherwise create a page of any size.
pub(crate) const COLSPAN_MAX: u16 = 1_000;

/// The limit on rows that a cell may span.
pub(crate) const ROWSPAN_MAX: u16 = 65_534;
