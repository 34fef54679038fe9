//! The search for the file at an address of a document. Only files within the folders of the
//! sources, and within folders that the user names, are found.

use std::path::{Component, Path, PathBuf};

use icu_normalizer::ComposingNormalizerBorrowed;
use percent_encoding::percent_decode_str;

/// The place of a source: the folder of its file, and the folder that was named for the import.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceLocation {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) root: Option<PathBuf>,
    /// True if links lead to files of the folder. The folder of a single file may have others.
    pub(crate) has_links: bool,
    /// The name of a source that a request contains.
    pub(crate) name: Option<String>,
}

/// The folders of a site whose files are served at its root.
const PUBLIC_FOLDERS: [&str; 5] = ["", "static", "public", "source", "assets"];

/// The paths of uploaded files in WordPress and Ghost, whose exports have absolute addresses.
const UPLOAD_PATHS: [&str; 4] =
    ["/wp-content/uploads/", "/content/images/", "/content/media/", "/content/files/"];

/// The limit on bytes of the path in an address. Longer paths exist on no file system.
const ADDRESS_LIMIT: usize = 4_096;

/// Returns the path in an address that may be one of a file of the import.
fn path_of(address: &str) -> Option<String> {
    let path = address.split(['?', '#']).next().filter(|path| !path.is_empty())?;
    if path.len() > ADDRESS_LIMIT {
        return None;
    }
    let path = match path.split_once("://") {
        Some((_, rest)) => {
            let path = rest.find('/').map(|at| &rest[at..])?;
            has_upload_path(path).then_some(path)?
        }
        None if path.starts_with("//") || path.contains(':') => return None,
        None => path,
    };
    let path = percent_decode_str(path).decode_utf8().ok()?;
    (!path.contains('\0')).then(|| path.into_owned())
}

fn has_upload_path(path: &str) -> bool {
    UPLOAD_PATHS.iter().any(|known| path.contains(known))
}

/// Returns true for an absolute address with a path of uploads.
pub(crate) fn is_uploaded(address: &str) -> bool {
    address.contains("://") && path_of(address).is_some()
}

/// Returns the name of the file at an address of the document `source`, if `is_known` knows it.
/// Names are paths below one folder. Their files are served at its root, or below
/// [`UPLOAD_PATHS`].
pub(crate) fn find_name(
    address: &str,
    source: &str,
    is_known: impl Fn(&str) -> bool,
) -> Option<String> {
    let path = path_of(address)?;
    let mut candidates = Vec::new();
    match path.strip_prefix('/') {
        Some(from_root) => {
            candidates.extend(PUBLIC_FOLDERS.iter().map(|folder| format!("{folder}/{from_root}")));
            for known in UPLOAD_PATHS {
                let Some(at) = path.find(known) else { continue };
                let uploaded = &path[at + known.len()..];
                // The folder of the import may be any part of the path.
                let parts = known.match_indices('/').map(|(at, _)| &known[at + 1..]);
                candidates.extend(parts.map(|part| format!("{part}{uploaded}")));
            }
        }
        None => {
            let folder = source.rsplit_once('/').map_or("", |(folder, _)| folder);
            candidates.push(format!("{folder}/{path}"));
        }
    }
    let names = candidates.iter().filter_map(|path| plain(path)).map(|name| composed(&name));
    names.into_iter().find(|name| is_known(name))
}

/// Returns a name in composed form (NFC). Some systems decompose the names of files.
pub(crate) fn composed(name: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(name).into_owned()
}

/// Returns a path without empty parts and those of dots, unless it leads out of its root.
fn plain(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the path of the file at an address, if it is in one of the folders.
pub(crate) fn find(
    address: &str,
    location: &SourceLocation,
    folders: &[PathBuf],
) -> Option<PathBuf> {
    let path = path_of(address)?;
    let mut candidates = Vec::new();
    match path.strip_prefix('/') {
        Some(from_root) => {
            let roots = location.root.iter();
            candidates.extend(roots.flat_map(|root| {
                PUBLIC_FOLDERS.iter().map(|folder| root.join(folder).join(from_root))
            }));
        }
        None => candidates.extend(location.folder.iter().map(|folder| folder.join(&path))),
    }
    let relative = path.trim_start_matches('/');
    candidates.extend(folders.iter().flat_map(|folder| in_folder(folder, relative)));
    let allowed: Vec<_> = location.root.iter().chain(folders).collect();
    candidates.into_iter().find_map(|candidate| checked(&candidate, &allowed))
}

/// Returns the paths that a path may have in a folder. A folder `…/uploads` has the files below
/// `uploads/` of the path.
fn in_folder(folder: &Path, path: &str) -> Vec<PathBuf> {
    let mut candidates = vec![folder.join(path)];
    let name = folder.file_name().unwrap_or_default();
    let mut rest = path;
    while let Some((first, after)) = rest.split_once('/') {
        if name == first {
            candidates.push(folder.join(after));
        }
        rest = after;
    }
    candidates
}

/// Returns the resolved path of a file within one of the folders. Hidden files are left out, and so
/// are links that lead out of the folders.
fn checked(candidate: &Path, allowed: &[&PathBuf]) -> Option<PathBuf> {
    let resolved = candidate.canonicalize().ok().filter(|path| path.is_file())?;
    let is_inside = allowed.iter().any(|folder| {
        let Ok(folder) = folder.canonicalize() else { return false };
        resolved.strip_prefix(folder).is_ok_and(|below| !below.components().any(is_hidden))
    });
    is_inside.then_some(resolved)
}

fn is_hidden(part: Component<'_>) -> bool {
    part.as_os_str().to_string_lossy().starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_in_the_folders_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, uploads) = (base.join("site"), base.join("wp/uploads"));
        for name in [
            "secret.png",
            "site/a/b.png",
            "site/a/p\u{e4}th 1.png",
            "site/static/c.png",
            "site/.git/d.png",
            "wp/uploads/2020/e.png",
        ] {
            let path = base.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        std::os::unix::fs::symlink(base.join("secret.png"), root.join("a/out.png")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b.png"), root.join("a/in.png")).unwrap();
        let location = SourceLocation {
            folder: Some(root.join("a")),
            root: Some(root.clone()),
            has_links: true,
            name: None,
        };
        for (address, found) in [
            ("b.png", Some("site/a/b.png")),
            ("./b.png?x#y", Some("site/a/b.png")),
            ("p%C3%A4th%201.png", Some("site/a/p\u{e4}th 1.png")),
            ("../a/b.png", Some("site/a/b.png")),
            ("/c.png", Some("site/static/c.png")),
            ("/a/b.png", Some("site/a/b.png")),
            ("in.png", Some("site/a/b.png")),
            ("out.png", None),
            ("../../secret.png", None),
            ("/../secret.png", None),
            ("/.git/d.png", None),
            ("//example.org/b.png", None),
            ("mailto:b.png", None),
            ("", None),
            ("a%00.png", None),
            (".", None),
            ("https://example.org/b.png", None),
            ("https://example.org/wp-content/uploads/2020/e.png", Some("wp/uploads/2020/e.png")),
            ("/2020/e.png", Some("wp/uploads/2020/e.png")),
            ("/wp-content/uploads/../../secret.png", None),
        ] {
            let expected = found.map(|name| base.join(name));
            assert_eq!(
                find(address, &location, std::slice::from_ref(&uploads)),
                expected,
                "{address}"
            );
        }
        assert_eq!(find("b.png", &SourceLocation::default(), &[]), None);
    }

    #[test]
    fn names_are_found_below_the_folder_of_the_import() {
        let names = ["a/b.png", "a/p\u{e4}th 1.png", "static/c.png", "uploads/2020/e.png", "f.png"];
        for (address, found) in [
            ("b.png", Some("a/b.png")),
            ("./b.png?x#y", Some("a/b.png")),
            ("p%C3%A4th%201.png", Some("a/p\u{e4}th 1.png")),
            ("pa\u{308}th 1.png", Some("a/p\u{e4}th 1.png")),
            ("../a/b.png", Some("a/b.png")),
            ("../f.png", Some("f.png")),
            ("/f.png", Some("f.png")),
            ("/c.png", Some("static/c.png")),
            ("/a/b.png", Some("a/b.png")),
            ("f.png", None),
            ("../../f.png", None),
            ("//example.org/f.png", None),
            ("https://example.org/f.png", None),
            ("https://example.org/wp-content/uploads/2020/e.png", Some("uploads/2020/e.png")),
            ("https://example.org/blog/content/images/f.png", Some("f.png")),
            ("", None),
        ] {
            let is_known = |name: &str| names.contains(&name);
            assert_eq!(find_name(address, "a/post.md", is_known).as_deref(), found, "{address}");
        }
    }
}
