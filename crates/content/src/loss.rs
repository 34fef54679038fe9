//! What a document says in HTML and its tree can't.

/// An element, an attribute or a property of a style that the tree lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The name of the element, or `#text` for text that isn't in one of its own.
    pub element: String,
    /// The name of the element's attribute, where that is what is lost.
    pub attribute: Option<String>,
    /// The name of the property, where the attribute is an inline style.
    pub property: Option<String>,
    /// What becomes of it.
    pub effect: Effect,
    /// How many there are.
    pub count: u64,
    /// Where the first one is.
    pub first: Place,
}

/// What becomes of what is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It is left out; of an element, with all that is in it.
    Dropped,
    /// The element is left out, and what is in it stays.
    Unwrapped,
}

impl Effect {
    /// Its name: `dropped` or `unwrapped`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Unwrapped => "unwrapped",
        }
    }
}

/// A place in HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The line where the element's start tag ends, from 1.
    pub line: u64,
    /// The way to the element, as a CSS selector below `body`: `ul:nth-child(2) > li:nth-child(1)`.
    /// Of a long way the beginning is left out.
    pub path: String,
}
