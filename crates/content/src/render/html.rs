//! HTML as TipTap renders it.
//!
//! Marks are elements around the texts that have them. Neighbouring texts share the elements of
//! their common marks, from the outside inwards.

use std::fmt::Write as _;

use super::space::{self, SpaceMarkup};
use crate::color;
use crate::marks::{Link, Mark, Marks};
use crate::node::{CellAttrs, ImageAttrs, NodeKind};
use crate::tree::{Tree, WalkStep};

/// The attribute for a block whose white space would otherwise collapse when the HTML is parsed
/// again.
///
/// TipTap doesn't render it, and so loses the white space.
const KEEP_SPACE: &str = " style=\"white-space: pre-wrap\"";

/// A separate text node at the end of a block that ends in white space.
///
/// Parsers trim white space off the last text node of a block, whatever its style, and off no
/// other. The comment separates this space from the text before it, so only this space is trimmed.
const CUT_SPACE: &str = "<!-- --> ";

/// The default width of a column, in pixels.
const COLUMN_WIDTH: i64 = 25;

pub(crate) fn html(tree: &Tree) -> String {
    html_of(tree, 0)
}

/// Renders one node with its descendants.
pub(crate) fn html_of(tree: &Tree, node: usize) -> String {
    let mut renderer = Renderer::new(tree, tree.end(node) - node);
    renderer.subtree(node);
    renderer.html
}

/// Appends escaped text to HTML.
pub(crate) fn escape_text(html: &mut String, text: &str) {
    escape(html, text, false);
}

/// Appends an escaped attribute value to HTML.
pub(crate) fn escape_attribute(html: &mut String, text: &str) {
    escape(html, text, true);
}

fn escape(html: &mut String, text: &str, quotes: bool) {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '\u{a0}') || (quotes && c == '"');
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        html.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        html.push_str(match chars.next() {
            Some('&') => "&amp;",
            Some('<') => "&lt;",
            Some('>') => "&gt;",
            Some('"') => "&quot;",
            _ => "&nbsp;",
        });
        rest = chars.as_str();
    }
    html.push_str(rest);
}

/// Appends the start tag of a link.
pub(crate) fn open_link(html: &mut String, link: &Link) {
    let [target, rel, class, title] = link.rest();
    html.push_str("<a");
    for (name, value) in [target, rel, class] {
        if let Some(value) = value {
            attribute(html, name, &value.to_string());
        }
    }
    attribute(html, "href", &link.href);
    if let (name, Some(value)) = title {
        attribute(html, name, &value.to_string());
    }
    html.push('>');
}

/// Appends an image.
pub(crate) fn image(html: &mut String, image: &ImageAttrs) {
    html.push_str("<img");
    for (name, value) in image.all() {
        if let Some(value) = value {
            attribute(html, name, &value.to_string());
        }
    }
    html.push('>');
}

/// Appends the start tag of a highlight.
pub(crate) fn open_highlight(html: &mut String, color: &str) {
    html.push_str("<mark");
    if let Some(canonical) = color::canonical(color) {
        attribute(html, "data-color", color);
        attribute(html, "style", &format!("background-color: {canonical}; color: inherit;"));
    }
    html.push('>');
}

fn attribute(html: &mut String, name: &str, value: &str) {
    html.push(' ');
    html.push_str(name);
    html.push_str("=\"");
    escape_attribute(html, value);
    html.push('"');
}

/// A renderer of nodes and marks.
pub(crate) struct Renderer<'a> {
    tree: &'a Tree,
    pub(crate) html: String,
    /// The marks with open elements.
    marks: Vec<Mark>,
    /// The number of columns that may still be written, as a short attribute can span a thousand.
    columns_left: usize,
}

impl<'a> Renderer<'a> {
    /// Returns a renderer for about this number of nodes.
    pub(crate) fn new(tree: &'a Tree, nodes: usize) -> Self {
        Self {
            tree,
            html: String::with_capacity(nodes * 16),
            marks: Vec::new(),
            columns_left: nodes * 4 + 16,
        }
    }

    /// Switches to the nodes and marks of another tree, which closes the elements of marks.
    pub(crate) fn switch(&mut self, tree: &'a Tree) {
        if !std::ptr::eq(self.tree, tree) {
            self.change_marks(Marks::default());
            self.tree = tree;
        }
    }

    /// Renders a node with its descendants.
    pub(crate) fn subtree(&mut self, node: usize) {
        for step in self.tree.walk_from(node) {
            match step {
                WalkStep::Enter(node) => self.enter(node),
                WalkStep::Leave(node) => self.leave(node),
            }
        }
    }

    /// Renders a node's start tag, or the whole of a leaf.
    pub(crate) fn enter(&mut self, node: usize) {
        match self.tree.kind(node) {
            NodeKind::Doc => {}
            NodeKind::Paragraph => match space::of(self.tree, node) {
                SpaceMarkup::Plain => self.html.push_str("<p>"),
                SpaceMarkup::Kept | SpaceMarkup::KeptAtEnd => {
                    self.raw(format_args!("<p{KEEP_SPACE}>"));
                }
            },
            NodeKind::Heading { level } => match space::of(self.tree, node) {
                SpaceMarkup::Plain => self.raw(format_args!("<h{level}>")),
                SpaceMarkup::Kept | SpaceMarkup::KeptAtEnd => {
                    self.raw(format_args!("<h{level}{KEEP_SPACE}>"));
                }
            },
            NodeKind::Blockquote => self.html.push_str("<blockquote>"),
            NodeKind::BulletList => self.html.push_str("<ul>"),
            NodeKind::OrderedList(list) => {
                let list = self.tree.list(list);
                self.html.push_str("<ol");
                if list.start != 1 {
                    attribute(&mut self.html, "start", &list.start.to_string());
                }
                if let Some(list_type) = &list.list_type {
                    attribute(&mut self.html, "type", list_type);
                }
                self.html.push('>');
            }
            NodeKind::ListItem => self.html.push_str("<li>"),
            NodeKind::TaskList => self.html.push_str("<ul data-type=\"taskList\">"),
            NodeKind::TaskItem { checked } => {
                let box_checked = if checked { " checked=\"checked\"" } else { "" };
                self.raw(format_args!(
                    "<li data-checked=\"{checked}\" data-type=\"taskItem\"><label>\
                     <input type=\"checkbox\"{box_checked}><span></span></label><div>"
                ));
            }
            NodeKind::CodeBlock(language) => {
                self.html.push_str("<pre><code");
                if let Some(language) = language {
                    let class = format!("language-{}", self.tree.language(language));
                    attribute(&mut self.html, "class", &class);
                }
                self.html.push('>');
            }
            NodeKind::HorizontalRule => self.html.push_str("<hr>"),
            NodeKind::Image(attrs) => image(&mut self.html, self.tree.image(attrs)),
            NodeKind::Table => self.open_table(node),
            NodeKind::TableRow => self.html.push_str("<tr>"),
            NodeKind::TableCell(cell) => self.open_cell("td", self.tree.cell(cell)),
            NodeKind::TableHeader(cell) => self.open_cell("th", self.tree.cell(cell)),
            NodeKind::HardBreak { marks } => {
                self.change_marks(self.tree.marks(marks));
                self.html.push_str("<br>");
            }
            NodeKind::Text { start, end, marks } => {
                self.change_marks(self.tree.marks(marks));
                escape_text(&mut self.html, self.tree.text(start, end));
            }
        }
    }

    /// Renders a node's end tag.
    pub(crate) fn leave(&mut self, node: usize) {
        let kind = self.tree.kind(node);
        if kind.node_type().is_textblock() {
            self.change_marks(Marks::default());
        }
        if matches!(kind, NodeKind::Paragraph | NodeKind::Heading { .. })
            && space::of(self.tree, node) == SpaceMarkup::KeptAtEnd
        {
            self.html.push_str(CUT_SPACE);
        }
        self.html.push_str(match kind {
            NodeKind::Paragraph => "</p>",
            NodeKind::Heading { level } => return self.raw(format_args!("</h{level}>")),
            NodeKind::Blockquote => "</blockquote>",
            NodeKind::BulletList | NodeKind::TaskList => "</ul>",
            NodeKind::OrderedList(_) => "</ol>",
            NodeKind::ListItem => "</li>",
            NodeKind::TaskItem { .. } => "</div></li>",
            NodeKind::CodeBlock(_) => "</code></pre>",
            NodeKind::Table => "</tbody></table>",
            NodeKind::TableRow => "</tr>",
            NodeKind::TableCell(_) => "</td>",
            NodeKind::TableHeader(_) => "</th>",
            NodeKind::Doc
            | NodeKind::HorizontalRule
            | NodeKind::Image(_)
            | NodeKind::HardBreak { .. }
            | NodeKind::Text { .. } => "",
        });
    }

    /// Closes the elements of marks that end here, and opens those of marks that begin.
    pub(crate) fn change_marks(&mut self, marks: Marks) {
        let same = self.marks.iter().zip(marks.iter()).take_while(|(a, b)| **a == *b).count();
        while self.marks.len() > same {
            let element = match self.marks.pop() {
                Some(Mark::Link(_)) => "a",
                Some(Mark::Highlight(_)) => "mark",
                Some(Mark::Flag(flag)) => flag.element(),
                None => return,
            };
            self.raw(format_args!("</{element}>"));
        }
        for mark in marks.iter().skip(same) {
            match mark {
                Mark::Link(link) => open_link(&mut self.html, self.tree.link(link)),
                Mark::Highlight(color) => open_highlight(&mut self.html, self.tree.color(color)),
                Mark::Flag(flag) => self.raw(format_args!("<{}>", flag.element())),
            }
            self.marks.push(mark);
        }
    }

    /// Opens a table with its column widths, which the cells of the first row specify.
    fn open_table(&mut self, table: usize) {
        let mut columns = String::new();
        let (mut total, mut all_given) = (0_i64, true);
        let cells = self.tree.children(table).next().into_iter();
        for cell in cells.flat_map(|row| self.tree.children(row)) {
            let (NodeKind::TableCell(cell) | NodeKind::TableHeader(cell)) = self.tree.kind(cell)
            else {
                continue;
            };
            let cell = self.tree.cell(cell);
            for number in 0..usize::from(cell.colspan).min(self.columns_left) {
                self.columns_left -= 1;
                let widths = cell.colwidth.as_deref().unwrap_or_default();
                let width = widths.get(number).copied().flatten().filter(|width| *width != 0);
                total = total.saturating_add(width.unwrap_or(COLUMN_WIDTH));
                all_given &= width.is_some();
                let property = if width.is_some() { "width" } else { "min-width" };
                let shown = width.unwrap_or(COLUMN_WIDTH).max(COLUMN_WIDTH);
                columns.push_str("<col style=\"");
                columns.push_str(property);
                columns.push_str(": ");
                columns.push_str(&shown.to_string());
                columns.push_str("px;\">");
            }
        }
        let property = if all_given { "width" } else { "min-width" };
        self.raw(format_args!(
            "<table style=\"{property}: {total}px;\"><colgroup>{columns}</colgroup><tbody>"
        ));
    }

    fn open_cell(&mut self, element: &str, cell: &CellAttrs) {
        let CellAttrs { colspan, rowspan, colwidth, align } = cell;
        self.raw(format_args!("<{element} colspan=\"{colspan}\" rowspan=\"{rowspan}\""));
        if let Some(widths) = colwidth {
            let text = |width: &Option<i64>| width.map(|width| width.to_string());
            let widths: Vec<String> = widths.iter().map(|w| text(w).unwrap_or_default()).collect();
            // A single unreadable width must not become no width.
            let widths = if widths == [""] { "null".to_owned() } else { widths.join(",") };
            attribute(&mut self.html, "colwidth", &widths);
        }
        if let Some(align) = align {
            self.raw(format_args!(" style=\"text-align: {};\"", align.name()));
        }
        self.html.push('>');
    }

    fn raw(&mut self, formatted: std::fmt::Arguments<'_>) {
        self.html.write_fmt(formatted).expect("writing to a string can't fail");
    }
}
