//! The names of exported files: those of the imported sources, otherwise the slugs. No name leads
//! out of the folder, whatever a piece's fields contain.

use std::collections::HashSet;

use galley_domain::content_piece::ContentPiece;
use galley_domain::text::ShortText;

/// The length limit of a path segment in bytes. It leaves room for an extension.
const PATH_SEGMENT_LIMIT: usize = 120;

/// The names in use, in lower case, as some file systems ignore case.
#[derive(Debug)]
pub(super) struct FileNames {
    taken: HashSet<String>,
    /// The keys of variants. A file named after one would be imported as that variant.
    variants: Vec<String>,
}

impl FileNames {
    pub(super) fn new(variants: Vec<String>) -> Self {
        Self { taken: HashSet::new(), variants }
    }

    /// Returns the path of a piece's file.
    pub(super) fn name(&mut self, piece: &ContentPiece, groups: &[&str]) -> String {
        let groups: Vec<String> = groups.iter().map(|group| part(group)).collect();
        let source =
            piece.fields.filename.as_ref().map(ShortText::as_str).filter(|name| is_path(name));
        let mut parts: Vec<String> = match source {
            Some(name) => name.split('/').map(ToOwned::to_owned).collect(),
            None => {
                let slug = piece.fields.slug.as_str().split('/').filter(|part| !part.is_empty());
                let mut parts: Vec<String> = slug.map(part).collect();
                let last = parts.pop().unwrap_or_else(|| piece.id.to_string());
                parts.push(format!("{last}.md"));
                parts
            }
        };
        // The source's name already begins with the folders if they were imported as groups.
        if !parts.starts_with(&groups) || parts.len() == groups.len() {
            parts.splice(0..0, groups);
        }
        // No folder may have a name that a file could have.
        let folders = parts.len() - 1;
        for folder in &mut parts[..folders] {
            if has_markdown_extension(folder) {
                folder.push('_');
            }
        }
        if parts.len() > 1 && self.is_variant(&parts[0]) {
            parts[0].insert(0, '_');
        }
        let mut name = parts.join("/");
        let (stem, extension) = split(&name);
        if let Some((base, suffix)) = stem.rsplit_once('.')
            && self.is_variant(suffix)
        {
            name = format!("{base}-{suffix}.{extension}");
        }
        self.take(name, piece)
    }

    fn is_variant(&self, text: &str) -> bool {
        self.variants.iter().any(|key| key.eq_ignore_ascii_case(text))
    }

    /// Returns the path of a piece's file in a variant: for `a/b.md` in `de`, `a/b.de.md`.
    pub(super) fn in_variant(&mut self, name: &str, key: &str, piece: &ContentPiece) -> String {
        let (stem, extension) = split(name);
        self.take(format!("{stem}.{key}.{extension}"), piece)
    }

    fn take(&mut self, name: String, piece: &ContentPiece) -> String {
        if self.taken.insert(name.to_lowercase()) {
            return name;
        }
        let (stem, extension) = split(&name);
        let name = format!("{stem}-{}.{extension}", piece.id);
        self.taken.insert(name.to_lowercase());
        name
    }
}

fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or((name, "md"))
}

/// Returns true if a text has the extension of a Markdown file.
fn has_markdown_extension(text: &str) -> bool {
    let extension = text.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("md" | "markdown" | "mdx"))
}

/// Returns true if a text can be the path of a file that an export wrote.
pub(super) fn is_exported_path(text: &str) -> bool {
    let is_of_bundle =
        text.rsplit_once('.').is_some_and(|(_, end)| ["json", "jsonl"].contains(&end));
    let is_asset = text.starts_with("assets/");
    stays_in_folder(text) && (has_markdown_extension(text) || is_of_bundle || is_asset)
}

/// The limits on bytes of the parts of an asset's name.
const ASSET_STEM_LIMIT: usize = 80;
const ASSET_EXTENSION_LIMIT: usize = 20;

/// Returns the name of an asset's file. An import of the export must not read it as a document.
pub(super) fn asset_name(filename: &str) -> String {
    let (stem, extension) = filename.rsplit_once('.').unwrap_or((filename, ""));
    let (mut name, mut extension) = (part(stem), part(extension));
    // Room for a number, and for another extension.
    for (text, limit) in [(&mut name, ASSET_STEM_LIMIT), (&mut extension, ASSET_EXTENSION_LIMIT)] {
        *text = part(&text[..text.floor_char_boundary(limit)]);
    }
    if extension != "_" {
        name = format!("{name}.{extension}");
    }
    let is_document = ["md", "markdown", "mdx", "html", "htm", "xhtml", "xml", "json"];
    if is_document.contains(&extension.to_ascii_lowercase().as_str()) {
        name.push_str(".txt");
    }
    name
}

/// Returns true if a text is a Markdown path that can be used unchanged.
pub(super) fn is_path(text: &str) -> bool {
    has_markdown_extension(text) && stays_in_folder(text)
}

/// Returns true if a path stays within the folder.
fn stays_in_folder(text: &str) -> bool {
    text.len() < 1_000 && text.split('/').all(|one| part(one) == one)
}

/// Returns a path segment that is valid on every file system.
fn part(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let is_odd =
            c.is_control() || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
        if out.len() + c.len_utf8() > PATH_SEGMENT_LIMIT {
            break;
        }
        out.push(if is_odd { '-' } else { c });
    }
    let trimmed = out.trim_matches(|c: char| c == '.' || c.is_whitespace());
    if trimmed.is_empty() { "_".to_owned() } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_name_leaves_the_folder() {
        for bad in [
            "../a.md",
            "/a.md",
            "a/../../b.md",
            "a\\b.md",
            ".git/a.md",
            "a.md/",
            "C:a.md",
            "a",
            "a\n.md",
            "",
        ] {
            assert!(!is_path(bad), "{bad:?}");
        }
        for good in ["a.md", "2024/05/a b.md", "\u{e9}/index.markdown"] {
            assert!(is_path(good), "{good:?}");
        }
        for (filename, expected) in [
            ("photo.jpg", "photo.jpg"),
            ("no extension", "no extension"),
            ("a:b?.tar.gz", "a-b-.tar.gz"),
            (".hidden.png", "hidden.png"),
            ("page.HTML", "page.HTML.txt"),
            ("notes.md", "notes.md.txt"),
        ] {
            assert_eq!(asset_name(filename), expected);
            assert!(is_exported_path(&format!("assets/{expected}")));
        }
        for (text, expected) in
            [("..", "_"), ("a/b", "a-b"), (".hidden", "hidden"), ("", "_"), ("x ", "x")]
        {
            assert_eq!(part(text), expected);
        }
    }
}
