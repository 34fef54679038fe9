//! `cargo xtask book`: the documentation as a site with search, built by mdBook.
//!
//! The pages and their order are those of `docs/README.md` and `docs/decisions/README.md`. All
//! other Markdown files of the repository follow, so that every link between them works.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{cargo, child};

/// The version of mdBook that is built, if the path has no other of the same series.
const MDBOOK_VERSION: &str = "0.5.4";

const CONFIGURATION: &str = r#"[book]
title = "Galley"
language = "en"

[output.html]
no-section-label = true

[output.html.search]
limit-results = 30
boost-title = 3
"#;

/// Builds the book, and checks the links between its files.
pub(crate) fn run() -> Result<ExitCode> {
    let root = cargo::workspace_root();
    let book = cargo::target_directory().join("book");
    if book.exists() {
        fs::remove_dir_all(&book).context("the earlier book cannot be removed")?;
    }
    let source = book.join("src");
    let documents = documents(&root)?;
    for document in &documents {
        let text = fs::read_to_string(root.join(document))?;
        let page = text.replace("README.md)", "index.md)").replace("README.md#", "index.md#");
        write(&source.join(page_of(document)), page.as_bytes())?;
        for link in links(&text) {
            let target = resolved(document, link);
            if root.join(&target).is_file() && !documents.contains(&target) {
                write(&source.join(&target), &fs::read(root.join(&target))?)?;
            }
        }
    }
    fs::write(source.join("SUMMARY.md"), summary(&root, &documents)?)?;
    fs::write(book.join("book.toml"), CONFIGURATION)?;
    child::output(Command::new(mdbook()?).arg("build").arg(&book))?;
    let pages = book.join("book");
    check_links(&pages)?;
    println!("{}", pages.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
    Ok(fs::write(path, bytes)?)
}

/// Returns the path of mdBook, which is built once.
fn mdbook() -> Result<PathBuf> {
    let is_usable = |program: &Path| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|version| version.stdout.starts_with(b"mdbook v0.5."))
    };
    let tools = cargo::target_directory().join("ci-tools");
    let built = tools.join("bin/mdbook");
    for program in [Path::new("mdbook"), &built] {
        if is_usable(program) {
            return Ok(program.to_owned());
        }
    }
    eprintln!("mdBook {MDBOOK_VERSION} is built");
    let features = ["--debug", "--no-default-features", "--features", "search"];
    Ok(cargo::install("mdbook", MDBOOK_VERSION, &features)?.join("mdbook"))
}

/// Returns the Markdown files of the repository.
fn documents(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut list = Command::new("git");
    let list = list.args(["ls-files", "*.md", ":!examples/content", ":!.github"]).current_dir(root);
    Ok(child::output(list)?.lines().map(PathBuf::from).collect())
}

/// Returns the page of a document. The page of a folder is its index, to which mdBook would rename
/// a README without the links to it.
fn page_of(document: &Path) -> PathBuf {
    if document.ends_with("README.md") {
        return document.with_file_name("index.md");
    }
    document.to_owned()
}

/// Returns the targets of the links of a document that may be files of the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let paths = targets.filter_map(|(target, _)| target.split('#').next());
    paths.filter(|path| !path.is_empty() && !path.contains(':'))
}

/// Returns the path in the repository of a link in a document.
fn resolved(document: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in document.with_file_name(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path
}

/// Returns mdBook's list of chapters.
fn summary(root: &Path, documents: &BTreeSet<PathBuf>) -> Result<String> {
    let mut left = documents.clone();
    let mut summary = "# Summary\n\n[Galley](index.md)\n".to_owned();
    left.remove(Path::new("README.md"));
    for index in ["docs/README.md", "docs/decisions/README.md"] {
        let text = fs::read_to_string(root.join(index))?;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix('#') {
                let heading = heading.trim_start_matches('#').trim();
                if !["Documentation", "Design"].contains(&heading) {
                    summary.push_str(&format!("\n# {heading}\n\n"));
                }
            }
            let link = line.split_once("| [").and_then(|(_, rest)| rest.split_once("]("));
            let Some((title, _)) = link else { continue };
            let path = links(line).next().map(|link| resolved(Path::new(index), link));
            if let Some(path) = path
                && left.remove(&path)
            {
                summary.push_str(&chapter(title, &path));
            }
        }
    }
    summary.push_str("\n# Project\n\n");
    for path in left {
        let text = fs::read_to_string(root.join(&path))?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.with_context(|| format!("{} has no title", path.display()))?;
        summary.push_str(&chapter(title, &path));
    }
    Ok(summary)
}

fn chapter(title: &str, document: &Path) -> String {
    format!("- [{title}]({})\n", page_of(document).display())
}

/// Returns true for a page of the book. The page for printing repeats all others, and that of
/// missing pages has absolute links.
fn is_page(path: &Path) -> bool {
    let is_html = path.extension().is_some_and(|extension| extension == "html");
    is_html && !["404.html", "print.html"].iter().any(|name| path.ends_with(name))
}

/// Fails with the links of pages to files that the book lacks.
fn check_links(pages: &Path) -> Result<()> {
    let mut folders = vec![pages.to_owned()];
    let mut missing = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_page(&path) {
                let text = fs::read_to_string(&path)?;
                for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next())
                {
                    let target = link.split(['#', '?']).next().unwrap_or_default();
                    // Code has attributes, too.
                    let is_file = !target.is_empty() && !target.contains([':', '$']);
                    if is_file && !folder.join(target).is_file() {
                        missing.insert(format!("{}: {link}", path.display()));
                    }
                }
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("links to nothing:\n{}", missing.into_iter().collect::<Vec<_>>().join("\n"))
}
