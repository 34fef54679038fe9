//! Finds every node its place in the tree: what is open, what has to be opened around a node or
//! closed before it, and what white space is left of a text.
//!
//! This follows ProseMirror's DOM parser step for step, since its behaviour at the edges is what
//! "equal to TipTap" means. `rules` decides what an element is, `walk` the order of things.
//!
//! Open nodes form a stack. Those above `top` are closed in effect but not yet finished: whoever
//! adds the next node finishes them, or steps back into one of them.

use super::whitespace;
use crate::error::ContentError;
use crate::limits::Limits;
use crate::marks::Marks;
use crate::node::{CellAttrs, Kind};
use crate::schema::NodeType;
use crate::tree::{Tree, TreeBuilder};

/// A tree in the making.
pub(crate) struct Context {
    pub(crate) builder: TreeBuilder,
    stack: Vec<Open>,
    top: usize,
    opened: u32,
    tree_depth: usize,
    /// Whether an element around says that white space is to be kept.
    pub(crate) keeps_space: bool,
}

/// A node that may still get children.
#[derive(Debug)]
struct Open {
    id: u32,
    node: usize,
    node_type: NodeType,
    /// Whether a child has been matched against the content expression.
    started: bool,
    has_children: bool,
    /// Where the last text begins, if the last child is one.
    last_text: Option<usize>,
    /// Whether an element stands for this node, rather than the need to wrap something.
    solid: bool,
    space: Space,
}

/// What happens to white space in a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Collapsed,
    /// Kept, line ends as spaces or line breaks.
    Kept,
    /// Kept as it is.
    Verbatim,
}

/// An open node, to be recognised later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenNode {
    place: usize,
    id: u32,
}

impl Context {
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut builder = TreeBuilder::new();
        let doc = builder.open(Kind::Doc);
        let open = Open {
            id: 0,
            node: doc,
            node_type: NodeType::Doc,
            started: false,
            has_children: false,
            last_text: None,
            solid: true,
            space: Space::Collapsed,
        };
        Self {
            builder,
            stack: vec![open],
            top: 0,
            opened: 0,
            tree_depth: limits.tree_depth,
            keeps_space: false,
        }
    }

    /// Closes everything and returns the tree.
    pub(crate) fn finish(mut self) -> Result<Tree, ContentError> {
        self.top = 0;
        self.finish_closed()?;
        self.finish_last()?;
        Ok(self.builder.finish())
    }

    pub(crate) fn top(&self) -> OpenNode {
        OpenNode { place: self.top, id: self.stack[self.top].id }
    }

    /// Whether what comes next may have marks: not in a code block.
    pub(crate) fn takes_marks(&self) -> bool {
        self.stack[self.top].node_type != NodeType::CodeBlock
    }

    pub(crate) fn is_in_textblock(&self) -> bool {
        self.stack[self.top].node_type.is_textblock()
    }

    /// Steps out of a textblock that has something in it, as an unknown block element does.
    pub(crate) fn leave_textblock(&mut self) {
        let top = &self.stack[self.top];
        if self.top > 0 && top.has_children && top.node_type.is_textblock() {
            self.top -= 1;
        }
    }

    /// Goes back to an open node; says whether it was still open.
    pub(crate) fn go_back(&mut self, to: OpenNode) -> bool {
        let found = to.place <= self.top && self.stack[to.place].id == to.id;
        if self.keeps_space {
            let left = if found { to.place + 1 } else { 0 };
            for open in &mut self.stack[left..=self.top] {
                if open.space == Space::Collapsed {
                    open.space = Space::Kept;
                }
            }
        }
        if found {
            self.top = to.place;
        }
        found
    }

    /// Goes back to an open node and closes it.
    pub(crate) fn close(&mut self, node: OpenNode) {
        if self.go_back(node) {
            self.top -= 1;
        }
    }

    /// Opens the node of an element; `None` if no place is found for it.
    pub(crate) fn enter(&mut self, kind: Kind) -> Result<Option<OpenNode>, ContentError> {
        if !self.find_place(kind.node_type(), false)? {
            return Ok(None);
        }
        self.open(kind, true)?;
        Ok(Some(self.top()))
    }

    /// Inserts a leaf; says whether a place was found for it.
    ///
    /// A cautious search doesn't leave the node of an element.
    pub(crate) fn insert_leaf(
        &mut self,
        kind: Kind,
        marks: Marks,
        cautious: bool,
    ) -> Result<bool, ContentError> {
        if !self.make_room(kind.node_type(), cautious)? {
            return Ok(false);
        }
        let kind = match kind {
            Kind::HardBreak { .. } => Kind::HardBreak { marks: self.builder.marks(marks) },
            other => other,
        };
        self.builder.leaf(kind);
        self.stack[self.top].last_text = None;
        Ok(true)
    }

    /// Adds the text of a text node. `after_break` says that an element `br` stands right before.
    pub(crate) fn add_text(
        &mut self,
        text: &str,
        marks: Marks,
        after_break: bool,
    ) -> Result<(), ContentError> {
        let top = &self.stack[self.top];
        let space = match top.space {
            Space::Collapsed if self.keeps_space => Space::Kept,
            space => space,
        };
        let counts = top.node_type.is_textblock() || !whitespace::is_blank(text);
        match space {
            Space::Verbatim => self.insert_text(&whitespace::with_line_feeds(text), marks),
            _ if !counts => Ok(()),
            Space::Kept => self.add_kept_text(text, marks),
            Space::Collapsed => {
                let collapsed = whitespace::collapse(text);
                let cut = usize::from(
                    whitespace::starts_with_space(&collapsed) && self.drops_space(after_break),
                );
                self.insert_text(&collapsed[cut..], marks)
            }
        }
    }

    /// Whether a space would be the first thing in its block or line, or the second space in a row.
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

    /// Adds text whose white space is kept, with line breaks for its line ends where they fit.
    fn add_kept_text(&mut self, text: &str, marks: Marks) -> Result<(), ContentError> {
        let text = whitespace::with_line_feeds(text);
        let top = &self.stack[self.top];
        let breaks_fit = top.node_type.find_wrapping(top.started, NodeType::HardBreak).is_some();
        if !breaks_fit {
            return self.insert_text(&text.replace('\n', " "), marks);
        }
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                let hard_break = Kind::HardBreak { marks: self.builder.marks(marks) };
                self.insert_leaf(hard_break, marks, true)?;
            }
            self.insert_text(line, marks)?;
        }
        Ok(())
    }

    fn insert_text(&mut self, text: &str, marks: Marks) -> Result<(), ContentError> {
        let cautious = whitespace::is_invisible(text);
        if text.is_empty() || !self.make_room(NodeType::Text, cautious)? {
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
    /// Finds a place for a leaf and makes it the end of the innermost open node.
    fn make_room(&mut self, leaf: NodeType, cautious: bool) -> Result<bool, ContentError> {
        if !self.find_place(leaf, cautious)? {
            return Ok(false);
        }
        self.finish_closed()?;
        self.check_depth(self.top + 1)?;
        let top = &mut self.stack[self.top];
        top.started = true;
        top.has_children = true;
        Ok(true)
    }

    /// Goes to the open node in which the new one can stand with the least around it, and opens
    /// that. Leaving the node of an element costs as much as two nodes around.
    fn find_place(&mut self, target: NodeType, cautious: bool) -> Result<bool, ContentError> {
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
        self.go_back(OpenNode { place, id: self.stack[place].id });
        for &wrapper in route {
            let kind = self.default_kind(wrapper);
            self.open(kind, false)?;
        }
        Ok(true)
    }

    fn open(&mut self, kind: Kind, solid: bool) -> Result<(), ContentError> {
        self.finish_closed()?;
        self.check_depth(self.top + 1)?;
        self.opened += 1;
        let parent = &mut self.stack[self.top];
        parent.started = true;
        let node_type = kind.node_type();
        let space = if node_type == NodeType::CodeBlock { Space::Verbatim } else { parent.space };
        let node = self.builder.open(kind);
        self.stack.push(Open {
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

    /// Finishes the nodes that are closed in effect.
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

    /// Takes the innermost node off the stack: cuts white space at its end and puts in what the
    /// schema requires of it.
    fn finish_last(&mut self) -> Result<(), ContentError> {
        let depth = self.stack.len();
        let Some(open) = self.stack.pop() else { return Ok(()) };
        if open.space == Space::Collapsed
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

    /// Appends a node with what is required in it.
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

    /// A node with the default attributes.
    fn default_kind(&mut self, node_type: NodeType) -> Kind {
        match node_type {
            NodeType::BulletList => Kind::BulletList,
            NodeType::ListItem => Kind::ListItem,
            NodeType::TaskList => Kind::TaskList,
            NodeType::TaskItem => Kind::TaskItem { checked: false },
            NodeType::Table => Kind::Table,
            NodeType::TableRow => Kind::TableRow,
            NodeType::TableCell => Kind::TableCell(self.builder.cell(CellAttrs::default())),
            // Nothing else is ever opened around a node or filled in.
            _ => Kind::Paragraph,
        }
    }
}
