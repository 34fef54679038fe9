//! Names of files in the data directory.

/// The file of the SQLite database.
pub(crate) const DATABASE: &str = "galley.db";

/// The folder with the files of assets.
pub(crate) const ASSETS: &str = "assets";
