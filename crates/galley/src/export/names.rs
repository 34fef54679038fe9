//! What the files are called: as the sources were that pieces were imported from, else by their slugs. Whatever a
//! piece says, no name leads out of the folder.

use std::collections::HashSet;

use galley_domain::content_piece::ContentPiece;
use galley_domain::text::ShortText;

/// How long a part of a path may be, in bytes, with room for an ending.
const PART_MAX: usize = 120;

/// The names that are taken, in lower case, as some file systems don't tell cases apart.
#[derive(Debug)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// The keys of variants: what is named after one would be taken for its own.
    variants: Vec<String>,
}

impl Names {
    pub(super) fn new(variants: Vec<String>) -> Self {
        Self { taken: HashSet::new(), variants }
    }

    /// The path of a piece's file.
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
        // Imported with its folders as groups, it names them itself.
        if !parts.starts_with(&groups) || parts.len() == groups.len() {
            parts.splice(0..0, groups);
        }
        // No folder is called as a file may be.
        let folders = parts.len() - 1;
        for folder in &mut parts[..folders] {
            if has_ending(folder) {
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

    /// The path of a piece's file in a variant: for `a/b.md` in `de`, `a/b.de.md`.
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

/// Whether it ends as a file of Markdown does.
fn has_ending(text: &str) -> bool {
    let extension = text.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("md" | "markdown" | "mdx"))
}

/// Whether it can be the path of a file that an export wrote.
pub(super) fn is_own(text: &str) -> bool {
    let is_of_bundle = text.rsplit_once('.').is_some_and(|(_, extension)| extension == "json");
    is_below(text) && (has_ending(text) || is_of_bundle)
}

/// Whether a text is a path that can be taken as it is.
pub(super) fn is_path(text: &str) -> bool {
    has_ending(text) && is_below(text)
}

/// Whether it leads nowhere else.
fn is_below(text: &str) -> bool {
    text.len() < 1_000 && text.split('/').all(|one| part(one) == one)
}

/// A part of a path that every file system takes.
fn part(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let is_odd =
            c.is_control() || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
        if out.len() + c.len_utf8() > PART_MAX {
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
    fn no_name_leads_out() {
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
        for (text, expected) in
            [("..", "_"), ("a/b", "a-b"), (".hidden", "hidden"), ("", "_"), ("x ", "x")]
        {
            assert_eq!(part(text), expected);
        }
    }
}
