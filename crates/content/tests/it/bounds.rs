//! Inputs that are constructed to be large, deep or slow. Each is parsed on a thread with a small
//! stack.

use std::time::{Duration, Instant};

use galley_content::{ContentError, ContentLimits, Tree};

use crate::support;

const MIB: usize = 1024 * 1024;

/// A generous limit, as tests run unoptimised and in parallel.
const TIMEOUT: Duration = Duration::from_mins(1);

fn read(html: String) -> Result<Tree, ContentError> {
    let start = Instant::now();
    let tree = on_stack(512 * 1024, move || {
        let tree = Tree::from_html(&html, &ContentLimits::default())?;
        // A parsed tree can always be rendered, serialised and dropped.
        drop((tree.to_html(), tree.to_markdown(), tree.to_text()));
        Ok::<_, ContentError>((tree.to_json(), tree))
    });
    let (json, tree) = tree?;
    // The JSON parser recurses for each of some 200 levels that the limit on the tree's depth
    // allows. Server threads have this stack size for it.
    on_stack(2 * 1024 * 1024, move || assert!(Tree::from_json(&json).is_ok()));
    assert!(start.elapsed() < TIMEOUT, "took {:?}", start.elapsed());
    Ok(tree)
}

pub(crate) fn on_stack<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let thread = std::thread::Builder::new().stack_size(size).spawn(work);
    thread.expect("a thread").join().expect("no panic")
}

/// Returns `count` repetitions of a text, each with its number.
pub(crate) fn numbered(count: usize, before: &str, behind: &str) -> String {
    (0..count)
        .flat_map(|number| [before.to_owned(), number.to_string(), behind.to_owned()])
        .collect()
}

#[test]
fn a_hundred_thousand_unclosed_bold_elements_parse() {
    let tree = read(format!("{}x", "<b>".repeat(100_000))).expect("a document");
    assert_eq!(tree.to_html(), "<p><strong>x</strong></p>");
}

#[test]
fn nested_inline_elements_do_not_count_as_depth() {
    let html = format!("{}x", "<span style='font-weight:bold'><i>".repeat(20_000));
    let tree = read(html).expect("a document");
    assert_eq!(tree.to_html(), "<p><strong><em>x</em></strong></p>");
}

#[test]
fn blocks_may_nest_to_the_limit_and_no_further() {
    assert!(read(format!("{}x", "<div>".repeat(256))).is_ok());
    for html in
        ["<div>", "<section><p>", "<blockquote>", "<ul><li>", "<ol><li><p>", "<table><tr><td>"]
    {
        let error = read(html.repeat(100_000)).expect_err(html);
        assert_eq!(error, ContentError::TooDeep, "{html}");
    }
    assert_eq!(read("<div>".repeat(257)), Err(ContentError::TooDeep));
}

#[test]
fn trees_may_nest_to_the_limit_and_no_further() {
    assert!(read(format!("{}x", "<blockquote>".repeat(98))).is_ok());
    assert_eq!(read(format!("{}x", "<blockquote>".repeat(99))), Err(ContentError::TooDeep));
    assert!(read("<ul><li>x".repeat(49)).is_ok());
    assert_eq!(read("<ul><li>x".repeat(50)), Err(ContentError::TooDeep));
}

#[test]
fn formatting_multiplied_by_paragraphs_is_too_complex() {
    let open = numbered(2_000, "<b id=", ">");
    // The end of each paragraph closes them, and the next paragraph reopens them all.
    let html = format!("<p>{open}{}", "<p>x".repeat(100_000));
    assert_eq!(read(html), Err(ContentError::TooComplex));
    // Outside of the paragraphs they are opened once.
    assert!(read(format!("{open}{}", "<p>x".repeat(10_000))).is_ok());
}

#[test]
fn end_tags_that_search_the_whole_stack_are_too_complex() {
    let html = format!("{}{}", "<span>".repeat(100_000), "</p>".repeat(300_000));
    assert_eq!(read(html), Err(ContentError::TooComplex));
}

#[test]
fn floods_of_attributes_are_too_complex() {
    let attributes = numbered(100_000, " a", "");
    for tag in [
        format!("<p{attributes}>"),
        format!("<p x=\">\" {attributes}"),
        format!("<p x='\"'{attributes}>"),
    ] {
        assert_eq!(read(format!("x{tag}y")), Err(ContentError::TooComplex));
    }
    let words = "many words in a row, ".repeat(10_000);
    assert!(read(format!("<p title=\"{words}\">{words}</p>a < b {words}")).is_ok());
}

#[test]
fn two_mebibytes_of_any_input_are_parsed_in_time() {
    let text = read("word ".repeat(2 * MIB / 5)).expect("a document");
    assert_eq!(text.to_text().len(), 2 * MIB / 5 * 5);
    for piece in [
        "<p>",
        "<br>",
        "&amp;",
        "&#0;",
        "<hr>x",
        "<td>",
        "<b>x</b>",
        "<!---->",
        "\u{0}",
        "é",
        "</p>",
        "<li>x",
        "<a href=x>y",
        "<a>",
        "<table>",
        "<p>x</p>\n",
        "<i><p>",
        "<h1>",
        "<select>",
        "<svg>",
        "<img src=x>",
        "<pre>\n",
        "<tr>",
        "<ruby><rt>",
        "<nobr>",
        "<button>",
        "</b><b></i><i>",
    ] {
        // Either result is valid, within the time.
        let _ = read(piece.repeat(2 * MIB / piece.len() / 8));
    }
    let long = format!("<a href=\"{}\">x</a>", "y".repeat(2 * MIB));
    assert!(read(long).is_ok());
}

#[test]
fn the_size_of_output_is_limited() {
    // Unused columns are not rendered, in one table or in many.
    for html in [
        format!("<table><tr>{}", "<td colspan=1000>x".repeat(500)),
        "<table><tr><td colspan=1000>x</table>".repeat(500),
    ] {
        let tree = read(html.clone()).expect("a document");
        for made in [tree.to_html(), tree.to_markdown()] {
            assert!(made.len() < html.len() * 40, "{} of {}", made.len(), html.len());
        }
    }
    // Attributes that occur once in HTML are repeated with each of their texts in the JSON.
    let address = "a".repeat(30_000);
    let html = format!("<a href={address}>{}", "x<b>y</b>".repeat(3_000));
    let tree = Tree::from_html(&html, &ContentLimits::default()).expect("a document");
    assert_eq!(tree.to_json_within(16 * MIB), None);
    let small = Tree::from_html("<p>x", &ContentLimits::default()).expect("a document");
    let json = small.to_json();
    assert_eq!(small.to_json_within(json.len()).as_ref(), Some(&json));
    assert_eq!(small.to_json_within(json.len() - 1), None);
}

#[test]
fn different_open_formatting_is_too_complex() {
    for html in [
        numbered(20_000, "<b id=", ">"),
        numbered(20_000, "<font color=", ">x"),
        numbered(90_000, "<b id=", ">") + &"<p>".repeat(10_000),
    ] {
        assert_eq!(read(html), Err(ContentError::TooComplex));
    }
    assert!(read(numbered(50, "<b id=", ">")).is_ok());
    assert!(read(numbered(20_000, "<font color=", ">x</font>")).is_ok());
    // Columns are counted once, even in a cell with a table.
    let inner = "<td><table><col><td></table>".repeat(10_000);
    assert!(read(format!("<table><col width=5><tr>{inner}")).is_ok());
}

#[test]
fn reopened_large_attributes_are_too_complex() {
    let value = "a".repeat(70_000);
    let names = numbered(900, "a", " ");
    for html in [
        format!("<p><b style='{value}'>{}", "<p>x".repeat(10_000)),
        format!("<p><a href='{value}'>{}", "<p>x".repeat(10_000)),
        format!("<p><b {names}>{}", "<p>x".repeat(10_000)),
    ] {
        assert_eq!(read(html), Err(ContentError::TooComplex));
    }
    // In a few paragraphs, the cost is low.
    assert!(read(format!("<p><b style='{value}'>{}", "<p>x".repeat(10))).is_ok());
}

#[test]
fn wide_tables_are_read_in_time() {
    let columns = "<col width=10>".repeat(20_000);
    let html = format!("<table><colgroup>{columns}</colgroup><tr>{}", "<td>x".repeat(20_000));
    assert!(read(html).is_ok());
    let spans = "<tr>".to_owned() + &"<td colspan=1000>".repeat(1_000);
    assert!(read(format!("<table>{spans}")).is_ok());
}

#[test]
fn deeply_nested_markdown_is_parsed_in_time() {
    for piece in [">", "- ", "1. ", "*", "_a", "[", "![", "`", "<b>", "~~", "> - "] {
        let markdown = piece.repeat(20_000);
        let start = Instant::now();
        let _ = Tree::from_markdown(&markdown, &ContentLimits::default());
        assert!(start.elapsed() < TIMEOUT, "{piece} took {:?}", start.elapsed());
    }
}

#[test]
fn limits_can_be_lowered() {
    let limits = ContentLimits { tree_depth: 3, ..ContentLimits::default() };
    assert!(Tree::from_html("<blockquote>x", &limits).is_ok());
    let deeper = Tree::from_html("<blockquote><blockquote>x", &limits);
    assert_eq!(deeper, Err(ContentError::TooDeep));
    assert!(support::from_html("<blockquote><blockquote>x").to_html().contains('x'));
}
