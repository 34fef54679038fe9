//! Names of files in the data directory.

/// The file of the SQLite database.
pub(crate) const DATABASE: &str = "galley.db";
