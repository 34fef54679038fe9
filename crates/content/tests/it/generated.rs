//! Properties of documents nobody wrote: tags and texts thrown together, the same ones each time.
//!
//! Headings are left out where white space is kept: a space at the end of one is the one thing that
//! HTML has no way to keep (a paragraph's can be kept by other means).

use galley_content::{Limits, Tree};

use crate::support;

const DOCUMENTS: u64 = 2_000;

const BLOCKS: &[&str] = &[
    "p",
    "div",
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
];

/// A small generator of numbers (an LCG with Knuth's constants): the tests must not depend on luck.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    fn one_of(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.below(choices.len())]
    }

    fn html(&mut self, depth: usize) -> String {
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

fn documents() -> impl Iterator<Item = String> {
    (0..DOCUMENTS).map(|seed| {
        let mut numbers = Numbers(seed);
        let depth = 1 + numbers.below(5);
        numbers.html(depth)
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
fn html_gives_the_same_tree_again() {
    for html in documents() {
        let tree = support::from_html(&html);
        let again = Tree::from_html(&tree.to_html(), &Limits::default());
        assert_eq!(again.as_ref(), Ok(&tree), "{html}");
    }
}

#[test]
fn markdown_gives_the_same_tree_again() {
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
