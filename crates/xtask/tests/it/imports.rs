//! No file imports a file that imports it, directly or indirectly.
//!
//! File A imports file B if a path in A leads to B: in a `use`, or in the code itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// A module of a crate: its path from the crate's root, and its file.
struct Module {
    file: PathBuf,
    /// The modules that it declares.
    children: BTreeSet<String>,
    source: syn::File,
}

/// The modules of a crate by their paths.
type Modules = BTreeMap<Vec<String>, Module>;

/// Reads a file and the files of the modules that it declares.
fn read(path: Vec<String>, file: &Path, modules: &mut Modules) {
    let text = fs::read_to_string(file).expect("a source file is readable");
    let source = syn::parse_file(&text).expect("a source file is Rust");
    let name = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let directory = file.parent().expect("a directory");
    let below = match name {
        "lib" | "main" | "mod" => directory.to_owned(),
        name => directory.join(name),
    };
    let mut children = BTreeSet::new();
    for item in &source.items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() {
            continue;
        }
        let child = module.ident.to_string();
        let candidates = [below.join(format!("{child}.rs")), below.join(&child).join("mod.rs")];
        if let Some(file) = candidates.into_iter().find(|file| file.is_file()) {
            let mut path = path.clone();
            path.push(child.clone());
            read(path, &file, modules);
        }
        children.insert(child);
    }
    modules.insert(path, Module { file: file.to_owned(), children, source });
}

/// A visitor that collects the paths of a file.
struct Paths {
    found: BTreeSet<Vec<String>>,
    /// The number of enclosing inline modules, such as `tests`, for which `super` is the file
    /// itself.
    depth: usize,
}

impl Paths {
    fn add(&mut self, mut path: Vec<String>) {
        let mut ups = self.depth;
        while ups > 0 && path.first().is_some_and(|first| first == "super") {
            path.remove(0);
            ups -= 1;
        }
        if ups == self.depth || ups == 0 {
            self.found.insert(path);
        }
    }

    fn add_tree(&mut self, mut prefix: Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.add_tree(prefix, &path.tree);
            }
            UseTree::Name(name) => {
                prefix.push(name.ident.to_string());
                self.add(prefix);
            }
            UseTree::Rename(rename) => {
                prefix.push(rename.ident.to_string());
                self.add(prefix);
            }
            UseTree::Glob(_) => self.add(prefix),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(prefix.clone(), tree);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(Vec::new(), &item.tree);
    }

    /// Ignores `pub(crate)`, as it is no import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }
}

/// Returns the module that a path in another module leads to.
fn target(from: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let (mut base, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (from.to_vec(), &path[1..]),
        "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
        first if modules[from].children.contains(first) && path.len() > 1 => (from.to_vec(), path),
        _ => return None,
    };
    while rest.first().is_some_and(|part| part == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    for part in rest {
        base.push(part.clone());
        if !modules.contains_key(&base) {
            base.pop();
            break;
        }
    }
    Some(base).filter(|base| base != from)
}

/// Returns the imported modules of each module.
fn imports(modules: &Modules) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let of = |(path, module): (&Vec<String>, &Module)| {
        let mut paths = Paths { found: BTreeSet::new(), depth: 0 };
        paths.visit_file(&module.source);
        let targets = paths.found.iter().filter_map(|found| target(path, found, modules));
        (path.clone(), targets.collect())
    };
    modules.iter().map(of).collect()
}

/// Returns the sets of modules that import each other.
fn cycles(imports: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Vec<BTreeSet<Vec<String>>> {
    let reachable = |from: &Vec<String>| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from.clone()];
        while let Some(next) = open.pop() {
            for target in &imports[&next] {
                if seen.insert(target.clone()) {
                    open.push(target.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> =
        imports.keys().map(|from| (from.clone(), reachable(from))).collect();
    let mut sets: BTreeSet<BTreeSet<Vec<String>>> = BTreeSet::new();
    for (from, targets) in &reached {
        if targets.contains(from) {
            let both = targets.iter().filter(|target| reached[*target].contains(from));
            sets.insert(both.cloned().collect());
        }
    }
    sets.into_iter().collect()
}

/// Returns the crates' folders.
fn crates() -> Vec<PathBuf> {
    // Tests start in the folder of their package.
    let entries = fs::read_dir("..").expect("the crates' folder");
    let mut crates: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    crates.retain(|path| path.join("Cargo.toml").is_file());
    crates.sort();
    crates
}

#[test]
fn no_file_imports_a_file_that_imports_it() {
    let mut ties = Vec::new();
    for folder in crates() {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for root in ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root)) {
            if !root.is_file() {
                continue;
            }
            let mut modules = Modules::new();
            read(Vec::new(), &root, &mut modules);
            let imports = imports(&modules);
            for cycle in cycles(&imports) {
                let file = |path: &Vec<String>| {
                    let file =
                        modules[path].file.strip_prefix(&folder).unwrap_or(&modules[path].file);
                    file.display().to_string()
                };
                let mut text = format!("{name}: {} files", cycle.len());
                for from in &cycle {
                    for to in imports[from].intersection(&cycle) {
                        text.push_str(&format!("\n    {} -> {}", file(from), file(to)));
                    }
                }
                ties.push(text);
            }
        }
    }
    assert!(ties.is_empty(), "{}", ties.join("\n"));
}
