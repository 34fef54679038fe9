//! Why a document is refused.

/// A document that can't become, or isn't, a content tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// Blocks nest deeper than [`Limits`](crate::Limits) allows, in the source or in the tree.
    #[error("content is nested too deeply")]
    TooDeep,
    /// Reading the source would take far more nodes or steps than its length justifies.
    #[error("content is too complex to read")]
    TooComplex,
    /// Stored JSON that is no document of the schema, or holds a value that is not safe to render.
    #[error("not a valid content tree: {0}")]
    InvalidTree(String),
}

impl ContentError {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::InvalidTree(reason.into())
    }
}
