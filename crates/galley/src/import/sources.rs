//! Which files there are to import.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use walkdir::WalkDir;

/// A file, and the name by which its piece is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    /// Its path below the folder that was named, with `/` between the parts.
    pub(super) name: String,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Sorted by name within each source.
    pub(super) files: Vec<SourceFile>,
    /// Folders that can't be read.
    pub(super) problems: Vec<String>,
}

/// Looks for Markdown files. A file that was named is taken whatever it is called.
pub(super) fn find(sources: &[PathBuf]) -> anyhow::Result<Found> {
    let mut found = Found::default();
    for source in sources {
        let kind = std::fs::metadata(source)
            .with_context(|| format!("{} can't be read", source.display()))?;
        if kind.is_dir() {
            find_below(source, &mut found);
        } else {
            let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.files.push(SourceFile { path: source.clone(), name });
        }
    }
    refuse_repeats(&mut found);
    if found.files.is_empty() && found.problems.is_empty() {
        bail!("there are no Markdown files (*.md) there");
    }
    Ok(found)
}

/// Links are not followed, as they may lead out of the folder; hidden files and folders are left
/// alone.
fn find_below(folder: &Path, found: &mut Found) {
    let visible = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
    };
    let walk = WalkDir::new(folder).follow_links(false).sort_by_file_name();
    for entry in walk.into_iter().filter_entry(visible) {
        match entry {
            Ok(entry) if entry.file_type().is_file() && is_markdown(entry.path()) => {
                let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
                let parts: Vec<_> =
                    below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
                let name = parts.join("/");
                found.files.push(SourceFile { path: entry.into_path(), name });
            }
            Ok(entry) if entry.path_is_symlink() => {
                let path = entry.path().display();
                found.problems.push(format!("{path}: is a link, and is not followed"));
            }
            Ok(_) => {}
            Err(error) => found.problems.push(format!("{error}")),
        }
    }
}

/// Two files of one name would be one piece: the second is left out.
fn refuse_repeats(found: &mut Found) {
    let mut names = HashSet::new();
    let Found { files, problems } = found;
    files.retain(|file| {
        let first = names.insert(file.name.clone());
        if !first {
            let (path, name) = (file.path.display(), &file.name);
            problems.push(format!(
                "{path}: another file is known as {name:?} already; import it into another group"
            ));
        }
        first
    });
}

fn is_markdown(path: &Path) -> bool {
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    matches!(extension.as_ref().and_then(|extension| extension.to_str()), Some("md" | "markdown"))
}
