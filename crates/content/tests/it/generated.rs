//! Properties of generated documents: random combinations of tags and texts, the same in each run.
//!
//! Some documents are generated as HTML and some as trees. A tree may contain texts that external
//! HTML rarely produces, such as white space at the end of a heading.

use galley_content::{ContentLimits, Tree};
use serde_json::{Value, json};

use crate::support;

const DOCUMENTS: u64 = 2_000;

const BLOCKS: &[&str] = &[
    "p",
    "div",
    "h1",
    "h2",
    "h3 style='white-space:pre'",
    "blockquote",
    "ul",
    "ol",
    "li",
    "pre",
    "table",
    "tr",
    "td",
    "th",
    "section",
    "ul data-type=taskList",
    "li data-type=taskItem data-checked=true",
    "dl",
    "dd",
    "figure",
    "ol start=4 type=a",
    "td align=right colspan=2",
    "span style='white-space:pre'",
    "div style='white-space:pre-wrap'",
];
const INLINES: &[&str] = &[
    "b",
    "i",
    "em",
    "strong",
    "s",
    "u",
    "code",
    "a href=x",
    "a href='/y?a=1&b=(2)' title=t",
    "mark",
    "mark data-color=red",
    "sub",
    "sup",
    "span",
    "span style='font-weight:bold'",
    "label",
    "a href='z w' target=_blank",
    "span style='font-style:normal'",
    "code class='language-x'",
];
const TEXTS: &[&str] = &[
    "a",
    "b c",
    " ",
    "\n",
    " x ",
    "d\n e",
    "&nbsp;",
    "é",
    "*x*",
    "1. y",
    "foo_bar",
    "&lt;",
    "&amp;",
    "  z",
    "#",
    "-",
    "!",
    "[k]",
    "`q`",
    "www.e.org",
    "\\",
    "_",
    "~~",
    "|",
    "x@y.org",
    "http://a.b/",
    "<br>",
    "<br> ",
    "<hr>",
    "<img src=i.png>",
    "<img src=i.png alt=t width=9>",
    "<!-- c -->",
    "<script>x</script>",
    "<input>",
    "&#x2028;",
    "&#x2028; ",
    " &#x2029;",
    "&#x2029; ",
    "\u{85}",
    "\u{85} ",
    " \u{85}",
    "x&#x3000; ",
    "<!-- --> ",
];

/// The parts of the texts of generated trees. They include everything that counts as white space in
/// HTML, Markdown, Unicode or JavaScript, except line ends.
const CHARACTERS: &[&str] = &[
    " ", " ", "a", "b c", "*", "_", "#", "\t", "\u{b}", "\u{c}", "\u{1c}", "\u{85}", "\u{a0}",
    "\u{1680}", "\u{180e}", "\u{2003}", "\u{200b}", "\u{2028}", "\u{2028}", "\u{2029}", "\u{202f}",
    "\u{205f}", "\u{3000}", "\u{feff}",
];
const MARKS: &[&str] = &["bold", "italic", "strike", "underline", "code", "superscript"];

/// A deterministic generator of numbers (an LCG with Knuth's constants).
pub(crate) struct DocumentGenerator(u64);

impl DocumentGenerator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    pub(crate) fn one_of(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.below(choices.len())]
    }

    /// Returns a text with white space of several kinds at any position.
    pub(crate) fn text(&mut self) -> String {
        (0..=self.below(4)).map(|_| self.one_of(CHARACTERS)).collect()
    }

    fn inline(&mut self) -> Value {
        let mut content = Vec::new();
        for _ in 0..=self.below(3) {
            let marks = match self.below(3) {
                0 => json!([{ "type": self.one_of(MARKS) }]),
                _ => json!([]),
            };
            content.push(match self.below(8) {
                0 => json!({ "type": "hardBreak", "marks": marks }),
                _ => json!({ "type": "text", "text": self.text(), "marks": marks }),
            });
        }
        json!(content)
    }

    pub(crate) fn block(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 | 1 => json!({ "type": "paragraph", "content": self.inline() }),
            2 => {
                let level = 1 + self.below(6);
                json!({ "type": "heading", "attrs": { "level": level }, "content": self.inline() })
            }
            3 => {
                let text = format!("{}{}", self.text(), self.one_of(&["", "\n", "\n\n", "\n "]));
                json!({ "type": "codeBlock", "content": [{ "type": "text", "text": text }] })
            }
            4 => json!({ "type": "blockquote", "content": self.blocks(depth - 1) }),
            5 => self.list("bulletList", "listItem", depth - 1),
            6 => self.list("taskList", "taskItem", depth - 1),
            _ => {
                let mut row = |cell: &str| {
                    let paragraph = json!({ "type": "paragraph", "content": self.inline() });
                    let cell = json!({ "type": cell, "content": [paragraph] });
                    json!({ "type": "tableRow", "content": [cell] })
                };
                json!({ "type": "table", "content": [row("tableHeader"), row("tableCell")] })
            }
        }
    }

    pub(crate) fn blocks(&mut self, depth: usize) -> Value {
        (0..=self.below(2)).map(|_| self.block(depth)).collect()
    }

    /// Returns a list whose items begin with a paragraph, as the schema requires.
    fn list(&mut self, list: &str, item: &str, depth: usize) -> Value {
        let mut items = Vec::new();
        for _ in 0..=self.below(2) {
            let mut content = vec![json!({ "type": "paragraph", "content": self.inline() })];
            content.extend((0..self.below(2)).map(|_| self.block(depth)));
            items.push(json!({ "type": item, "content": content }));
        }
        json!({ "type": list, "content": items })
    }

    pub(crate) fn html(&mut self, depth: usize) -> String {
        let mut html = String::new();
        for _ in 0..=self.below(4) {
            if depth == 0 || self.below(2) == 0 {
                html.push_str(self.one_of(TEXTS));
                continue;
            }
            let choices = if self.below(3) == 0 { INLINES } else { BLOCKS };
            let tag = self.one_of(choices);
            let inside = self.html(depth - 1);
            html.push_str(&format!("<{tag}>{inside}"));
            if self.below(7) > 0 {
                let name = tag.split(' ').next().unwrap_or(tag);
                html.push_str(&format!("</{name}>"));
            }
        }
        html
    }
}

pub(crate) fn documents() -> impl Iterator<Item = String> {
    (0..DOCUMENTS).map(|seed| {
        let mut numbers = DocumentGenerator(seed);
        let depth = 1 + numbers.below(5);
        numbers.html(depth)
    })
}

fn trees() -> impl Iterator<Item = Tree> {
    (0..DOCUMENTS).map(|seed| {
        let mut numbers = DocumentGenerator(seed);
        let depth = numbers.below(3);
        let doc = json!({ "type": "doc", "content": numbers.blocks(depth) });
        Tree::from_json(&doc.to_string()).expect("a valid tree")
    })
}

#[test]
fn every_tree_is_valid_against_the_schema() {
    for html in documents() {
        let tree = support::from_html(&html);
        assert_eq!(Tree::from_json(&tree.to_json()), Ok(tree), "{html}");
    }
}

#[test]
fn documents_survive_a_round_trip_through_html() {
    for html in documents() {
        let tree = support::from_html(&html);
        let again = Tree::from_html(&tree.to_html(), &ContentLimits::default());
        assert_eq!(again.as_ref(), Ok(&tree), "{html}");
    }
}

#[test]
fn a_tree_with_white_space_anywhere_survives_html() {
    let differing: Vec<String> = trees()
        .filter_map(|tree| {
            let html = tree.to_html();
            let difference = support::difference(&support::from_html(&html), &tree)?;
            Some(format!("{html:?}\n  {difference}"))
        })
        .collect();
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn a_tree_with_white_space_anywhere_survives_markdown() {
    let differing: Vec<String> = trees()
        .filter_map(|tree| {
            let markdown = tree.to_markdown();
            let difference = support::difference(&support::from_markdown(&markdown), &tree)?;
            Some(format!("{markdown:?}\n  {difference}"))
        })
        .collect();
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn documents_survive_a_round_trip_through_markdown() {
    let mut differing = Vec::new();
    for html in documents() {
        let tree = support::from_html(&html);
        let markdown = tree.to_markdown();
        if let Some(difference) = support::difference(&support::from_markdown(&markdown), &tree) {
            differing.push(format!("{html:?}\n  {markdown:?}\n  {difference}"));
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}
