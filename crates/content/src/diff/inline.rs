//! The inline content of two textblocks, piece by piece.
//!
//! Positions count bytes of text from the start of the textblock, and one for a line break.

use super::steps::{DiffSteps, EqualRun};
use crate::marks::Marks;
use crate::node::NodeKind;
use crate::tree::Tree;

/// A part of a text with the same marks, or a line break.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlinePiece<'t> {
    /// `None` for a line break.
    pub(super) text: Option<&'t str>,
    pub(super) marks: Marks,
}

impl InlinePiece<'_> {
    /// Returns the length in UTF-16 code units, as in ProseMirror. A line break counts one.
    pub(super) fn utf16_len(&self) -> usize {
        self.text.map_or(1, |text| text.chars().map(char::len_utf16).sum())
    }
}

/// A change of a piece. Only the marks of a kept piece may differ.
#[derive(Debug, Clone, Copy)]
pub(super) enum InlineChange<'t> {
    Keep(InlinePiece<'t>),
    Format { before: Marks, after: InlinePiece<'t> },
    Delete(InlinePiece<'t>),
    Insert(InlinePiece<'t>),
}

/// A position in the inline content of a textblock.
struct InlineCursor<'t> {
    tree: &'t Tree,
    node: usize,
    end: usize,
    /// The bytes of the node that are passed.
    offset: usize,
    position: usize,
}

impl<'t> InlineCursor<'t> {
    fn new(tree: &'t Tree, textblock: usize) -> Self {
        Self { tree, node: textblock + 1, end: tree.end(textblock), offset: 0, position: 0 }
    }

    /// Returns the rest of the current node, at most up to a position.
    fn peek(&self, limit: usize) -> Option<(InlinePiece<'t>, usize)> {
        if self.node >= self.end || self.position >= limit {
            return None;
        }
        let (text, marks) = match self.tree.kind(self.node) {
            NodeKind::Text { start, end, marks } => {
                let rest = &self.tree.text(start, end)[self.offset..];
                (Some(&rest[..rest.len().min(limit - self.position)]), marks)
            }
            NodeKind::HardBreak { marks } => (None, marks),
            _ => return None,
        };
        let piece = InlinePiece { text, marks: self.tree.marks(marks) };
        Some((piece, text.map_or(1, str::len)))
    }

    fn advance(&mut self, len: usize) {
        self.position += len;
        self.offset += len;
        let node_len = match self.tree.kind(self.node) {
            NodeKind::Text { start, end, .. } => (end - start) as usize,
            _ => 1,
        };
        if self.offset == node_len {
            self.node += 1;
            self.offset = 0;
        }
    }
}

/// Visits the changes between two textblocks in order, with deletions before insertions.
pub(super) fn visit_changes<'t>(
    steps: &DiffSteps<'t>,
    (before, after): (u32, u32),
    runs: &[EqualRun],
    mut visit: impl FnMut(InlineChange<'t>),
) {
    let mut old = InlineCursor::new(steps.before, before as usize);
    let mut new = InlineCursor::new(steps.after, after as usize);
    let end = EqualRun { before: u32::MAX, after: u32::MAX, len: 0 };
    for run in runs.iter().copied().chain([end]) {
        while let Some((piece, len)) = old.peek(run.before as usize) {
            old.advance(len);
            visit(InlineChange::Delete(piece));
        }
        while let Some((piece, len)) = new.peek(run.after as usize) {
            new.advance(len);
            visit(InlineChange::Insert(piece));
        }
        let limit = new.position + run.len as usize;
        while let Some((piece, new_len)) = new.peek(limit)
            && let Some((old_piece, old_len)) = old.peek(old.position + limit - new.position)
        {
            let len = old_len.min(new_len);
            old.advance(len);
            new.advance(len);
            let piece = InlinePiece { text: piece.text.map(|text| &text[..len]), ..piece };
            visit(if steps.same_marks(old_piece.marks, piece.marks) {
                InlineChange::Keep(piece)
            } else {
                InlineChange::Format { before: old_piece.marks, after: piece }
            });
        }
    }
}
