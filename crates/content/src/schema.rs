//! The schema: the content expressions of each node type, and the wrappings that follow from them.
//!
//! `node` has the attributes, `marks` the marks, and `parse::context` fits HTML into the schema.
//! Every content expression here has at most two states (before and after the first child), so a
//! state is the `bool` `started`.

use std::collections::VecDeque;
use std::sync::LazyLock;

use crate::names::named_enum;

named_enum! {
    /// The node types, with their names in the JSON.
    NodeType {
        Doc = "doc",
        Paragraph = "paragraph",
        Heading = "heading",
        Blockquote = "blockquote",
        BulletList = "bulletList",
        OrderedList = "orderedList",
        ListItem = "listItem",
        TaskList = "taskList",
        TaskItem = "taskItem",
        CodeBlock = "codeBlock",
        HorizontalRule = "horizontalRule",
        Image = "image",
        Table = "table",
        TableRow = "tableRow",
        TableCell = "tableCell",
        TableHeader = "tableHeader",
        HardBreak = "hardBreak",
        Text = "text",
    }
}

/// The content expression of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentExpr {
    /// `block+`
    Blocks,
    /// `inline*`
    Inline,
    /// `text*`, without marks
    Text,
    /// `listItem+`
    ListItems,
    /// `taskItem+`
    TaskItems,
    /// `paragraph block*`
    ItemBody,
    /// `tableRow+`
    Rows,
    /// `(tableCell | tableHeader)*`
    Cells,
    /// Nothing, for a leaf.
    Nothing,
}

/// The block group, in the order in which wrappings are searched.
const BLOCKS: [NodeType; 10] = [
    NodeType::Paragraph,
    NodeType::Blockquote,
    NodeType::BulletList,
    NodeType::CodeBlock,
    NodeType::Heading,
    NodeType::HorizontalRule,
    NodeType::OrderedList,
    NodeType::Table,
    NodeType::Image,
    NodeType::TaskList,
];

impl NodeType {
    pub(crate) fn content(self) -> ContentExpr {
        match self {
            Self::Doc | Self::Blockquote | Self::TableCell | Self::TableHeader => {
                ContentExpr::Blocks
            }
            Self::Paragraph | Self::Heading => ContentExpr::Inline,
            Self::CodeBlock => ContentExpr::Text,
            Self::BulletList | Self::OrderedList => ContentExpr::ListItems,
            Self::TaskList => ContentExpr::TaskItems,
            Self::ListItem | Self::TaskItem => ContentExpr::ItemBody,
            Self::Table => ContentExpr::Rows,
            Self::TableRow => ContentExpr::Cells,
            Self::HorizontalRule | Self::Image | Self::HardBreak | Self::Text => {
                ContentExpr::Nothing
            }
        }
    }

    pub(crate) fn is_leaf(self) -> bool {
        self.content() == ContentExpr::Nothing
    }

    pub(crate) fn is_inline(self) -> bool {
        matches!(self, Self::HardBreak | Self::Text)
    }

    /// Returns true if text is a direct child of this node.
    pub(crate) fn is_textblock(self) -> bool {
        matches!(self.content(), ContentExpr::Inline | ContentExpr::Text)
    }

    /// Returns true if the inline children may have marks.
    pub(crate) fn allows_marks(self) -> bool {
        self.content() == ContentExpr::Inline
    }

    /// Returns the required child of a node that has no other.
    pub(crate) fn filler(self) -> Option<NodeType> {
        let content = self.content();
        if content.may_end(false) { None } else { content.next(false).first().copied() }
    }

    /// Returns the nodes to open, outermost first, so that `target` can be a descendant of this
    /// node.
    ///
    /// The result is empty if it fits directly, and `None` if no nesting makes it fit. It is the
    /// first of the shortest nestings.
    pub(crate) fn find_wrapping(self, started: bool, target: NodeType) -> Option<&'static [Self]> {
        static TABLE: LazyLock<Vec<Option<Box<[NodeType]>>>> = LazyLock::new(all_wrappings);
        let types = NodeType::ALL.len();
        let row = (self as usize) * 2 + usize::from(started);
        TABLE[row * types + target as usize].as_deref()
    }
}

impl ContentExpr {
    /// Returns the node types that may be the next child.
    pub(crate) fn next(self, started: bool) -> &'static [NodeType] {
        match self {
            Self::Blocks => &BLOCKS,
            Self::Inline => &[NodeType::HardBreak, NodeType::Text],
            Self::Text => &[NodeType::Text],
            Self::ListItems => &[NodeType::ListItem],
            Self::TaskItems => &[NodeType::TaskItem],
            Self::ItemBody if started => &BLOCKS,
            Self::ItemBody => &[NodeType::Paragraph],
            Self::Rows => &[NodeType::TableRow],
            Self::Cells => &[NodeType::TableCell, NodeType::TableHeader],
            Self::Nothing => &[],
        }
    }

    pub(crate) fn allows(self, started: bool, child: NodeType) -> bool {
        self.next(started).contains(&child)
    }

    /// Returns true if the node may end in this state.
    pub(crate) fn may_end(self, started: bool) -> bool {
        started || matches!(self, Self::Inline | Self::Text | Self::Cells | Self::Nothing)
    }
}

fn all_wrappings() -> Vec<Option<Box<[NodeType]>>> {
    let mut table = Vec::new();
    for &parent in NodeType::ALL {
        for started in [false, true] {
            for &target in NodeType::ALL {
                table.push(search_wrapping(parent.content(), started, target));
            }
        }
    }
    table
}

/// Searches breadth-first, which finds a shortest nesting.
fn search_wrapping(
    content: ContentExpr,
    started: bool,
    target: NodeType,
) -> Option<Box<[NodeType]>> {
    let mut seen = Vec::new();
    let mut queue = VecDeque::from([(content, started, Vec::new())]);
    while let Some((content, started, path)) = queue.pop_front() {
        if content.allows(started, target) {
            return Some(path.into());
        }
        for &wrapper in content.next(started) {
            if wrapper.is_leaf() || seen.contains(&wrapper) {
                continue;
            }
            seen.push(wrapper);
            let mut longer = path.clone();
            longer.push(wrapper);
            queue.push_back((wrapper.content(), false, longer));
        }
    }
    None
}
