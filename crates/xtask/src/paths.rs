//! Folders in the target directory.

use std::{env, path::PathBuf};

use crate::cargo;

/// Returns the folder of a part of the reliability suite.
pub(crate) fn directory(part: &str) -> PathBuf {
    let directory = cargo::target_directory().join("reliability").join(part);
    // The path is absolute for programs that are started in another directory.
    std::path::absolute(&directory).unwrap_or_else(|_| env::temp_dir().join(part))
}
