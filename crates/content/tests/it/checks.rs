//! What holds for any input whatever: used by the fuzz targets, and by the tests that replay what
//! they found.

#![allow(dead_code, reason = "each fuzz target uses its own check alone")]

use galley_content::{ContentError, Limits, Tree};

/// Levels below the document.
const DEPTH_MAX: usize = 100;

/// HTML of any bytes makes a tree, or is refused for its depth or complexity.
pub(crate) fn html(bytes: &[u8]) {
    let html = String::from_utf8_lossy(bytes);
    let tree = match Tree::from_html(&html, &Limits::default()) {
        Ok(tree) => tree,
        Err(ContentError::TooDeep | ContentError::TooComplex) => return,
        Err(error) => panic!("{error}"),
    };
    check(&tree);
    let (again, losses) =
        Tree::from_html_with_losses(&html, &Limits::default()).expect("it was read before");
    assert!(again == tree, "asking for losses changes the tree");
    assert!(losses.len() <= 500 && losses.iter().all(|loss| loss.count > 0));
}

/// Markdown of any bytes makes a tree, or is refused.
pub(crate) fn markdown(bytes: &[u8]) {
    let markdown = String::from_utf8_lossy(bytes);
    if let Ok(tree) = Tree::from_markdown(&markdown, &Limits::default()) {
        check(&tree);
    }
}

/// JSON of any bytes is a valid tree, or is refused.
pub(crate) fn json(bytes: &[u8]) {
    let json = String::from_utf8_lossy(bytes);
    if let Ok(tree) = Tree::from_json(&json) {
        check(&tree);
    }
}

/// A tree is valid against the schema and safe, which reading it back checks; it is not too deep, and
/// everything can be made of it.
fn check(tree: &Tree) {
    let json = tree.to_json();
    let back = Tree::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert!(back == *tree, "{json}");
    assert!(depth(&json) <= DEPTH_MAX + 1, "{json}");
    check_rendered(&tree.to_html());
    let _ = tree.to_markdown();
    let _ = tree.to_text();
}

/// A browser finds nothing in what is rendered that isn't in the schema: no element, attribute or
/// address got in by leaving a text or a value.
fn check_rendered(html: &str) {
    let Ok((_, losses)) = Tree::from_html_with_losses(html, &Limits::default()) else { return };
    assert!(losses.is_empty(), "{losses:?} in {html}");
}

/// How deep a tree is, by its JSON: two brackets for each level.
fn depth(json: &str) -> usize {
    let (mut depth, mut most, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' if !in_text => {
                depth += 1;
                most = most.max(depth);
            }
            b']' if !in_text => depth -= 1,
            _ => {}
        }
    }
    most
}
