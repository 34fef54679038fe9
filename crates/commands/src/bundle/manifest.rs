//! The file that identifies a folder as a bundle.

use std::path::Path;

/// The manifest's file name.
pub(super) const MANIFEST: &str = "galley.json";

/// Returns true if a folder is a bundle.
pub(crate) fn is_bundle(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
}
