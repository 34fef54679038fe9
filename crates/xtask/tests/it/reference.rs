//! The reference of errors lists all codes and status words that the source has.

use std::collections::BTreeSet;
use std::fs;

use crate::style::product_files;

/// The expressions before the code of an issue in the source.
const BEFORE_CODES: [&str; 2] = ["Invalid::new(", "code: "];

/// The file with the status of each reason.
const TEXTS: &str = "../server/src/problem/texts.rs";

/// Returns a section of the reference.
fn section(heading: &str) -> String {
    let path = "../../docs/reference/api-errors.md";
    let reference = fs::read_to_string(path).expect("the reference is readable");
    let after = reference.split(&format!("\n## {heading}\n")).nth(1);
    let section = after.and_then(|after| after.split("\n## ").next());
    section.expect("the reference has the section").to_owned()
}

/// Returns a string literal at the beginning of a text, after white space.
fn literal(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('"')?.split('"').next()
}

#[test]
fn the_reference_lists_all_codes_of_issues() {
    let mut codes = BTreeSet::new();
    for path in product_files() {
        let text = fs::read_to_string(&path).expect("a source file is readable");
        for before in BEFORE_CODES {
            let after = text.split(before).skip(1);
            codes.extend(after.filter_map(literal).map(ToOwned::to_owned));
        }
    }
    assert!(codes.contains("slug_taken") && codes.len() > 25, "codes were not found: {codes:?}");
    let listed = section("Issue codes");
    codes.retain(|code| !listed.contains(&format!("`{code}`")));
    assert!(codes.is_empty(), "not in the reference: {codes:?}");
}

#[test]
fn the_reference_lists_all_status_words() {
    let texts = fs::read_to_string(TEXTS).expect("the texts of reasons are readable");
    // The lines of reasons: `    NotFound, NOT_FOUND, "The resource doesn't exist",`.
    let words = texts.lines().filter_map(|line| line.strip_prefix("    ")?.split(", ").nth(1));
    let is_word = |word: &&str| word.chars().all(|letter| letter == '_' || letter.is_uppercase());
    // The crate has the earlier name of the status 422.
    let words = words.filter(is_word).map(|word| word.replace("ABLE_ENTITY", "ABLE_CONTENT"));
    let mut words: BTreeSet<String> = words.collect();
    assert!(words.contains("BAD_REQUEST") && words.len() > 10, "words were not found: {words:?}");
    let listed = section("Status words");
    words.retain(|word| !listed.contains(&format!("`{word}`")));
    assert!(words.is_empty(), "not in the reference: {words:?}");
}
