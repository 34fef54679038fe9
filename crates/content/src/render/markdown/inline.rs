//! The inline content of a paragraph, heading or table cell.
//!
//! Marks become delimiters where Markdown recognises them, and HTML elements elsewhere. Recognition
//! depends on the characters on both sides of a delimiter, and so on the neighbouring output. First
//! all marks get delimiters. Then unrecognised ones are replaced, until nothing changes any more.

use super::escape::{self, Surroundings};
use crate::marks::{Flag, Mark, Marks};
use crate::node::{ImageAttrs, NodeKind};
use crate::render::html;
use crate::tree::Tree;

/// The block that contains the inline content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InlineContainer {
    Paragraph,
    /// Single-line.
    Heading,
    /// Single-line, between pipes.
    Cell,
}

/// Renders the inline content of a textblock. Only paragraphs may have several lines.
pub(crate) fn text(tree: &Tree, textblock: usize, place: InlineContainer) -> String {
    let mut pieces = PieceBuilder { tree, place, pieces: Vec::new(), open: Vec::new() };
    pieces.read(textblock);
    let mut pieces = pieces.pieces;
    replace_unrecognised_delimiters(&mut pieces);
    let mut text = write(&pieces, place);
    if place == InlineContainer::Heading && text.ends_with('#') {
        // A trailing `#` would be parsed as the end of the heading.
        text.insert(text.len() - 1, '\\');
    }
    if place == InlineContainer::Heading
        && text.ends_with('}')
        && let Some(start) = text.rfind("{#")
    {
        // Site generators parse it as the heading's id.
        text.insert(start, '\\');
    }
    text
}

/// Renders an image as Markdown, or returns `None` if it requires HTML.
pub(crate) fn image(image: &ImageAttrs) -> Option<String> {
    if image.width.is_some() || image.height.is_some() {
        return None;
    }
    let source = escape::destination(&image.src.as_ref()?.to_string())?;
    let alt = image.alt.as_ref()?.to_string();
    if alt.contains(['\n', '\r']) || alt.trim() != alt {
        return None;
    }
    let around =
        Surroundings { starts_line: false, next: Some(']'), previous: Some('['), in_table: false };
    let alt = escape::text(&alt, around);
    match &image.title {
        None => Some(format!("![{alt}]({source})")),
        Some(title) => {
            Some(format!("![{alt}]({source} {})", escape::title(&title.to_string(), false)?))
        }
    }
}

/// A part of a line.
enum LinePart {
    Text(String),
    /// Output without further escaping: code, a line break.
    Verbatim(String),
    /// One end of a mark.
    Mark {
        mark: End,
        is_open: bool,
        other: usize,
    },
}

/// The two forms of one end of a mark.
struct End {
    delimiter: Option<String>,
    html: String,
}

struct PieceBuilder<'a> {
    tree: &'a Tree,
    place: InlineContainer,
    pieces: Vec<LinePart>,
    /// The open marks, with the indexes of the pieces that opened them.
    open: Vec<(Mark, usize)>,
}

impl PieceBuilder<'_> {
    fn read(&mut self, textblock: usize) {
        for child in self.tree.children(textblock) {
            match self.tree.kind(child) {
                NodeKind::Text { start, end, marks } => {
                    self.text(self.tree.text(start, end), self.tree.marks(marks));
                }
                NodeKind::HardBreak { marks } => {
                    let marks = self.tree.marks(marks);
                    let next = (self.tree.end(child) < self.tree.end(textblock))
                        .then(|| self.tree.kind(self.tree.end(child)));
                    self.hard_break(marks, next);
                }
                _ => {}
            }
        }
        self.change_marks(&[]);
    }

    fn text(&mut self, text: &str, marks: Marks) {
        let mut wanted: Vec<Mark> = marks.iter().collect();
        let in_cell = self.place == InlineContainer::Cell;
        let is_innermost_code = wanted.last() == Some(&Mark::Flag(Flag::Code));
        let code = if is_innermost_code { escape::code_span(text, in_cell) } else { None };
        if code.is_some() {
            wanted.pop();
        }
        self.change_marks(&wanted);
        self.pieces.push(match code {
            Some(code) => LinePart::Verbatim(code),
            None => LinePart::Text(text.to_owned()),
        });
    }

    /// Adds a line break. It is a backslash at the end of a line if a text with the same marks
    /// follows, or else a `<br>`.
    fn hard_break(&mut self, marks: Marks, next: Option<NodeKind>) {
        let wanted: Vec<Mark> = marks.iter().collect();
        self.change_marks(&wanted);
        let next_marks = match next {
            Some(NodeKind::Text { marks, .. }) => Some(self.tree.marks(marks)),
            _ => None,
        };
        let as_line = self.place == InlineContainer::Paragraph && next_marks == Some(marks);
        let written = if as_line { "\\\n" } else { "<br>" };
        self.pieces.push(LinePart::Verbatim(written.to_owned()));
    }

    /// Closes the marks that end here, and opens the ones that begin.
    fn change_marks(&mut self, wanted: &[Mark]) {
        let same = self.open.iter().zip(wanted).take_while(|((a, _), b)| a == *b).count();
        while self.open.len() > same {
            let Some((mark, opened_at)) = self.open.pop() else { return };
            let closed_at = self.pieces.len();
            let end = self.end(mark, false);
            self.pieces.push(LinePart::Mark { mark: end, is_open: false, other: opened_at });
            if let LinePart::Mark { other, .. } = &mut self.pieces[opened_at] {
                *other = closed_at;
            }
        }
        for &mark in &wanted[same..] {
            let opened_at = self.pieces.len();
            let start = self.end(mark, true);
            self.pieces.push(LinePart::Mark { mark: start, is_open: true, other: opened_at });
            self.open.push((mark, opened_at));
        }
    }

    fn end(&self, mark: Mark, is_open: bool) -> End {
        let mut html = String::new();
        let delimiter = match mark {
            Mark::Link(link) => {
                let link = self.tree.link(link);
                let written = self.link_delimiter(link);
                if is_open {
                    html::open_link(&mut html, link);
                    written.map(|_| "[".to_owned())
                } else {
                    html.push_str("</a>");
                    written
                }
            }
            Mark::Highlight(color) => {
                if is_open {
                    html::open_highlight(&mut html, self.tree.color(color));
                } else {
                    html.push_str("</mark>");
                }
                None
            }
            Mark::Flag(flag) => {
                let slash = if is_open { "" } else { "/" };
                html = format!("<{slash}{}>", flag.element());
                match flag {
                    Flag::Bold => Some("**".to_owned()),
                    Flag::Italic => Some("_".to_owned()),
                    Flag::Strike => Some("~~".to_owned()),
                    _ => None,
                }
            }
        };
        let html = html.replace('\r', "&#13;").replace('\n', "&#10;");
        let html =
            if self.place == InlineContainer::Cell { html.replace('|', "&#124;") } else { html };
        End { delimiter, html }
    }

    /// Returns the closing delimiter of a link, or `None` if the link requires HTML.
    fn link_delimiter(&self, link: &crate::marks::Link) -> Option<String> {
        let [target, rel, class, title] = link.rest();
        if [target, rel, class].iter().any(|(_, value)| value.is_some()) {
            return None;
        }
        let destination = escape::destination(&link.href)?;
        match title {
            (_, None) => Some(format!("]({destination})")),
            (_, Some(title)) => {
                let title = escape::title(&title.to_string(), self.place == InlineContainer::Cell)?;
                Some(format!("]({destination} {title})"))
            }
        }
    }
}

impl LinePart {
    /// Returns the first character of this piece in the Markdown.
    fn first(&self) -> Option<char> {
        self.shown().chars().next()
    }

    fn last(&self) -> Option<char> {
        self.shown().chars().next_back()
    }

    fn shown(&self) -> &str {
        match self {
            Self::Text(text) | Self::Verbatim(text) => text,
            Self::Mark { mark, .. } => mark.delimiter.as_ref().unwrap_or(&mark.html),
        }
    }

    fn needs_flanks(&self) -> bool {
        matches!(self, Self::Mark { mark: End { delimiter: Some(delimiter), .. }, .. }
            if matches!(delimiter.as_str(), "**" | "_" | "~~"))
    }
}

/// Replaces the delimiters that Markdown wouldn't recognise by HTML.
fn replace_unrecognised_delimiters(pieces: &mut [LinePart]) {
    loop {
        let void: Vec<usize> = (0..pieces.len())
            .filter(|&at| pieces[at].needs_flanks() && !is_recognised(pieces, at))
            .collect();
        if void.is_empty() {
            return;
        }
        for at in void {
            let LinePart::Mark { other, .. } = pieces[at] else { continue };
            for end in [at, other] {
                if let LinePart::Mark { mark, .. } = &mut pieces[end] {
                    mark.delimiter = None;
                }
            }
        }
    }
}

/// Returns true if a delimiter is flanked as required (CommonMark, section 6.2).
fn is_recognised(pieces: &[LinePart], at: usize) -> bool {
    let LinePart::Mark { is_open, .. } = pieces[at] else { return true };
    let before = at.checked_sub(1).and_then(|before| pieces[before].last());
    let behind = pieces.get(at + 1).and_then(LinePart::first);
    let (inside, outside) = if is_open { (behind, before) } else { (before, behind) };
    let Some(inside) = inside else { return false };
    let outside_ends_word =
        outside.is_none_or(|outside| outside.is_whitespace() || is_punctuation(outside));
    let flanked = !inside.is_whitespace() && (!may_be_punctuation(inside) || outside_ends_word);
    let is_underscore = pieces[at].shown() == "_";
    let apart = !is_underscore || outside_ends_word;
    // Between another delimiter and punctuation it could be parsed as both opening and closing.
    let ambiguous = may_be_punctuation(inside)
        && outside.is_some_and(|outside| matches!(outside, '*' | '_' | '~'));
    let same_again = outside.is_some() && outside == pieces[at].first();
    flanked && apart && !ambiguous && !same_again
}

/// Returns true for each character that Markdown may count as punctuation. Inside a delimiter, a
/// false positive only adds HTML.
fn may_be_punctuation(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace()
}

/// Returns true only for characters that Markdown certainly counts as punctuation: punctuation and
/// symbols of Unicode. Outside a delimiter, a false negative only adds HTML.
///
/// Besides these, the ranges below contain only letters, digits and spaces. They contain no
/// combining marks or control characters, as Markdown doesn't count them.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || may_be_punctuation(c)
            && matches!(
                c,
                '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{bf}' | '\u{d7}' | '\u{f7}'
                    | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{20a0}'..='\u{20bf}'
                    | '\u{2190}'..='\u{23ff}' | '\u{2500}'..='\u{27ff}' | '\u{3001}'..='\u{3020}'
                    | '\u{ff01}'..='\u{ff65}' | '\u{1f300}'..='\u{1f64f}'
                    | '\u{1f900}'..='\u{1f9ff}'
            )
}

fn write(pieces: &[LinePart], place: InlineContainer) -> String {
    let mut text = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        let LinePart::Text(plain) = piece else {
            text.push_str(piece.shown());
            continue;
        };
        let around = Surroundings {
            starts_line: place == InlineContainer::Paragraph
                && (text.is_empty() || text.ends_with('\n')),
            next: pieces.get(at + 1).and_then(LinePart::first),
            previous: text.chars().next_back(),
            in_table: place == InlineContainer::Cell,
        };
        text.push_str(&escape::text(plain, around));
    }
    text
}
