//! Finds the files to import, and determines their kinds.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use walkdir::WalkDir;

use crate::assets::SourceLocation;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceFormat {
    Markdown,
    Html,
    /// A WordPress export with many posts.
    WordPress,
    Ghost,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceContent {
    File(PathBuf),
    Text(String),
}

impl SourceContent {
    /// Opens the content for reading.
    pub(crate) fn open(&self) -> std::io::Result<Box<dyn BufRead + '_>> {
        Ok(match self {
            Self::File(path) => Box::new(BufReader::with_capacity(256 * 1024, File::open(path)?)),
            Self::Text(text) => Box::new(text.as_bytes()),
        })
    }
}

/// A file, and the name that identifies its piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) content: SourceContent,
    /// The file as messages name it.
    pub(crate) place: String,
    /// Its path below the named folder, with `/` between the parts, without its language.
    pub(crate) name: String,
    pub(crate) kind: SourceFormat,
    /// The language of this version, if a piece has several.
    pub(crate) language: Option<String>,
    /// The folder that was named for the import; `None` for a named file.
    pub(crate) root: Option<PathBuf>,
}

impl SourceFile {
    /// Returns the place of the file, for addresses in it. The addresses of an export are those of
    /// its site.
    pub(crate) fn location(&self) -> SourceLocation {
        let SourceContent::File(path) = &self.content else {
            let name = Some(self.place.clone());
            return SourceLocation { has_links: true, name, ..SourceLocation::default() };
        };
        if matches!(self.kind, SourceFormat::WordPress | SourceFormat::Ghost) {
            return SourceLocation::default();
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new(".")).to_owned();
        let root = self.root.clone().unwrap_or_else(|| folder.clone());
        let has_links = self.root.is_some();
        SourceLocation { folder: Some(folder), root: Some(root), has_links, name: None }
    }
}

/// A file that is no document.
#[derive(Debug)]
pub(crate) struct SkippedFile {
    pub(crate) name: String,
    /// The name of its kind.
    pub(crate) kind: String,
    /// Its path, if it is on this machine.
    pub(crate) path: Option<PathBuf>,
}

/// The result of the search.
#[derive(Debug, Default)]
pub struct FoundSources {
    /// The files, sorted by name within each source. Files in the first language precede all
    /// others.
    pub(crate) files: Vec<SourceFile>,
    /// Files that are not documents.
    pub(crate) skipped: Vec<SkippedFile>,
    /// Messages about folders and entries that can't be read.
    pub(crate) problems: Vec<String>,
}

impl FoundSources {
    /// Returns the number of files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }
}

/// Searches the sources for files. `is_own` returns true for the files of the database that is
/// imported into. The extension of a named file decides on its kind.
pub fn find(
    sources: &[PathBuf],
    languages: &[String],
    is_own: &dyn Fn(&Path) -> bool,
) -> anyhow::Result<FoundSources> {
    let mut found = FoundSources::default();
    for source in sources {
        if is_own(source) {
            bail!("{} belongs to the database that is imported into", source.display());
        }
        let metadata = std::fs::metadata(source)
            .with_context(|| format!("{} can't be read", source.display()))?;
        if metadata.is_dir() {
            find_below(source, is_own, &mut found);
        } else if !metadata.is_file() {
            bail!("{} is neither a file nor a folder", source.display());
        } else {
            let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let kind = match extension(source).as_str() {
                "html" | "htm" | "xhtml" => SourceFormat::Html,
                "xml" => SourceFormat::WordPress,
                "json" => SourceFormat::Ghost,
                "md" | "markdown" | "mdx" | "txt" | "" => SourceFormat::Markdown,
                _ => bail!(
                    "{} has no supported extension: *.md, *.html, *.xml of WordPress or *.json of \
                     Ghost",
                    source.display()
                ),
            };
            let (place, content) =
                (source.display().to_string(), SourceContent::File(source.clone()));
            let (language, root) = (None, None);
            found.files.push(SourceFile { content, place, name, kind, language, root });
        }
    }
    assign_languages(&mut found, languages);
    if found.files.is_empty() && found.problems.is_empty() {
        bail!(
            "nothing to import: no Markdown (*.md), no HTML (*.html), and no export of WordPress \
             (*.xml) or Ghost (*.json)"
        );
    }
    Ok(found)
}

/// Returns the sources of texts that were sent with their names: paths below a folder. The
/// extension and the beginning of each decide on its format.
pub fn named(files: Vec<(String, String)>, languages: &[String]) -> FoundSources {
    let mut found = FoundSources::default();
    for (name, text) in files {
        let start = text.get(..FORMAT_START).unwrap_or(&text);
        match format_of(Path::new(&name), |words| start.contains(words)) {
            Some(kind) => {
                let (place, content) = (name.clone(), SourceContent::Text(text));
                let (language, root) = (None, None);
                found.files.push(SourceFile { content, place, name, kind, language, root });
            }
            None => {
                let kind = kind_of_other(Path::new(&name));
                found.skipped.push(SkippedFile { name, kind, path: None });
            }
        }
    }
    assign_languages(&mut found, languages);
    found
}

/// Splits the languages from the names. Sorts files in other languages behind those of the first.
fn assign_languages(found: &mut FoundSources, languages: &[String]) {
    for file in &mut found.files {
        if matches!(file.kind, SourceFormat::Markdown | SourceFormat::Html) {
            (file.name, file.language) = split_language(&file.name, languages);
        }
    }
    // Files in other languages follow, as they belong to pieces of the first language.
    found
        .files
        .sort_by_key(|file| file.language.is_some() && file.language.as_ref() != languages.first());
    reject_duplicates(found);
}

/// Searches a folder. Skips hidden files and folders. Doesn't follow links, as they may lead out of
/// the folder.
fn find_below(folder: &Path, is_own: &dyn Fn(&Path) -> bool, found: &mut FoundSources) {
    let visible = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
    };
    let walk = WalkDir::new(folder).follow_links(false).sort_by_file_name();
    for entry in walk.into_iter().filter_entry(visible) {
        match entry {
            // A file of the database is skipped like any other file, unless its extension is that
            // of a document. It may be a hard link, and reading it would drop the locks of this
            // process.
            Ok(entry) if entry.file_type().is_file() && is_own(entry.path()) => {
                if has_source_extension(entry.path()) {
                    let path = entry.path().display();
                    found.problems.push(format!("{path}: belongs to the database"));
                }
            }
            Ok(entry) if entry.file_type().is_file() => {
                let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
                let parts: Vec<_> =
                    below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
                let name = parts.join("/");
                let Some(kind) = detect_format(entry.path()) else {
                    let (kind, path) = (kind_of_other(entry.path()), Some(entry.into_path()));
                    found.skipped.push(SkippedFile { name, kind, path });
                    continue;
                };
                found.files.push(SourceFile {
                    place: entry.path().display().to_string(),
                    content: SourceContent::File(entry.into_path()),
                    name,
                    kind,
                    language: None,
                    root: Some(folder.to_owned()),
                });
            }
            Ok(entry) if entry.path_is_symlink() => {
                let path = entry.path().display();
                found.problems.push(format!("{path}: is a link, which is not followed"));
            }
            Ok(entry) if !entry.file_type().is_dir() && has_document_extension(entry.path()) => {
                found.problems.push(format!("{}: is not a file", entry.path().display()));
            }
            Ok(_) => {}
            Err(error) => found.problems.push(format!("{error}")),
        }
    }
}

/// Returns true if a file's extension alone makes it a document.
fn has_document_extension(path: &Path) -> bool {
    matches!(extension(path).as_str(), "md" | "markdown" | "mdx" | "html" | "htm" | "xhtml")
}

/// Returns true if a file's extension is that of a document or an export.
fn has_source_extension(path: &Path) -> bool {
    has_document_extension(path) || matches!(extension(path).as_str(), "xml" | "json")
}

/// Returns the format of a file in a folder, by its extension and, for exports, its beginning.
/// Returns `None` for other files.
fn detect_format(path: &Path) -> Option<SourceFormat> {
    format_of(path, |words| {
        let mut start = Vec::new();
        let read = File::open(path)
            .and_then(|file| file.take(FORMAT_START as u64).read_to_end(&mut start));
        read.is_ok() && String::from_utf8_lossy(&start).contains(words)
    })
}

/// The length of the beginning of an export that shows its format, in bytes.
const FORMAT_START: usize = 64 * 1024;

fn format_of(path: &Path, begins_with: impl Fn(&str) -> bool) -> Option<SourceFormat> {
    match extension(path).as_str() {
        "md" | "markdown" | "mdx" => Some(SourceFormat::Markdown),
        "html" | "htm" | "xhtml" => Some(SourceFormat::Html),
        "xml" if begins_with("wordpress.org/export/") => Some(SourceFormat::WordPress),
        "json" if begins_with("\"exported_on\"") => Some(SourceFormat::Ghost),
        _ => None,
    }
}

/// Returns the name of a kind of files that are no documents.
fn kind_of_other(path: &Path) -> String {
    match extension(path).as_str() {
        "" => "files without an extension".to_owned(),
        extension => format!("*.{extension} files"),
    }
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// Splits the language from a name: `de/a.md` and `a.de.md` are `a.md` in `de`, if `de` is one of
/// the languages. A name without a language is in the first.
fn split_language(name: &str, languages: &[String]) -> (String, Option<String>) {
    let Some(first) = languages.first() else { return (name.to_owned(), None) };
    let is = |part: &str| languages.iter().find(|known| known.eq_ignore_ascii_case(part)).cloned();
    if let Some((folder, rest)) = name.split_once('/')
        && let Some(language) = is(folder)
    {
        return (rest.to_owned(), Some(language));
    }
    if let Some((path, extension)) = name.rsplit_once('.')
        && let Some((base, suffix)) = path.rsplit_once('.')
        && let Some(language) = is(suffix)
    {
        return (format!("{base}.{extension}"), Some(language));
    }
    (name.to_owned(), Some(first.clone()))
}

/// Removes the second of two files with the same name, as both would be one piece.
fn reject_duplicates(found: &mut FoundSources) {
    let mut names = HashSet::new();
    let FoundSources { files, problems, .. } = found;
    files.retain(|file| {
        let first = names.insert((file.name.clone(), file.language.clone()));
        if !first {
            let (path, name) = (&file.place, &file.name);
            problems.push(match &file.language {
                Some(language) => {
                    format!("{path}: another file has the name {name:?} in {language} already")
                }
                None => format!(
                    "{path}: another file has the name {name:?} already; import it into another \
                     group"
                ),
            });
        }
        first
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_a_folder_or_a_suffix() {
        let languages = ["en".to_owned(), "de".to_owned(), "pt-BR".to_owned()];
        for (name, base, language) in [
            ("a.md", "a.md", Some("en")),
            ("a.de.md", "a.md", Some("de")),
            ("de/x/a.md", "x/a.md", Some("de")),
            ("en/a.md", "a.md", Some("en")),
            ("x/index.pt-br.md", "x/index.md", Some("pt-BR")),
            ("x/de/a.md", "x/de/a.md", Some("en")),
            ("v1.2.md", "v1.2.md", Some("en")),
        ] {
            let expected = (base.to_owned(), language.map(ToOwned::to_owned));
            assert_eq!(split_language(name, &languages), expected, "{name}");
        }
        assert_eq!(split_language("a.de.md", &[]), ("a.de.md".to_owned(), None));
    }
}
