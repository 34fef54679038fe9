//! White space in texts survives HTML and Markdown, at any position and of any kind.

use galley_content::Tree;
use serde_json::{Value, json};

use crate::support;

/// Texts that parsers could treat as blank, trim or collapse. Line ends are excluded, as they
/// become line breaks outside of a code block.
const TEXTS: &[&str] = &[
    " ",
    "  ",
    "\t",
    "\u{c}",
    "\u{b}",
    "a ",
    " a",
    "a  b",
    "a\u{2028}",
    "a\u{2028} ",
    "a \u{2028}",
    "\u{2028} a",
    "\u{2028}",
    " \u{2028} ",
    "a\u{2029} ",
    "\u{2029}",
    "a\u{85} ",
    "\u{85}",
    "\u{85} a",
    "a\u{a0} ",
    "a\u{3000} ",
    "\u{feff} ",
    "a\u{b} ",
    "\u{b}a\u{b}",
];

fn tree(content: &Value) -> Tree {
    let doc = json!({ "type": "doc", "content": content });
    Tree::from_json(&doc.to_string()).expect("a valid tree")
}

/// Returns trees with the text in each kind of textblock, and in each kind of node around a
/// textblock.
fn trees(text: &str) -> Vec<Tree> {
    let plain = json!({ "type": "text", "text": text });
    let bold = json!({ "type": "text", "text": text, "marks": [{ "type": "bold" }] });
    let hard_break = json!({ "type": "hardBreak" });
    let paragraph = json!({ "type": "paragraph", "content": [plain] });
    let heading = json!({ "type": "heading", "content": [plain] });
    let within = |outer: &str, inner: &str, block: &Value| {
        let inner = json!({ "type": inner, "content": [block] });
        json!([{ "type": outer, "content": [inner] }])
    };
    let mut trees = vec![
        tree(&json!([{ "type": "codeBlock", "content": [plain] }])),
        tree(&within("blockquote", "blockquote", &heading)),
        tree(&within("bulletList", "listItem", &paragraph)),
        tree(&within("orderedList", "listItem", &paragraph)),
        tree(&within("taskList", "taskItem", &paragraph)),
        tree(
            &json!([{ "type": "table", "content": within("tableRow", "tableHeader", &paragraph) }]),
        ),
        tree(&json!([{ "type": "table", "content": within("tableRow", "tableCell", &heading) }])),
    ];
    for textblock in ["paragraph", "heading"] {
        for content in [
            json!([plain]),
            json!([bold]),
            json!([plain, bold]),
            json!([bold, plain]),
            json!([plain, hard_break, plain]),
            json!([hard_break, plain]),
            json!([plain, hard_break]),
        ] {
            let block = json!({ "type": textblock, "content": content });
            trees.push(tree(&json!([block, block])));
        }
    }
    trees
}

#[track_caller]
fn assert_survives(way: &str, there_and_back: impl Fn(&Tree) -> (String, Tree)) {
    for text in TEXTS {
        for tree in trees(text) {
            let (written, again) = there_and_back(&tree);
            assert_eq!(again, tree, "{text:?} by {way} as {written:?}");
        }
    }
}

#[test]
fn white_space_of_every_textblock_survives_html() {
    assert_survives("HTML", |tree| {
        let html = tree.to_html();
        let again = support::from_html(&html);
        (html, again)
    });
}

#[test]
fn white_space_of_every_textblock_survives_markdown() {
    assert_survives("Markdown", |tree| {
        let markdown = tree.to_markdown();
        let again = support::from_markdown(&markdown);
        (markdown, again)
    });
}

#[test]
fn a_separate_trailing_space_protects_the_text_from_trimming() {
    let heading =
        |text: &str| json!([{ "type": "heading", "content": [{ "type": "text", "text": text }] }]);
    assert_eq!(
        tree(&heading("a\u{2028} ")).to_html(),
        "<h1 style=\"white-space: pre-wrap\">a\u{2028} <!-- --> </h1>"
    );
    assert_eq!(tree(&heading("a\u{2028}")).to_html(), "<h1>a\u{2028}</h1>");
}

#[test]
fn external_html_loses_a_space_at_the_end_of_a_block() {
    for html in ["<h1>a&#x2028; </h1>", "<h1 style='white-space: pre'>a&#x2028; </h1>"] {
        assert_eq!(support::from_html(html).to_html(), "<h1>a\u{2028}</h1>", "{html}");
    }
}

#[test]
fn rendered_white_space_has_no_warning() {
    for text in TEXTS {
        for tree in trees(text) {
            let html = tree.to_html();
            let limits = galley_content::ContentLimits::default();
            let (_, losses) = Tree::from_html_with_warnings(&html, &limits).expect("our own HTML");
            assert_eq!(losses, [], "{html:?}");
        }
    }
}
