//! The error of a resource at its limit.

/// A resource is at its limit, and the work was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limit of a shared resource is reached")]
pub struct Overloaded;
