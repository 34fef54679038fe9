//! The conversion of HTML to a tree.
//!
//! html5ever parses the HTML into a `dom`, and the walker in `walk` traverses it. `rules` maps
//! elements to nodes and marks, and `context` inserts them into the tree. `flood` and the counters
//! in `sink` limit the cost of an input to a multiple of its length.

mod attribute_flood;
mod attributes;
mod context;
mod dom;
mod number;
mod rules;
mod sink;
mod style;
mod table;
mod tag;
mod walk;
mod warnings;
mod whitespace;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tokenizer::TokenizerOpts;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, Parser, parse_document};

use crate::error::ContentError;
use crate::limits::ContentLimits;
use crate::tree::Tree;
use crate::warning::ConversionWarning;
use dom::Dom;
use sink::Sink;
use warnings::WarningCollector;

/// The size of the pieces that are fed to the parser, in bytes. It can be stopped only between two
/// of them.
const PIECE_MAX: usize = 8 * 1024;
const PIECE_MIN: usize = 128;

/// The limit on comparisons of formatting elements with attributes, such as different `<font>`. The
/// parser compares each new one with all open ones.
const COMPARISONS_MAX: usize = 10_000_000;

/// The budget of any input, in addition to the part that depends on its length.
const FREE_STEPS: usize = 2_000_000;
const FREE_NODES: usize = 100_000;

/// Parses HTML as the body of a page, and converts it to a tree.
pub(crate) fn tree_from_html(html: &str, limits: &ContentLimits) -> Result<Tree, ContentError> {
    let mut dom = dom_from_html(html, Dom::new(), limits)?;
    walk::tree_of(&mut dom, limits, None)
}

/// Converts HTML like [`tree_from_html`], and returns the conversion warnings as well.
pub(crate) fn tree_and_warnings(
    html: &str,
    limits: &ContentLimits,
) -> Result<(Tree, Vec<ConversionWarning>), ContentError> {
    let mut dom = dom_from_html(html, Dom::with_origins(), limits)?;
    let mut losses = WarningCollector::default();
    let tree = walk::tree_of(&mut dom, limits, Some(&mut losses))?;
    Ok((tree, losses.finish()))
}

fn dom_from_html(html: &str, dom: Dom, limits: &ContentLimits) -> Result<Dom, ContentError> {
    if attribute_flood::has_attribute_flood(html, limits.attributes_per_element) {
        return Err(ContentError::TooComplex);
    }
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    // A byte order mark is kept, as the HTML isn't the beginning of the page.
    let tokenizer = TokenizerOpts { discard_bom: false, ..TokenizerOpts::default() };
    let options = ParseOpts { tree_builder, tokenizer };
    let mut parser = parse_document(Sink::new(dom), options);
    parser.process("<!DOCTYPE html><html><body>".into());
    let budget = Budget {
        steps: FREE_STEPS.saturating_add(html.len().saturating_mul(limits.parser_steps_per_byte)),
        nodes: FREE_NODES.saturating_add(html.len() / limits.bytes_per_dom_node.max(1)),
        blocks_deep: limits.blocks_deep,
    };
    let mut rest = html;
    let mut piece_len = PIECE_MAX;
    while !rest.is_empty() {
        piece_len = next_piece_len(sink(&parser), piece_len);
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(piece_len.min(rest.len())));
        rest = behind;
        parser.process(StrTendril::from_slice(piece));
        budget.check(sink(&parser))?;
    }
    parser.process("</body></html>".into());
    let dom = parser.finish();
    Ok(dom)
}

/// Returns the size of the next piece. With more open elements the next tag may cost more, so the
/// piece is smaller. It grows only slowly, as the parser may be about to reopen closed elements.
fn next_piece_len(sink: &Sink, piece_len: usize) -> usize {
    const ORDINARY: usize = 64;
    let open = sink.open_elements(ORDINARY * PIECE_MAX / PIECE_MIN);
    let fitting = PIECE_MAX * ORDINARY / (ORDINARY + open);
    fitting.min(piece_len + piece_len / 8).max(PIECE_MIN)
}

fn sink(parser: &Parser<Sink>) -> &Sink {
    &parser.tokenizer.sink.sink
}

/// The parser's limits for one input.
struct Budget {
    steps: usize,
    nodes: usize,
    blocks_deep: usize,
}

impl Budget {
    fn check(&self, sink: &Sink) -> Result<(), ContentError> {
        // `html` and `body` are blocks as well, but the parser adds them.
        if sink.blocks_deep() > self.blocks_deep + 2 {
            return Err(ContentError::TooDeep);
        }
        if sink.comparisons() > COMPARISONS_MAX {
            return Err(ContentError::TooComplex);
        }
        if sink.steps() > self.steps || sink.nodes() > self.nodes {
            return Err(ContentError::TooComplex);
        }
        Ok(())
    }
}
