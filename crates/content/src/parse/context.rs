//! Inserts nodes into the tree: finds the open node for each, opens the wrappers that it needs,
//! closes nodes before it, and collapses white space.
//!
//! This follows ProseMirror's DOM parser step by step, as equality with TipTap includes its
//! behaviour in edge cases. `rules` decides the meaning of an element, and `walk` the order of
//! insertions.
//!
//! Open nodes form a stack. Nodes above `top` are logically closed but not finished yet. The next
//! insertion finishes them, or makes one of them current again.

use super::whitespace;
use crate::error::ContentError;
use crate::limits::ContentLimits;
use crate::marks::Marks;
use crate::node::{CellAttrs, NodeKind};
use crate::schema::{ContentExpr, NodeType};
use crate::tree::{Tree, TreeBuilder};

/// A tree under construction.
pub(crate) struct Context {
    pub(crate) builder: TreeBuilder,
    stack: Vec<OpenEntry>,
    top: usize,
    opened: u32,
    tree_depth: usize,
    /// True if the last node was placed outside of the list item of its element.
    pub(crate) has_left_item: bool,
    /// True if an enclosing element preserves white space.
    pub(crate) keeps_space: bool,
}

/// A node that may still get children.
#[derive(Debug)]
struct OpenEntry {
    id: u32,
    node: usize,
    node_type: NodeType,
    /// True if a child has been matched against the content expression.
    started: bool,
    has_children: bool,
    /// The start of the last text, if the last child is one.
    last_text: Option<usize>,
    /// True if an element caused this node. False for a wrapper that the schema required.
    solid: bool,
    space: SpaceHandling,
}

/// The handling of white space in a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpaceHandling {
    Collapsed,
    /// Preserved, but line ends become spaces or line breaks.
    Kept,
    /// Preserved as it is.
    Verbatim,
}

/// A reference to an open node, which detects that the node was closed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenNode {
    place: usize,
    id: u32,
}

impl Context {
    pub(crate) fn new(limits: &ContentLimits) -> Self {
        let mut builder = TreeBuilder::new();
        let doc = builder.open(NodeKind::Doc);
        let open = OpenEntry {
            id: 0,
            node: doc,
            node_type: NodeType::Doc,
            started: false,
            has_children: false,
            last_text: None,
            solid: true,
            space: SpaceHandling::Collapsed,
        };
        Self {
            builder,
            stack: vec![open],
            top: 0,
            opened: 0,
            tree_depth: limits.tree_depth,
            has_left_item: false,
            keeps_space: false,
        }
    }

    /// Closes all nodes and returns the tree.
    pub(crate) fn finish(mut self) -> Result<Tree, ContentError> {
        self.top = 0;
        self.finish_closed()?;
        self.finish_last()?;
        Ok(self.builder.finish())
    }

    pub(crate) fn top(&self) -> OpenNode {
        OpenNode { place: self.top, id: self.stack[self.top].id }
    }

    /// Returns true if the next node may have marks, which a code block forbids.
    pub(crate) fn takes_marks(&self) -> bool {
        self.stack[self.top].node_type != NodeType::CodeBlock
    }

    pub(crate) fn is_in_textblock(&self) -> bool {
        self.stack[self.top].node_type.is_textblock()
    }

    /// Closes a non-empty textblock, as an unknown block element does.
    pub(crate) fn close_textblock(&mut self) {
        let top = &self.stack[self.top];
        if self.top > 0 && top.has_children && top.node_type.is_textblock() {
            self.top -= 1;
        }
    }

    /// Makes an open node current again. Returns true if it was still open.
    pub(crate) fn resume(&mut self, to: OpenNode) -> bool {
        let found = to.place <= self.top && self.stack[to.place].id == to.id;
        if self.keeps_space {
            let left = if found { to.place + 1 } else { 0 };
            for open in &mut self.stack[left..=self.top] {
                if open.space == SpaceHandling::Collapsed {
                    open.space = SpaceHandling::Kept;
                }
            }
        }
        if found {
            self.top = to.place;
        }
        found
    }

    /// Closes an open node, and the nodes inside of it.
    pub(crate) fn close(&mut self, node: OpenNode) {
        if self.resume(node) {
            self.top -= 1;
        }
    }

    /// Opens the node of an element. Returns `None` if the schema allows it nowhere.
    pub(crate) fn enter(&mut self, kind: NodeKind) -> Result<Option<OpenNode>, ContentError> {
        if !self.find_parent(kind.node_type(), false)? {
            return Ok(None);
        }
        self.open(kind, true)?;
        Ok(Some(self.top()))
    }

    /// Inserts a leaf. Returns false if the schema allows it nowhere.
    ///
    /// A cautious search doesn't leave the node of an element.
    pub(crate) fn insert_leaf(
        &mut self,
        kind: NodeKind,
        marks: Marks,
        cautious: bool,
    ) -> Result<bool, ContentError> {
        if !self.prepare_leaf(kind.node_type(), cautious)? {
            return Ok(false);
        }
        let kind = match kind {
            NodeKind::HardBreak { .. } => NodeKind::HardBreak { marks: self.builder.marks(marks) },
            other => other,
        };
        self.builder.leaf(kind);
        self.stack[self.top].last_text = None;
        Ok(true)
    }

    /// Adds the text of a text node. `after_break` is true if the preceding sibling is a `br`
    /// element.
    pub(crate) fn add_text(
        &mut self,
        text: &str,
        marks: Marks,
        after_break: bool,
    ) -> Result<(), ContentError> {
        let top = &self.stack[self.top];
        let space = match top.space {
            SpaceHandling::Collapsed if self.keeps_space => SpaceHandling::Kept,
            space => space,
        };
        let counts = top.node_type.is_textblock() || !whitespace::is_blank(text);
        match space {
            SpaceHandling::Verbatim => self.insert_text(&whitespace::with_line_feeds(text), marks),
            _ if !counts => Ok(()),
            SpaceHandling::Kept => self.add_kept_text(text, marks),
            SpaceHandling::Collapsed => {
                let collapsed = whitespace::collapse(text);
                let cut = usize::from(
                    whitespace::starts_with_space(&collapsed) && self.drops_space(after_break),
                );
                self.insert_text(&collapsed[cut..], marks)
            }
        }
    }

    /// Returns true if a space would be the first character of its block or line, or follow another
    /// space.
    fn drops_space(&self, after_break: bool) -> bool {
        let top = &self.stack[self.top];
        let nothing_closed = self.top == self.stack.len() - 1;
        nothing_closed
            && (!top.has_children
                || after_break
                || top
                    .last_text
                    .is_some_and(|from| whitespace::ends_with_space(self.builder.text_from(from))))
    }

    /// Adds text with preserved white space. Line ends become line breaks where the schema allows
    /// them.
    fn add_kept_text(&mut self, text: &str, marks: Marks) -> Result<(), ContentError> {
        let text = whitespace::with_line_feeds(text);
        let top = &self.stack[self.top];
        let breaks_fit = top.node_type.find_wrapping(top.started, NodeType::HardBreak).is_some();
        if !breaks_fit {
            return self.insert_text(&text.replace('\n', " "), marks);
        }
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                let hard_break = NodeKind::HardBreak { marks: self.builder.marks(marks) };
                self.insert_leaf(hard_break, marks, true)?;
            }
            self.insert_text(line, marks)?;
        }
        Ok(())
    }

    fn insert_text(&mut self, text: &str, marks: Marks) -> Result<(), ContentError> {
        let cautious = whitespace::is_invisible(text);
        if text.is_empty() || !self.prepare_leaf(NodeType::Text, cautious)? {
            return Ok(());
        }
        let top = &mut self.stack[self.top];
        let marks = if top.node_type.allows_marks() { marks } else { Marks::default() };
        let marks = self.builder.marks(marks);
        let joins = top.last_text.is_some();
        top.last_text = Some(self.builder.text_len());
        self.builder.text(text, marks, joins);
        Ok(())
    }
}

impl Context {
    /// Finds the node for a leaf, and prepares its insertion at the end of the innermost open node.
    fn prepare_leaf(&mut self, leaf: NodeType, cautious: bool) -> Result<bool, ContentError> {
        if !self.find_parent(leaf, cautious)? {
            return Ok(false);
        }
        self.finish_closed()?;
        self.check_depth(self.top + 1)?;
        let top = &mut self.stack[self.top];
        top.started = true;
        top.has_children = true;
        Ok(true)
    }

    /// Makes the open node current that can contain `target` with the fewest wrappers, and opens
    /// the wrappers.
    ///
    /// Leaving the node of an element costs as much as two wrappers.
    fn find_parent(&mut self, target: NodeType, cautious: bool) -> Result<bool, ContentError> {
        let mut best: Option<(&'static [NodeType], usize)> = None;
        let mut penalty = 0;
        for place in (0..=self.top).rev() {
            let open = &self.stack[place];
            if let Some(found) = open.node_type.find_wrapping(open.started, target)
                && best.is_none_or(|(route, _)| route.len() > found.len() + penalty)
            {
                best = Some((found, place));
                if found.is_empty() {
                    break;
                }
            }
            if open.solid {
                if cautious {
                    break;
                }
                penalty += 2;
            }
        }
        let Some((route, place)) = best else { return Ok(false) };
        let mut left = self.stack[place + 1..=self.top].iter();
        self.has_left_item =
            left.any(|open| open.node_type.content() == ContentExpr::ItemBody && !open.started);
        self.resume(OpenNode { place, id: self.stack[place].id });
        for &wrapper in route {
            let kind = self.default_kind(wrapper);
            self.open(kind, false)?;
        }
        Ok(true)
    }

    fn open(&mut self, kind: NodeKind, solid: bool) -> Result<(), ContentError> {
        self.finish_closed()?;
        self.check_depth(self.top + 1)?;
        self.opened += 1;
        let parent = &mut self.stack[self.top];
        parent.started = true;
        let node_type = kind.node_type();
        let space =
            if node_type == NodeType::CodeBlock { SpaceHandling::Verbatim } else { parent.space };
        let node = self.builder.open(kind);
        self.stack.push(OpenEntry {
            id: self.opened,
            node,
            node_type,
            started: false,
            has_children: false,
            last_text: None,
            solid,
            space,
        });
        self.top += 1;
        Ok(())
    }

    /// Finishes the nodes that are logically closed.
    fn finish_closed(&mut self) -> Result<(), ContentError> {
        while self.stack.len() - 1 > self.top {
            self.finish_last()?;
            if let Some(parent) = self.stack.last_mut() {
                parent.has_children = true;
                parent.last_text = None;
            }
        }
        Ok(())
    }

    /// Pops the innermost node: trims white space at its end, and adds children that the schema
    /// requires.
    fn finish_last(&mut self) -> Result<(), ContentError> {
        let depth = self.stack.len();
        let Some(open) = self.stack.pop() else { return Ok(()) };
        if open.space == SpaceHandling::Collapsed
            && let Some(from) = open.last_text
        {
            let kept = whitespace::trimmed_len(self.builder.text_from(from));
            self.builder.truncate_text(from + kept);
        }
        if !open.started
            && let Some(filler) = open.node_type.filler()
        {
            self.fill(filler, depth)?;
        }
        self.builder.close(open.node);
        Ok(())
    }

    /// Appends a node with its required children.
    fn fill(&mut self, filler: NodeType, depth: usize) -> Result<(), ContentError> {
        self.check_depth(depth)?;
        let kind = self.default_kind(filler);
        let node = self.builder.open(kind);
        if let Some(inner) = filler.filler() {
            self.fill(inner, depth + 1)?;
        }
        self.builder.close(node);
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Result<(), ContentError> {
        if depth > self.tree_depth { Err(ContentError::TooDeep) } else { Ok(()) }
    }

    /// Returns a node with the default attributes.
    fn default_kind(&mut self, node_type: NodeType) -> NodeKind {
        match node_type {
            NodeType::BulletList => NodeKind::BulletList,
            NodeType::ListItem => NodeKind::ListItem,
            NodeType::TaskList => NodeKind::TaskList,
            NodeType::TaskItem => NodeKind::TaskItem { checked: false },
            NodeType::Table => NodeKind::Table,
            NodeType::TableRow => NodeKind::TableRow,
            NodeType::TableCell => NodeKind::TableCell(self.builder.cell(CellAttrs::default())),
            // No other type is a wrapper or a required child.
            _ => NodeKind::Paragraph,
        }
    }
}
