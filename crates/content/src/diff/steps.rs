//! The steps of a diff, as one list in document order. The renderers read it without recursion.

use crate::marks::{Mark, Marks};
use crate::tree::Tree;

/// A step. Nodes are indexes into the tree before or after.
#[derive(Debug, Clone, Copy)]
pub(super) enum DiffStep {
    /// Siblings that are equal on both sides.
    Equal { after: u32, count: u32 },
    /// A node that the tree after lacks.
    Delete { node: u32 },
    /// A node that the tree before lacks.
    Insert { node: u32 },
    /// A node with changes. The steps of its children follow, up to `Leave`.
    Enter { before: u32, after: u32 },
    /// The end of the steps of the children of a node, which is an index into the tree after.
    Leave { after: u32 },
    /// A textblock with changes, and its equal runs as a range of the table.
    Textblock { before: u32, after: u32, first_run: u32, end_run: u32 },
}

/// A run that is equal in two sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EqualRun {
    pub(super) before: u32,
    pub(super) after: u32,
    pub(super) len: u32,
}

/// The steps between two trees.
#[derive(Debug)]
pub(super) struct DiffSteps<'t> {
    pub(super) before: &'t Tree,
    pub(super) after: &'t Tree,
    pub(super) list: Vec<DiffStep>,
    /// The equal runs of all changed textblocks, in the units of `inline`.
    pub(super) runs: Vec<EqualRun>,
}

impl DiffSteps<'_> {
    /// Returns true if two sets of marks are the same, with equal links and colours.
    pub(super) fn same_marks(&self, before: Marks, after: Marks) -> bool {
        before.flags == after.flags
            && before.link.map(|id| self.before.link(id))
                == after.link.map(|id| self.after.link(id))
            && before.highlight.map(|id| self.before.color(id))
                == after.highlight.map(|id| self.after.color(id))
    }

    /// Returns the marks of each set that the other set lacks.
    pub(super) fn mark_changes(&self, before: Marks, after: Marks) -> (Vec<Mark>, Vec<Mark>) {
        let same = |old: Mark, new: Mark| match (old, new) {
            (Mark::Link(old), Mark::Link(new)) => self.before.link(old) == self.after.link(new),
            (Mark::Highlight(old), Mark::Highlight(new)) => {
                self.before.color(old) == self.after.color(new)
            }
            (old, new) => old == new,
        };
        let removed = before.iter().filter(|old| !after.iter().any(|new| same(*old, new)));
        let added = after.iter().filter(|new| !before.iter().any(|old| same(old, *new)));
        (removed.collect(), added.collect())
    }
}

/// Converts an index to 32 bits, as the trees' own indexes are.
pub(super) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a document is smaller than 4 GiB")
}
