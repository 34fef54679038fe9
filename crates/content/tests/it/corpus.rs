//! Real documents, compared with the reference implementation's trees of them.

use crate::support::{self, Case};

/// The fraction of documents whose tree must equal the reference's.
const EQUAL_MIN: f64 = 1.0;

/// Documents that differ from the reference, with the reasons.
const KNOWN_DIFFERENCES: &[(&str, &str)] = &[];

fn corpus(test: &str) -> Vec<Case> {
    let Some(dir) = support::corpus_dir(test) else { return Vec::new() };
    let files = ["blog.json", "commonmark.json"];
    files.iter().flat_map(|file| support::read_cases(&dir.join(file))).collect()
}

#[test]
fn trees_of_the_corpus_equal_the_reference() {
    let cases = corpus("trees_of_the_corpus_equal_the_reference");
    let differing: Vec<&str> = cases
        .iter()
        .filter(|case| support::json(&support::from_html(&case.html)) != case.tree)
        .map(|case| case.name.as_str())
        .collect();
    let equal = cases.len() - differing.len();
    println!("{equal} of {} equal; differing: {differing:?}", cases.len());
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let share = if cases.is_empty() { 1.0 } else { equal as f64 / cases.len() as f64 };
    assert!(share >= EQUAL_MIN, "only {share} equal; differing: {differing:?}");
    let unknown: Vec<_> = differing
        .iter()
        .filter(|name| KNOWN_DIFFERENCES.iter().all(|(known, _)| known != *name))
        .collect();
    assert!(unknown.is_empty(), "differences without a reason: {unknown:?}");
}

#[test]
fn rendered_html_of_the_corpus_parses_to_the_same_tree() {
    let cases = corpus("rendered_html_of_the_corpus_parses_to_the_same_tree");
    let differing = support::differing(&cases, |case| {
        let tree = support::from_html(&case.html);
        (support::from_html(&tree.to_html()), tree)
    });
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn stored_trees_of_the_corpus_read_back() {
    for case in corpus("stored_trees_of_the_corpus_read_back") {
        let tree = support::from_html(&case.html);
        let read = galley_content::Tree::from_json(&tree.to_json());
        assert_eq!(read.as_ref(), Ok(&tree), "{}", case.name);
    }
}
