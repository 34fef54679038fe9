//! The progress of long operations.

/// The progress of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The rows or pages that are done.
    pub done: u64,
    /// The total number of rows or pages.
    pub all: u64,
}
