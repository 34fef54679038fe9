//! The progress of long work.

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The rows that are done, of all tables.
    pub done: u64,
    /// All there are.
    pub all: u64,
}
