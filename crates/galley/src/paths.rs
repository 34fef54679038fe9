//! Names of files in the data directory.

/// The SQLite database.
pub(crate) const DATABASE: &str = "galley.db";
