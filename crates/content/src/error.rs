//! The reasons for rejecting a document.

/// The error for a document that can't become, or isn't, a content tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// Blocks nest deeper than [`ContentLimits`](crate::ContentLimits) allows, in the source or in
    /// the tree.
    #[error("content is nested too deeply")]
    TooDeep,
    /// Parsing would create far more nodes or take far more steps than the source's length
    /// justifies.
    #[error("content is too complex to read")]
    TooComplex,
    /// JSON that violates the schema, or has a value that is not safe to render.
    #[error("not a valid content tree: {reason}")]
    InvalidTree {
        /// The violation.
        reason: String,
        /// The path to the node: indexes of children, from the document down.
        node: Vec<usize>,
    },
}

impl ContentError {
    /// Adds the path to the node.
    pub(crate) fn at(self, node: Vec<usize>) -> Self {
        match self {
            Self::InvalidTree { reason, .. } => Self::InvalidTree { reason, node },
            other => other,
        }
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::InvalidTree { reason: reason.into(), node: Vec::new() }
    }
}
