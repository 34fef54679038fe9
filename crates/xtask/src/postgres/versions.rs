//! Installed versions of PostgreSQL.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns `<parent>/<prefix><major version>/<inner>` for every version that exists.
pub(super) fn newest_first(parent: impl AsRef<Path>, prefix: &str, inner: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path().join(inner)))
        })
        .collect();
    versions.sort_unstable_by(|left, right| right.cmp(left));
    versions.into_iter().map(|(_, path)| path).collect()
}
