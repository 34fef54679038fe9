//! The full-text search of an engine.

/// The form in which an engine stores the terms of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullTextEngine {
    /// SQLite's extension FTS5.
    Fts5,
    /// PostgreSQL's type `tsvector`.
    Tsvector,
}
