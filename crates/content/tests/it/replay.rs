//! Replays inputs that the fuzz targets found, and that cover different parts of the code.

use crate::checks;
use crate::support;

fn replay(target: &str, check: fn(&[u8])) {
    let path = support::fixtures_dir().join(format!("fuzz-{target}.json"));
    let text = std::fs::read_to_string(&path).expect("the corpus is there");
    let inputs: Vec<String> = serde_json::from_str(&text).expect("it is a list of texts");
    assert!(inputs.len() > 50, "{} inputs", inputs.len());
    for input in &inputs {
        check(input.as_bytes());
    }
}

#[test]
fn html_invariants_hold_for_the_fuzz_corpus() {
    replay("html", checks::html);
}

#[test]
fn markdown_invariants_hold_for_the_fuzz_corpus() {
    replay("markdown", checks::markdown);
}

#[test]
fn json_invariants_hold_for_the_fuzz_corpus() {
    replay("json", checks::json);
}
