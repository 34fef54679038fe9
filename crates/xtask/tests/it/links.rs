//! Links of the documentation lead to files of the repository and to their headings.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use comrak::nodes::{AstNode, NodeValue};
use comrak::{Anchorizer, Arena, Options, parse_document};

/// Folders without documentation of the project.
const SKIPPED: [&str; 4] = ["target", "node_modules", "dist", ".git"];

/// The links and the headings of a document.
#[derive(Debug, Default)]
struct Document {
    links: Vec<(usize, String)>,
    anchors: HashSet<String>,
}

/// Returns all Markdown files below a folder.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository is readable") {
        let path = entry.expect("an entry is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !SKIPPED.contains(&name) {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Returns the text of a heading, as the anchor has it.
fn text_of<'a>(node: &'a AstNode<'a>) -> String {
    let mut text = String::new();
    for child in node.descendants() {
        match &child.data.borrow().value {
            NodeValue::Text(part) => text.push_str(part),
            NodeValue::Code(code) => text.push_str(&code.literal),
            _ => {}
        }
    }
    text
}

fn read(path: &Path) -> Document {
    let text = fs::read_to_string(path).expect("a document is readable");
    let (arena, mut options) = (Arena::new(), Options::default());
    options.extension.table = true;
    options.extension.autolink = true;
    let (mut document, mut anchorizer) = (Document::default(), Anchorizer::new());
    for node in parse_document(&arena, &text, &options).descendants() {
        let data = node.data.borrow();
        match &data.value {
            NodeValue::Link(link) => {
                document.links.push((data.sourcepos.start.line, link.url.clone()));
            }
            NodeValue::Image(image) => {
                document.links.push((data.sourcepos.start.line, image.url.clone()));
            }
            NodeValue::Heading(_) => {
                let heading = text_of(node);
                document.anchors.insert(anchorizer.anchorize(&heading));
            }
            _ => {}
        }
    }
    document
}

/// Removes `.` and `..` from a path.
fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    // Tests start in the folder of their package.
    let root = fs::canonicalize("../..").expect("the root of the repository");
    let mut paths = Vec::new();
    documents(&root, &mut paths);
    let read: BTreeMap<PathBuf, Document> =
        paths.into_iter().map(|path| (path.clone(), read(&path))).collect();
    assert!(read.len() > 50, "{} documents", read.len());
    let mut problems = Vec::new();
    for (path, document) in &read {
        let shown = path.strip_prefix(&root).unwrap_or(path).display();
        for (line, link) in &document.links {
            if link.contains("://") || link.starts_with("mailto:") || link.starts_with('/') {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                normalized(&path.parent().expect("a folder").join(file))
            };
            if !target.exists() {
                problems.push(format!("{shown}:{line}: {link}: there is no such file"));
            } else if !anchor.is_empty()
                && read.get(&target).is_some_and(|document| !document.anchors.contains(anchor))
            {
                problems.push(format!("{shown}:{line}: {link}: there is no such heading"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
