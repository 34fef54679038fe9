//! How large and how deep a document may be.
//!
//! The length of the input is not bounded here: whoever receives it knows what it may weigh.

/// Bounds on what is read. The defaults are far above what people write and far below what hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Block-level elements nested in the source. Inline elements don't count.
    pub blocks_deep: usize,
    /// Levels below the document in the tree; a text in a paragraph is on the second.
    pub tree_depth: usize,
    /// Bytes of input for each element, text and comment that the HTML standard makes of it, above
    /// the first 100,000. Ordinary documents have twenty or more.
    pub bytes_per_dom_node: usize,
    /// Looks at open elements per byte of input. Only inputs made for it take more than a few.
    pub parser_steps_per_byte: usize,
    /// Attributes on one element, as comparing them with one another takes quadratic time.
    pub attributes_per_element: usize,
}

impl Default for Limits {
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

/// The most columns a cell may span (HTML Standard, section 4.9.11). Every column is rendered, so
/// without a bound a short attribute would make a page of any size.
pub(crate) const COLSPAN_MAX: u16 = 1_000;

/// The most rows a cell may span.
pub(crate) const ROWSPAN_MAX: u16 = 65_534;
