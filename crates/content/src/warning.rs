//! Conversion warnings: content of an HTML document that its tree lacks.

/// A conversion warning for an element, an attribute or a property of a style that the tree lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionWarning {
    /// The name of the element, or `#text` for a text node.
    pub element: String,
    /// The name of the lost attribute, if the loss is an attribute.
    pub attribute: Option<String>,
    /// The name of the lost property, if the attribute is an inline style.
    pub property: Option<String>,
    /// The effect on the lost content.
    pub effect: ConversionEffect,
    /// The number of occurrences.
    pub count: u64,
    /// The place of the first occurrence.
    pub first: SourcePosition,
}

/// The effect of a conversion on content that the tree lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConversionEffect {
    /// It is removed. An element is removed with its descendants.
    Dropped,
    /// The element is removed, and its children stay.
    Unwrapped,
    /// The element is moved out of its list item, which must begin with a paragraph, and out of the
    /// list. The rest of the list is one of its own.
    Moved,
}

impl ConversionEffect {
    /// Returns the effect's name: `dropped`, `unwrapped` or `moved`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Unwrapped => "unwrapped",
            Self::Moved => "moved",
        }
    }
}

/// A place in HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// The line on which the element's start tag ends, from 1.
    pub line: u64,
    /// The path to the element, as a CSS selector below `body`: `ul:nth-child(2) >
    /// li:nth-child(1)`. The beginning of a long path is omitted.
    pub path: String,
}
