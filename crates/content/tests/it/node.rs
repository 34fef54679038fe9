//! Compatibility with other programs: TipTap for trees, and JavaScript renderers for Markdown.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use galley_content::Tree;
use serde_json::{Value, json};

use crate::support;

/// Returns the folder with the scripts and their packages, which `cargo xtask test` installs.
fn scripts(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("GALLEY_TEST_CONTENT_REFERENCE").map(PathBuf::from);
    if folder.is_none() {
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "SKIPPED: {test}: GALLEY_TEST_CONTENT_REFERENCE is not set");
    }
    folder
}

/// Returns the documents of the corpus and of the fixtures.
fn documents(test: &str) -> Vec<(String, Tree)> {
    let mut files = vec![support::fixtures_dir().join("cases.json")];
    if let Some(corpus) = support::corpus_dir(test) {
        files.extend(["blog.json", "commonmark.json"].map(|file| corpus.join(file)));
    }
    let cases = files.iter().flat_map(support::read_cases);
    let mut documents: Vec<_> =
        cases.map(|case| (case.name, support::from_html(&case.html))).collect();
    for (number, markdown) in HARD.iter().enumerate() {
        documents.push((format!("hard {number}"), support::from_markdown(markdown)));
    }
    documents
}

/// Markdown texts that failed in other renderers, or might.
const HARD: [&str; 8] = [
    "@ann wrote *this* and `that`",
    "\\@ann\n\n- \\@bob **bold**\n- me@example.org",
    "> \\@carl: https://example.org/a_b_c and www.example.org",
    "a\\_b \\*c\\* \\[d\\](e) 1\\. f\n\n1\\. g",
    "| a | b |\n| - | - |\n| \\@x | `y|z` |",
    "- [x] done @ann\n- [ ] open",
    "# @title {\\#id}\n\ntext[^1]\n\n[^1]: note",
    "~~gone~~ &amp; &lt;b&gt; <u>u</u> H<sub>2</sub>O",
];

fn check(input: &Value, folder: &PathBuf) -> Vec<String> {
    let mut node = Command::new("node");
    node.arg("check.mjs").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = node.spawn().expect("node runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.to_string().as_bytes()).expect("node reads");
    drop(stdin);
    let output = child.wait_with_output().expect("node ends");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("a list of texts")
}

#[test]
fn tiptap_accepts_every_tree() {
    let Some(folder) = scripts("tiptap_accepts_every_tree") else { return };
    let documents = documents("tiptap_accepts_every_tree");
    let trees =
        documents.iter().map(|(name, tree)| json!({"name": name, "json": support::json(tree)}));
    let trees: Vec<_> = trees.collect();
    let wrong = check(&json!({"trees": trees, "markdown": []}), &folder);
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), trees.len());
    // The check detects an invalid tree.
    let invalid = json!({"type": "doc", "content": [{"type": "text", "text": "a"}]});
    let trees = json!([{"name": "invalid", "json": invalid}]);
    assert_eq!(check(&json!({"trees": trees, "markdown": []}), &folder).len(), 1);
}

#[test]
fn other_renderers_show_the_same_text() {
    let Some(folder) = scripts("other_renderers_show_the_same_text") else { return };
    let documents = documents("other_renderers_show_the_same_text");
    let markdown = documents.iter().map(|(name, tree)| {
        json!({"name": name, "markdown": tree.to_markdown(), "html": tree.to_html()})
    });
    let markdown: Vec<_> = markdown.collect();
    let wrong = check(&json!({"trees": [], "markdown": markdown}), &folder);
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), markdown.len());
    let other = json!([{"name": "other", "markdown": "a", "html": "<p>b</p>"}]);
    assert_eq!(check(&json!({"trees": [], "markdown": other}), &folder).len(), 2);
}
