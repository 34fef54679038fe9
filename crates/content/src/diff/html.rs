//! The diff as HTML: the tree after, with the deleted parts of the tree before.
//!
//! All elements besides `ins`, `del` and `span` are the ones of the renderer of trees. These three
//! are never children of lists, tables or rows.

use super::describe::{describe_marks, describe_node};
use super::inline::{InlineChange, InlinePiece, visit_changes};
use super::steps::{DiffStep, DiffSteps};
use crate::marks::Marks;
use crate::render::{Renderer, escape_attribute, escape_text};
use crate::schema::NodeType;
use crate::tree::{Tree, WalkStep};

/// Renders the steps, or returns `None` if the HTML exceeds `max` bytes.
pub(super) fn render(steps: &DiffSteps<'_>, max: usize) -> Option<String> {
    let nodes = steps.before.nodes().len() + steps.after.nodes().len();
    let mut renderer = HtmlDiffRenderer { steps, html: Renderer::new(steps.after, nodes), max };
    for step in &steps.list {
        renderer.step(*step);
        if renderer.html.html.len() > max {
            return None;
        }
    }
    Some(renderer.html.html)
}

/// The elements and the attribute value of a whole block that is deleted or inserted.
#[derive(Clone, Copy)]
struct BlockMarkup {
    open: &'static str,
    close: &'static str,
    description: &'static str,
}

const DELETED: BlockMarkup = BlockMarkup { open: "<del>", close: "</del>", description: "deleted" };
const INSERTED: BlockMarkup =
    BlockMarkup { open: "<ins>", close: "</ins>", description: "inserted" };

struct HtmlDiffRenderer<'s, 't> {
    steps: &'s DiffSteps<'t>,
    html: Renderer<'t>,
    max: usize,
}

impl<'t> HtmlDiffRenderer<'_, 't> {
    fn step(&mut self, step: DiffStep) {
        let (old_tree, new_tree) = (self.steps.before, self.steps.after);
        match step {
            DiffStep::Equal { after, count } => {
                self.html.switch(new_tree);
                let mut node = after as usize;
                for _ in 0..count {
                    self.html.subtree(node);
                    node = new_tree.end(node);
                }
            }
            DiffStep::Delete { node } => self.block(old_tree, node as usize, DELETED),
            DiffStep::Insert { node } => self.block(new_tree, node as usize, INSERTED),
            DiffStep::Enter { before, after } => {
                self.html.switch(new_tree);
                self.enter(after as usize, &describe_node(self.steps, before, after));
            }
            DiffStep::Leave { after } => {
                self.html.switch(new_tree);
                self.html.leave(after as usize);
            }
            DiffStep::Textblock { before, after, first_run, end_run } => {
                self.html.switch(new_tree);
                self.enter(after as usize, &describe_node(self.steps, before, after));
                let runs = &self.steps.runs[first_run as usize..end_run as usize];
                let allows_marks = new_tree.kind(after as usize).node_type().allows_marks();
                visit_changes(self.steps, (before, after), runs, |change| {
                    self.inline(change, allows_marks);
                });
                self.html.switch(new_tree);
                self.html.leave(after as usize);
            }
        }
    }

    /// Renders a node's start tag with a description of its change.
    fn enter(&mut self, node: usize, description: &str) {
        let start = self.html.html.len();
        self.html.enter(node);
        if description.is_empty() {
            return;
        }
        let name_end = self.html.html[start..].find([' ', '>']).map(|at| start + at);
        let mut attribute = " data-diff=\"".to_owned();
        escape_attribute(&mut attribute, description);
        attribute.push('"');
        if let Some(at) = name_end {
            self.html.html.insert_str(at, &attribute);
        }
    }

    /// Renders a whole block. The element is inside of items and cells, which have no other parent
    /// than lists and rows, and around any other block.
    fn block(&mut self, tree: &'t Tree, block: usize, markup: BlockMarkup) {
        self.html.switch(tree);
        let mut wrapped = None;
        for step in tree.walk_from(block) {
            match step {
                WalkStep::Enter(node) if wrapped.is_none() => match tree.kind(node).node_type() {
                    NodeType::TableRow => self.enter(node, markup.description),
                    NodeType::ListItem
                    | NodeType::TaskItem
                    | NodeType::TableCell
                    | NodeType::TableHeader => {
                        self.enter(node, markup.description);
                        self.html.html.push_str(markup.open);
                        wrapped = Some((node, true));
                    }
                    _ => {
                        self.html.html.push_str(markup.open);
                        self.html.enter(node);
                        wrapped = Some((node, false));
                    }
                },
                WalkStep::Enter(node) => self.html.enter(node),
                WalkStep::Leave(node) => {
                    match wrapped.filter(|(outermost, _)| *outermost == node) {
                        Some((_, is_inside)) => {
                            if is_inside {
                                self.html.html.push_str(markup.close);
                            }
                            self.html.leave(node);
                            if !is_inside {
                                self.html.html.push_str(markup.close);
                            }
                            wrapped = None;
                        }
                        None => self.html.leave(node),
                    }
                }
            }
        }
    }

    fn inline(&mut self, change: InlineChange<'t>, allows_marks: bool) {
        if self.html.html.len() > self.max {
            return;
        }
        match change {
            InlineChange::Keep(piece) => self.piece(self.steps.after, piece, "", ""),
            InlineChange::Delete(piece) => {
                // A deleted text may be in a code block that was a paragraph.
                let marks = if allows_marks { piece.marks } else { Marks::default() };
                let piece = InlinePiece { marks, ..piece };
                self.piece(self.steps.before, piece, "<del>", "</del>");
            }
            InlineChange::Insert(piece) => self.piece(self.steps.after, piece, "<ins>", "</ins>"),
            InlineChange::Format { before, after } => self.format(before, after),
        }
    }

    fn format(&mut self, before: Marks, piece: InlinePiece<'t>) {
        let mut open = "<span data-diff=\"".to_owned();
        escape_attribute(&mut open, &describe_marks(self.steps, before, piece.marks));
        open.push_str("\">");
        self.piece(self.steps.after, piece, &open, "</span>");
    }

    fn piece(&mut self, tree: &'t Tree, piece: InlinePiece<'t>, open: &str, close: &str) {
        self.html.switch(tree);
        self.html.change_marks(piece.marks);
        let html = &mut self.html.html;
        html.push_str(open);
        match piece.text {
            Some(text) => escape_text(html, text),
            None => html.push_str("<br>"),
        }
        html.push_str(close);
    }
}
