//! The location of test data, and the comparison of trees.

use std::io::Write;
use std::path::PathBuf;

use galley_content::{ContentLimits, Tree};
use serde_json::Value;

/// A document with the reference implementation's tree.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) html: String,
    pub(crate) tree: Value,
    /// The reference's rendering of the tree as HTML, if recorded.
    pub(crate) rendered: Option<String>,
}

pub(crate) fn from_html(html: &str) -> Tree {
    Tree::from_html(html, &ContentLimits::default()).expect("an ordinary document")
}

pub(crate) fn from_markdown(markdown: &str) -> Tree {
    Tree::from_markdown(markdown, &ContentLimits::default()).expect("an ordinary document")
}

pub(crate) fn json(tree: &Tree) -> Value {
    parse_json(&tree.to_json())
}

/// Parses JSON of any depth.
pub(crate) fn parse_json(json: &str) -> Value {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.disable_recursion_limit();
    let mut values = deserializer.into_iter();
    values.next().expect("JSON").expect("valid JSON")
}

pub(crate) fn read_cases(path: &PathBuf) -> Vec<Case> {
    let text = std::fs::read_to_string(path).expect("the fixture file is readable");
    // A highlight without a color has null here: README.md, Differences from TipTap.
    let text = text.replace("{\"color\":\"\"}", "{\"color\":null}");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("the fixture file is JSON");
    let string = |case: &Value, key: &str| case[key].as_str().expect("a string").to_owned();
    cases
        .iter()
        .map(|case| Case {
            name: string(case, "name"),
            html: string(case, "html"),
            tree: case["tree"].clone(),
            rendered: case["rendered"].as_str().map(str::to_owned),
        })
        .collect()
}

/// Returns the folder with the corpus, which is not part of the repository.
///
/// It is `GALLEY_CORPUS_DIR`, or a folder next to the workspace. If it is missing, prints that the
/// test is skipped.
pub(crate) fn corpus_dir(test: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/content");
    let dir = std::env::var("GALLEY_CORPUS_DIR").unwrap_or_else(|_| beside.to_owned());
    let dir = PathBuf::from(dir);
    if dir.is_dir() {
        return Some(dir);
    }
    // Bypasses the test runner, which captures the output of passing tests.
    let mut stderr = std::io::stderr();
    let _ =
        writeln!(stderr, "SKIPPED: {test}: no corpus at {}; set GALLEY_CORPUS_DIR", dir.display());
    None
}

pub(crate) fn fixtures_dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

/// Returns the names of the cases whose two trees differ, each with the first difference.
pub(crate) fn differing(cases: &[Case], trees: impl Fn(&Case) -> (Tree, Tree)) -> Vec<String> {
    let differences = cases.iter().filter_map(|case| {
        let (found, expected) = trees(case);
        let difference = difference(&found, &expected)?;
        Some(format!("{}: {difference}", case.name))
    });
    differences.collect()
}

/// Returns the first difference of two trees, or `None` if they are equal.
pub(crate) fn difference(found: &Tree, expected: &Tree) -> Option<String> {
    let (found, expected) = (found.to_json(), expected.to_json());
    let same = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
    if same == found.len() && same == expected.len() {
        return None;
    }
    let excerpt = |json: &str| {
        let from = json.floor_char_boundary(same.saturating_sub(80));
        let to = json.floor_char_boundary((same + 120).min(json.len()));
        json[from..to].to_owned()
    };
    Some(format!("found …{}… instead of …{}…", excerpt(&found), excerpt(&expected)))
}
