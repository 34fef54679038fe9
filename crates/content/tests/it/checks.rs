//! Invariants of any input, for the fuzz targets and for the tests that replay their findings.

#![allow(dead_code, reason = "each fuzz target uses its own check alone")]

use galley_content::{ContentError, ContentLimits, Tree};

/// The limit on levels below the document.
const DEPTH_MAX: usize = 100;

/// Checks that HTML of any bytes becomes a tree, or is rejected for its depth or complexity.
pub(crate) fn html(bytes: &[u8]) {
    let html = String::from_utf8_lossy(bytes);
    let tree = match Tree::from_html(&html, &ContentLimits::default()) {
        Ok(tree) => tree,
        Err(ContentError::TooDeep | ContentError::TooComplex) => return,
        Err(error) => panic!("{error}"),
    };
    check(&tree);
    let (again, losses) = Tree::from_html_with_warnings(&html, &ContentLimits::default())
        .expect("it was read before");
    assert!(again == tree, "asking for losses changes the tree");
    assert!(losses.len() <= 500 && losses.iter().all(|loss| loss.count > 0));
}

/// Checks that Markdown of any bytes becomes a tree, or is rejected.
pub(crate) fn markdown(bytes: &[u8]) {
    let markdown = String::from_utf8_lossy(bytes);
    if let Ok(tree) = Tree::from_markdown(&markdown, &ContentLimits::default()) {
        check(&tree);
    }
}

/// Checks that JSON of any bytes is a valid tree, or is rejected.
pub(crate) fn json(bytes: &[u8]) {
    let json = String::from_utf8_lossy(bytes);
    let tree = Tree::from_json(&json);
    if let Ok(tree) = &tree {
        check(tree);
        assert_eq!(Tree::from_json_strict(&tree.to_json()).as_ref(), Ok(tree), "{json}");
    }
    // A strict read rejects more, and accepts nothing else.
    if let Ok(strict) = Tree::from_json_strict(&json) {
        assert_eq!(tree.as_ref(), Ok(&strict), "{json}");
    }
}

/// Checks that a tree is valid against the schema and safe, by parsing it back. It must not be too
/// deep, and every format must render it.
fn check(tree: &Tree) {
    let json = tree.to_json();
    let back = Tree::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert!(back == *tree, "{json}");
    assert!(depth(&json) <= DEPTH_MAX + 1, "{json}");
    check_rendered(&tree.to_html());
    let _ = tree.to_markdown();
    let _ = tree.to_text();
}

/// Checks that rendered HTML contains only the schema: no text or value escapes into an element,
/// attribute or URL.
fn check_rendered(html: &str) {
    let Ok((_, losses)) = Tree::from_html_with_warnings(html, &ContentLimits::default()) else {
        return;
    };
    assert!(losses.is_empty(), "{losses:?} in {html}");
}

/// Returns the depth of a tree, from its JSON with one list per level.
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
