//! The speed of the conversion from HTML to a tree, relative to html5ever alone, and the cost of
//! the worst inputs of the conversion and of diffs.
//!
//! ```sh
//! cargo bench -p galley-content
//! ```
//!
//! The documents are the ones in `GALLEY_CORPUS_DIR` or, without it, the test fixtures. Each figure
//! is the best of several rounds in which both parsers alternate, as machines are noisy. A figure
//! beyond its bound is marked, and the run then fails.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use galley_content::{ContentLimits, Tree, TreeDiff};
use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, LocalName, Namespace, ParseOpts, QualName, parse_document};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const ROUNDS: usize = 15;

/// The lowest accepted speed, as a fraction of html5ever's with a sink that does nothing.
const RATIO_MIN: f64 = 0.4;

/// The size of the inputs that are constructed to be slow.
const LARGE: usize = 2 * 1024 * 1024;
const LARGE_TIME_LIMIT: Duration = Duration::from_secs(1);
const LARGE_MEMORY_LIMIT: usize = 16;

/// The size of the HTML of each document of a diff that is constructed to be slow.
const DIFF_INPUT: usize = 1024 * 1024;
const DIFF_ROUNDS: usize = 3;
const DIFF_TIME_LIMIT: Duration = Duration::from_millis(500);
const DIFF_MEMORY_LIMIT: usize = 64 * 1024 * 1024;

#[expect(clippy::cast_precision_loss, reason = "the documents have far fewer bytes")]
fn main() -> ExitCode {
    let documents = documents();
    let bytes: usize = documents.iter().map(String::len).sum();
    println!("{} documents, {} KiB", documents.len(), bytes / 1024);
    let (mut alone, mut whole) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        alone = alone.min(timed(|| documents.iter().for_each(|html| parse_into_null_sink(html))));
        whole = whole.min(timed(|| documents.iter().for_each(|html| drop(read(html)))));
    }
    let speed = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
    let ratio = alone.as_secs_f64() / whole.as_secs_f64();
    println!("html5ever into nothing  {:7.1} MB/s", speed(alone));
    println!("HTML to tree            {:7.1} MB/s, {ratio:.2} of that", speed(whole));
    let trees: Vec<Tree> = documents.iter().filter_map(|html| read(html)).collect();
    for (what, render) in [
        ("tree to JSON    ", Tree::to_json as fn(&Tree) -> String),
        ("tree to HTML    ", Tree::to_html),
        ("tree to Markdown", Tree::to_markdown),
        ("tree to text    ", Tree::to_text),
    ] {
        let rounds =
            (0..ROUNDS).map(|_| timed(|| trees.iter().for_each(|tree| drop(render(tree)))));
        let best = rounds.min().unwrap_or_default();
        println!("{what}        {:7.1} MB/s (of the HTML)", speed(best));
    }
    let mut is_within = ratio >= RATIO_MIN;
    for (what, html) in slow() {
        is_within &= measure(what, &html);
    }
    for (what, before, after) in slow_block_diffs().into_iter().chain(slow_word_diffs()) {
        is_within &= measure_diff(what, &before, &after);
    }
    if is_within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures an input that is constructed to be slow. Returns true if it stays within its bounds.
fn measure(what: &str, html: &str) -> bool {
    let mut outcome = "";
    let (time, factor) = cost(html, || {
        outcome = if read(html).is_some() { "read" } else { "refused" };
    });
    let (report_time, report_factor) =
        cost(html, || drop(Tree::from_html_with_warnings(html, &ContentLimits::default())));
    let within = |time, factor| time <= LARGE_TIME_LIMIT && factor <= LARGE_MEMORY_LIMIT;
    let kept = within(time, factor) && within(report_time, report_factor);
    let mark = if kept { "" } else { "  <- over its bounds" };
    println!(
        "{what:<44}{:6} ms {factor:3} x memory; with losses {:6} ms {report_factor:3} x  {outcome}{mark}",
        time.as_millis(),
        report_time.as_millis(),
    );
    kept
}

/// Measures a diff that is constructed to be slow, and its forms. Returns true if each stays within
/// the bounds.
fn measure_diff(what: &str, before: &str, after: &str) -> bool {
    let limits = ContentLimits {
        bytes_per_dom_node: 1,
        parser_steps_per_byte: 1_000,
        ..ContentLimits::default()
    };
    let read = |html: &str| Tree::from_html(html, &limits).expect("a document");
    let (before, after) = (read(before), read(after));
    let diff = TreeDiff::between(&before, &after);
    let best = |work: &dyn Fn()| {
        let costs = (0..DIFF_ROUNDS).map(|_| absolute_cost(work));
        costs.min().unwrap_or_default()
    };
    let (time, memory) = best(&|| drop(TreeDiff::between(&before, &after)));
    let mut is_within = time <= DIFF_TIME_LIMIT && memory <= DIFF_MEMORY_LIMIT;
    print!("diff: {what:<38}{:4} ms {:3} MiB", time.as_millis(), memory >> 20);
    for (form, render) in [
        ("JSON", (|diff| diff.to_json()) as fn(&TreeDiff<'_>) -> String),
        ("HTML", |diff| diff.to_html()),
        ("text", |diff| diff.to_text()),
    ] {
        let (time, memory) = best(&|| drop(render(&diff)));
        print!("; {form} {:4} ms {:3} MiB", time.as_millis(), memory >> 20);
        is_within &= time <= DIFF_TIME_LIMIT && memory <= DIFF_MEMORY_LIMIT;
    }
    println!("{}", if is_within { "" } else { "  <- over its bounds" });
    is_within
}

/// Returns the time, and the peak memory as a multiple of the input's size.
fn cost(html: &str, work: impl FnOnce()) -> (Duration, usize) {
    let (time, memory) = absolute_cost(work);
    (time, memory / html.len())
}

/// Returns the time, and the peak memory in bytes.
fn absolute_cost(work: impl FnOnce()) -> (Duration, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let time = timed(work);
    (time, MEMORY.peak_usage().saturating_sub(before))
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn read(html: &str) -> Option<Tree> {
    Tree::from_html(html, &ContentLimits::default()).ok()
}

/// Returns the corpus, or else the test fixtures.
fn documents() -> Vec<String> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let folder = std::env::var("GALLEY_CORPUS_DIR").unwrap_or_else(|_| beside.to_owned());
    let files = ["blog.json", "cases.json", "nasty.json"];
    let texts =
        files.iter().filter_map(|file| std::fs::read_to_string(format!("{folder}/{file}")).ok());
    let cases = texts.flat_map(|text| {
        let cases: Vec<serde_json::Value> = serde_json::from_str(&text).expect("it is JSON");
        cases
    });
    cases.map(|case| case["html"].as_str().expect("a case has its HTML").to_owned()).collect()
}

/// Returns inputs of two mebibytes that are constructed to be slow or to use much memory.
fn slow() -> Vec<(&'static str, String)> {
    let repeat = |piece: &str| piece.repeat(LARGE / piece.len());
    let numbered = |count: usize, before: &str, behind: &str| {
        let pieces: Vec<_> = (0..count).map(|number| format!("{before}{number}{behind}")).collect();
        pieces.concat()
    };
    vec![
        ("a hundred thousand unclosed <b>", "<b>".repeat(100_000)),
        ("unclosed <b>, two mebibytes of them", repeat("<b>")),
        (
            "different unclosed <b> before paragraphs",
            numbered(2_000, "<b id=", ">") + &repeat("<p>x"),
        ),
        ("different unclosed <b>", numbered(150_000, "<b id=", ">")),
        ("different <b> beside many, out of sight", {
            let many = numbered(1_000, "<b id=", ">");
            let piece = format!("<p>{}</p>", numbered(600, "<b id=x", "></b>"));
            many + &piece.repeat(LARGE / piece.len())
        }),
        (
            "a table in each cell",
            format!("<table><col width=5><tr>{}", repeat("<td><table><col><td></table>")),
        ),
        (
            "cells that span a thousand columns",
            format!("<table><tr>{}", repeat("<td colspan=1000>")),
        ),
        ("nested tables", repeat("<table><tr><td>")),
        ("nested lists", repeat("<ul><li>")),
        ("flat lists", repeat("<li>x")),
        ("one long attribute", format!("<p title=\"{}\">x", "y".repeat(LARGE))),
        ("many attributes", format!("<p {}>x", numbered(200_000, "a", "=1 "))),
        ("a million entities", "&amp;".repeat(LARGE / 5)),
        ("words", repeat("word ")),
        ("paragraphs", repeat("<p>x</p>\n")),
        ("empty paragraphs", repeat("<p>")),
        ("line breaks", repeat("<br>")),
        ("links", repeat("<a href=x>y</a> ")),
        ("styles", repeat("<i style='font-weight:bold'>x</i>")),
        ("cells", format!("<table><tr>{}", repeat("<td>x"))),
        ("code", format!("<pre>{}", repeat("x\n"))),
        ("comments", repeat("<!---->")),
        ("end tags", repeat("</p>")),
        ("misnested formatting", repeat("<b><i></b></i>")),
        ("text between rows", format!("<table>{}", repeat("x<tr>"))),
        ("NUL", repeat("\0")),
        ("unknown elements behind many", repeat("<br>") + &numbered(2_000, "<x", "></x>")),
    ]
}

/// A name, and the HTML of the documents before and after.
type DiffInput = (&'static str, String, String);

/// Returns pairs of documents of one mebibyte whose diffs are constructed to be slow or to use much
/// memory: many blocks.
fn slow_block_diffs() -> Vec<DiffInput> {
    let row = |start: &'static str, cell: &'static str| {
        move |n: u32, side: u32| match n {
            0 => start.to_owned(),
            _ => format!("{cell}{n}{}", letter(side)),
        }
    };
    let nested = |inner: &str, side: &str| {
        let chain = format!("{}{inner}{side}", "<ul><li>".repeat(49));
        let end = "</ul>".repeat(49);
        format!("{chain}{end}").repeat(DIFF_INPUT / (chain.len() + end.len()))
    };
    let quotes = |side: &str| {
        format!("{}{}", "<blockquote>".repeat(97), pieces(|n| format!("<p>{n}{side}")))
    };
    let tasks = |side: &str| {
        let start = "<ul data-type=taskList><li data-type=taskItem>".repeat(20);
        format!("{start}<pre>{}\n{side}", "\n".repeat(DIFF_INPUT - 1_000))
    };
    let words = "some words in a list ".repeat(20);
    vec![
        both("equal paragraphs", |n, _| format!("<p>{n}")),
        both("different paragraphs", |n, side| format!("<p>{}", n * 2 + side)),
        both("paragraphs with a changed word", |n, side| format!("<p>a b {n} c d {side}")),
        both("paragraphs in another order", |n, side| format!("<p>{}", random(n, side) % 99_999)),
        both("paragraphs with a few texts", |n, side| format!("<p>{}", random(n, side) % 9)),
        both("paragraphs between others", |n, side| match side {
            0 => format!("<p>{n}"),
            _ => format!("<p>{n}<p>x{n}"),
        }),
        ("one type of paragraph", repeat("<p>x"), repeat("<p>x<p>y")),
        ("empty paragraphs", repeat("<p>"), "<p>".repeat(DIFF_INPUT / 4)),
        ("nested lists", nested("a b c ", "x"), nested("a b c ", "y")),
        ("nested lists with words", nested(&words, "x"), nested(&words, "y")),
        ("paragraphs in nested quotes", quotes("x"), quotes("y")),
        both("cells", row("<table><tr><td>x", "<td>")),
        ("lines in nested tasks", tasks("x"), tasks("y")),
        both("list items", row("<ul><li>x", "<li>")),
    ]
}

/// Returns more such pairs: one block with many words.
fn slow_word_diffs() -> Vec<DiffInput> {
    let word = |letter: &str| repeat("") + &letter.repeat(DIFF_INPUT / 2);
    vec![
        both("one-character words", |n, side| format!("{} ", ideograph(n + side * 10_000))),
        both("ideographs", |n, side| ideograph(random(n, side)).to_string()),
        both("words of one letter", |n, side| format!("{} ", letter(random(n, side)))),
        both("words of two letters", |n, side| {
            let number = random(n, side);
            format!("{}{} ", letter(number), letter(number / 26))
        }),
        both("punctuation", |n, side| {
            ["!", "?", ".", ","][random(n, side) as usize % 4].to_owned()
        }),
        ("punctuation, every second one left out", repeat("!?"), repeat("!")),
        ("punctuation, replaced", repeat("!?.?"), repeat("!,.,")),
        both("words in another order", |n, side| format!("{} ", random(n, side) % 99_999)),
        both("words, each with a changed letter", |n, side| format!("word{n}{} ", letter(side))),
        both("words with changed punctuation", |n, side| {
            format!("word{n}{} ", [",", "."][side as usize])
        }),
        ("a single word", word("x"), word("y")),
        both("each character with other marks", |n, side| {
            let tag = ["b", "i", "s", "u"][(n + side) as usize % 4];
            format!("<{tag}>x</{tag}>")
        }),
        both("links, each changed", |n, side| format!("<a href={n}{side}>x</a> ")),
        ("line breaks", repeat("<br>"), repeat("x<br>")),
    ]
}

/// Returns a document of pieces by their number, within the size of the inputs of diffs. Blocks are
/// compared by their first words, so these are always the same.
fn pieces(piece: impl Fn(u32) -> String) -> String {
    let mut html = "same ".repeat(900);
    for number in 0.. {
        let next = piece(number);
        if next.is_empty() || html.len() + next.len() > DIFF_INPUT {
            break;
        }
        html.push_str(&next);
    }
    html
}

fn repeat(piece: &str) -> String {
    pieces(|_| piece.to_owned())
}

/// Returns a pair of documents of pieces by their number and side, which is 0 or 1.
fn both(what: &'static str, piece: impl Fn(u32, u32) -> String) -> DiffInput {
    (what, pieces(|number| piece(number, 0)), pieces(|number| piece(number, 1)))
}

/// Returns a number of 24 bits that differs for both sides (a hash of integers, MurmurHash3's).
fn random(number: u32, side: u32) -> u32 {
    let mixed = (number * 2 + side).wrapping_mul(0x9e37_79b1);
    let mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
    (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35) >> 8
}

fn letter(number: u32) -> char {
    char::from(b'a' + u8::try_from(number % 26).expect("below 26"))
}

fn ideograph(number: u32) -> char {
    char::from_u32(0x4e00 + number % 20_000).expect("an ideograph")
}

fn parse_into_null_sink(html: &str) {
    parse_document(NullSink::default(), ParseOpts::default()).one(StrTendril::from_slice(html));
}

/// A sink that stores only the elements' names, which the parser reads.
#[derive(Default)]
struct NullSink {
    names: RefCell<Vec<QualName>>,
    nodes: Cell<usize>,
}

struct SinkElementName<'a>(Ref<'a, QualName>);

impl std::fmt::Debug for SinkElementName<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(out)
    }
}

impl ElemName for SinkElementName<'_> {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

/// Elements are numbered from 1. Other nodes are 0.
impl TreeSink for NullSink {
    type Handle = usize;
    type Output = usize;
    type ElemName<'a> = SinkElementName<'a>;

    fn finish(self) -> usize {
        self.nodes.get()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> usize {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a usize) -> SinkElementName<'a> {
        SinkElementName(Ref::map(self.names.borrow(), |names| &names[*target - 1]))
    }

    fn create_element(&self, name: QualName, _: Vec<Attribute>, _: ElementFlags) -> usize {
        self.nodes.set(self.nodes.get() + 1);
        let mut names = self.names.borrow_mut();
        names.push(name);
        names.len()
    }

    fn create_comment(&self, _: StrTendril) -> usize {
        0
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> usize {
        0
    }

    fn append(&self, _: &usize, _: NodeOrText<usize>) {}

    fn append_based_on_parent_node(&self, _: &usize, _: &usize, _: NodeOrText<usize>) {}

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &usize) -> usize {
        *target
    }

    fn same_node(&self, x: &usize, y: &usize) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, _: &usize, _: NodeOrText<usize>) {}

    fn add_attrs_if_missing(&self, _: &usize, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, _: &usize) {}

    fn reparent_children(&self, _: &usize, _: &usize) {}
}
