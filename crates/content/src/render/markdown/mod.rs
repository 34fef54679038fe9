//! GitHub-flavoured Markdown that parses back to the same tree.
//!
//! This module renders blocks. `lines` adds the prefixes of quotes and lists, `inline` renders the
//! content of paragraphs, and `table` renders tables. Nodes that Markdown can't represent become
//! blocks of HTML from `html`: an empty paragraph, a cell that spans two columns, an image with a
//! size.

mod escape;
mod inline;
mod lines;
mod table;

use super::html;
use super::space::{self, SpaceMarkup};
use crate::node::{Node, NodeKind};
use crate::schema::NodeType;
use crate::tree::Tree;
use lines::MarkdownLines;

pub(crate) fn markdown(tree: &Tree, max: usize) -> Option<String> {
    let mut writer = MarkdownWriter { tree, lines: MarkdownLines::new(max), open: Vec::new() };
    writer.document();
    writer.lines.finish()
}

struct MarkdownWriter<'a> {
    tree: &'a Tree,
    lines: MarkdownLines,
    /// The open containers, outermost first.
    open: Vec<OpenContainer>,
}

/// A quote, list or list item whose children are being rendered.
struct OpenContainer {
    kind: Container,
    next: usize,
    end: usize,
    /// The child before the current one.
    previous: Option<usize>,
    /// The markers of the lists directly before the current child, and the number of these lists.
    lists_before: (Option<[Marker; 2]>, usize),
}

#[derive(Clone, Copy)]
enum Container {
    Document,
    Quote,
    Item,
    List { tight: bool, marker: Marker, number: i64 },
}

/// The limit on the first number of a list: Markdown's limit of nine digits, less room for the most
/// items that can follow.
const NUMBER_MAX: i64 = 900_000_000;

/// The marker of a list item. Adjacent lists have different ones, as Markdown would otherwise merge
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Dash,
    Star,
    Dot,
    Parenthesis,
}

impl MarkdownWriter<'_> {
    /// Renders block after block. Containers are on a stack, as the author controls their depth.
    fn document(&mut self) {
        if matches!(self.tree.nodes(), [_, Node { kind: NodeKind::Paragraph, .. }]) {
            // Empty Markdown is parsed as a document with one empty paragraph.
            return;
        }
        self.enter(0, Container::Document);
        while let Some(open) = self.open.last_mut() {
            if open.next >= open.end {
                let kind = open.kind;
                self.open.pop();
                if matches!(kind, Container::Quote | Container::Item) {
                    self.lines.pop_prefix();
                }
                continue;
            }
            let node = open.next;
            let before = open.previous.replace(node);
            open.next = self.tree.end(node);
            match open.kind {
                Container::List { tight, .. } => self.item(node, before, tight),
                _ => self.block(node, before),
            }
        }
    }

    fn enter(&mut self, node: usize, kind: Container) {
        self.open.push(OpenContainer {
            kind,
            next: node + 1,
            end: self.tree.end(node),
            previous: None,
            lists_before: (None, 0),
        });
    }

    fn block(&mut self, node: usize, before: Option<usize>) {
        if before.is_some() && !self.is_in_tight_list() {
            self.lines.blank();
        }
        let marker = self.marker(node);
        match self.tree.kind(node) {
            NodeKind::Paragraph => self.paragraph(node, before),
            NodeKind::Heading { level } => self.heading(node, level),
            NodeKind::Blockquote => {
                self.lines.push_prefix("> ", "> ");
                self.enter(node, Container::Quote);
            }
            NodeKind::BulletList | NodeKind::TaskList | NodeKind::OrderedList(_) => {
                self.list(node, marker);
            }
            NodeKind::CodeBlock(_) => self.code_block(node),
            NodeKind::HorizontalRule => self.lines.line("---"),
            NodeKind::Image(image) => match inline::image(self.tree.image(image)) {
                Some(image) => self.lines.line(&image),
                None => self.html(node),
            },
            NodeKind::Table => match table::table(self.tree, node) {
                Some(rows) => rows.iter().for_each(|row| self.lines.line(row)),
                None => self.html(node),
            },
            _ => self.html(node),
        }
    }

    /// Returns the marker for the items of a list. It differs from the marker of a list directly
    /// before it.
    fn marker(&mut self, block: usize) -> Marker {
        let usual = match self.tree.kind(block).node_type() {
            NodeType::OrderedList => Some([Marker::Dot, Marker::Parenthesis]),
            NodeType::BulletList | NodeType::TaskList => Some([Marker::Dash, Marker::Star]),
            _ => None,
        };
        let Some(open) = self.open.last_mut() else { return Marker::Dash };
        let (before, count) = open.lists_before;
        let count = if usual == before { count } else { 0 };
        open.lists_before = (usual, count + 1);
        usual.unwrap_or([Marker::Dash; 2])[count % 2]
    }

    fn is_in_tight_list(&self) -> bool {
        let mut around = self.open.iter().rev();
        matches!(around.next(), Some(OpenContainer { kind: Container::Item, .. }))
            && matches!(
                around.next(),
                Some(OpenContainer { kind: Container::List { tight: true, .. }, .. })
            )
    }

    fn paragraph(&mut self, node: usize, before: Option<usize>) {
        let is_empty = self.tree.end(node) == node + 1;
        let is_whole_item = before.is_none()
            && self.open.last().is_some_and(|open| {
                matches!(open.kind, Container::Item) && open.end == self.tree.end(node)
            });
        if is_empty && is_whole_item {
            self.lines.line("");
        } else if !self.is_plain(node) {
            self.html(node);
        } else {
            let text = inline::text(self.tree, node, inline::InlineContainer::Paragraph);
            self.lines.lines(&text);
        }
    }

    fn heading(&mut self, node: usize, level: u8) {
        if space::of(self.tree, node) != SpaceMarkup::Plain {
            return self.html(node);
        }
        let text = inline::text(self.tree, node, inline::InlineContainer::Heading);
        let marker = "#".repeat(level.into());
        self.lines.line(format!("{marker} {text}").trim_end_matches(' '));
    }

    fn code_block(&mut self, node: usize) {
        let code: String = self
            .tree
            .children(node)
            .filter_map(|child| match self.tree.kind(child) {
                NodeKind::Text { start, end, .. } => Some(self.tree.text(start, end)),
                _ => None,
            })
            .collect();
        let language = match self.tree.kind(node) {
            NodeKind::CodeBlock(Some(language)) => self.tree.language(language),
            _ => "",
        };
        let fence = "`".repeat(escape::longest_run(&code, '`').max(2) + 1);
        self.lines.line(&format!("{fence}{}", escape::info(language)));
        if !code.is_empty() {
            self.lines.lines(&code);
        }
        self.lines.line(&fence);
    }

    fn list(&mut self, node: usize, marker: Marker) {
        let number = match self.tree.kind(node) {
            NodeKind::OrderedList(list) => {
                let list = self.tree.list(list);
                if list.list_type.is_some() || !(0..=NUMBER_MAX).contains(&list.start) {
                    return self.html(node);
                }
                list.start
            }
            NodeKind::TaskList if !self.is_plain_task_list(node) => return self.html(node),
            _ => 1,
        };
        self.enter(node, Container::List { tight: self.is_tight(node), marker, number });
    }

    /// Returns true if each item begins with text, as Markdown requires text after the box of a
    /// task.
    fn is_plain_task_list(&self, list: usize) -> bool {
        self.tree.children(list).all(|item| self.is_plain(item + 1))
    }

    /// Returns true if Markdown can represent the paragraph. It has no empty paragraphs, and a line
    /// break at the beginning would start a block of HTML.
    fn is_plain(&self, paragraph: usize) -> bool {
        let first = self.tree.children(paragraph).next();
        first.is_some_and(|first| matches!(self.tree.kind(first), NodeKind::Text { .. }))
            && space::of(self.tree, paragraph) == SpaceMarkup::Plain
    }

    /// Returns true if every item has at most a paragraph and a list, so that no blank lines are
    /// needed.
    fn is_tight(&self, list: usize) -> bool {
        self.tree.children(list).all(|item| {
            let mut blocks = self.tree.children(item).enumerate();
            blocks.all(|(number, block)| match self.tree.kind(block).node_type() {
                NodeType::Paragraph => {
                    let only = self.tree.end(block) == self.tree.end(item);
                    let empty = self.tree.end(block) == block + 1;
                    number == 0 && (self.is_plain(block) || (only && empty))
                }
                // Between two lists, a blank line is required for the second list's markers to be
                // recognised.
                NodeType::BulletList | NodeType::OrderedList | NodeType::TaskList => {
                    number == 1 && self.interrupts_paragraph(block)
                }
                _ => false,
            })
        })
    }

    /// Returns true if a list may follow a paragraph without a blank line (CommonMark, section
    /// 5.2).
    fn interrupts_paragraph(&self, list: usize) -> bool {
        let counts_from_one = match self.tree.kind(list) {
            NodeKind::OrderedList(list) => {
                let list = self.tree.list(list);
                list.start == 1 && list.list_type.is_none()
            }
            _ => true,
        };
        // The list, its first item, and that item's paragraph.
        counts_from_one && self.is_plain(list + 2)
    }

    fn item(&mut self, node: usize, before: Option<usize>, tight: bool) {
        if before.is_some() && !tight {
            self.lines.blank();
        }
        let Some(OpenContainer { kind: Container::List { marker, number, .. }, .. }) =
            self.open.last_mut()
        else {
            return;
        };
        let mut bullet = match marker {
            Marker::Dash => "- ".to_owned(),
            Marker::Star => "* ".to_owned(),
            Marker::Dot => format!("{number}. "),
            Marker::Parenthesis => format!("{number}) "),
        };
        *number += 1;
        let indent = " ".repeat(bullet.len());
        match self.tree.kind(node) {
            NodeKind::TaskItem { checked: true } => bullet.push_str("[x] "),
            NodeKind::TaskItem { checked: false } => bullet.push_str("[ ] "),
            _ => {}
        }
        self.lines.push_prefix(&bullet, &indent);
        self.enter(node, Container::Item);
    }

    /// Renders a block as HTML, without blank lines, which would end it in Markdown. Only a `pre`
    /// may have them.
    fn html(&mut self, node: usize) {
        let html = html::html_of(self.tree, node);
        if matches!(self.tree.kind(node), NodeKind::CodeBlock(_)) {
            self.lines.lines(&html);
        } else {
            self.lines.line(&html.replace('\r', "&#13;").replace('\n', "&#10;"));
        }
    }
}
