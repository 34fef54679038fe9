//! The speed of the conversion from HTML to a tree, relative to html5ever alone, and the cost of
//! the worst inputs.
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

use galley_content::{ContentLimits, Tree};
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

/// Returns the time, and the peak memory as a multiple of the input's size.
fn cost(html: &str, work: impl FnOnce()) -> (Duration, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let time = timed(work);
    (time, (MEMORY.peak_usage() - before) / html.len())
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
