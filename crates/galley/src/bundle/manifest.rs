//! The file by which a folder is known to be a bundle.

use std::path::Path;

/// Its name.
pub(super) const MANIFEST: &str = "galley.json";

/// Returns whether a folder is a bundle.
pub(crate) fn is_bundle(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
}
