//! Ids for the nodes of two trees. Nodes that are equal with all descendants have equal ids.

use foldhash::HashMap;

use super::steps::index;
use crate::marks::{Link, Marks};
use crate::node::{CellAttrs, ImageAttrs, ListAttrs, NodeKind};
use crate::schema::NodeType;
use crate::tree::{Tree, WalkStep};

/// The ids of all nodes of two trees, by index.
pub(super) struct SubtreeIds {
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
}

/// A node without its descendants.
#[derive(PartialEq, Eq, Hash)]
enum NodeValue<'t> {
    Plain(NodeType),
    Heading(u8),
    OrderedList(&'t ListAttrs),
    TaskItem(bool),
    CodeBlock(Option<&'t str>),
    Image(&'t ImageAttrs),
    Cell(NodeType, &'t CellAttrs),
    HardBreak(u32),
    Text(u32, &'t str),
}

/// Marks with the values of their attributes.
type MarksValue<'t> = (u8, Option<&'t Link>, Option<&'t str>);

/// A node is the pair of its value and its first child, paired with each further child.
#[derive(Default)]
struct SubtreeInterner<'t> {
    marks: HashMap<MarksValue<'t>, u32>,
    values: HashMap<NodeValue<'t>, u32>,
    pairs: HashMap<(u32, u32), u32>,
    /// The number of ids of values and pairs.
    len: u32,
}

/// Returns the ids of two trees.
pub(super) fn subtree_ids(before: &Tree, after: &Tree) -> SubtreeIds {
    let mut interner = SubtreeInterner::default();
    SubtreeIds { before: interner.tree(before), after: interner.tree(after) }
}

impl<'t> SubtreeInterner<'t> {
    fn tree(&mut self, tree: &'t Tree) -> Vec<u32> {
        let marks: Vec<u32> =
            tree.all_marks().iter().map(|marks| self.marks(tree, *marks)).collect();
        let mut ids = vec![0; tree.nodes().len()];
        let mut parents: Vec<usize> = Vec::new();
        for step in tree.walk() {
            match step {
                WalkStep::Enter(node) => {
                    ids[node] = self.value(node_value(tree, node, &marks));
                    parents.push(node);
                }
                WalkStep::Leave(node) => {
                    parents.pop();
                    if let Some(&parent) = parents.last() {
                        ids[parent] = self.pair(ids[parent], ids[node]);
                    }
                }
            }
        }
        ids
    }

    fn marks(&mut self, tree: &'t Tree, marks: Marks) -> u32 {
        let link = marks.link.map(|id| tree.link(id));
        let highlight = marks.highlight.map(|id| tree.color(id));
        let next = index(self.marks.len());
        *self.marks.entry((marks.flags, link, highlight)).or_insert(next)
    }

    fn value(&mut self, value: NodeValue<'t>) -> u32 {
        let len = &mut self.len;
        *self.values.entry(value).or_insert_with(|| next_id(len))
    }

    fn pair(&mut self, node: u32, child: u32) -> u32 {
        let len = &mut self.len;
        *self.pairs.entry((node, child)).or_insert_with(|| next_id(len))
    }
}

fn next_id(len: &mut u32) -> u32 {
    *len += 1;
    *len - 1
}

/// Returns a node's value. `marks` has the ids of the tree's marks.
fn node_value<'t>(tree: &'t Tree, node: usize, marks: &[u32]) -> NodeValue<'t> {
    let kind = tree.kind(node);
    match kind {
        NodeKind::Heading { level } => NodeValue::Heading(level),
        NodeKind::OrderedList(list) => NodeValue::OrderedList(tree.list(list)),
        NodeKind::TaskItem { checked } => NodeValue::TaskItem(checked),
        NodeKind::CodeBlock(language) => {
            NodeValue::CodeBlock(language.map(|language| tree.language(language)))
        }
        NodeKind::Image(image) => NodeValue::Image(tree.image(image)),
        NodeKind::TableCell(cell) | NodeKind::TableHeader(cell) => {
            NodeValue::Cell(kind.node_type(), tree.cell(cell))
        }
        NodeKind::HardBreak { marks: id } => NodeValue::HardBreak(marks[id.0 as usize]),
        NodeKind::Text { start, end, marks: id } => {
            NodeValue::Text(marks[id.0 as usize], tree.text(start, end))
        }
        _ => NodeValue::Plain(kind.node_type()),
    }
}
