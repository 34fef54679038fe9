//! One node of the tree: its kind and attributes.
//!
//! The nodes are one list in document order, and each stores the end of its descendants. So
//! traversing and dropping a tree don't recurse, and a node takes twenty bytes.

use crate::names::named_enum;
use crate::schema::NodeType;
use crate::value::AttrValue;

/// A node, and the index after its last descendant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) end: u32,
}

/// The kind of a node. Large attributes are indexes into the tree's tables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeKind {
    Doc,
    Paragraph,
    Heading { level: u8 },
    Blockquote,
    BulletList,
    OrderedList(ListId),
    ListItem,
    TaskList,
    TaskItem { checked: bool },
    CodeBlock(Option<LanguageId>),
    HorizontalRule,
    Image(ImageId),
    Table,
    TableRow,
    TableCell(CellId),
    TableHeader(CellId),
    HardBreak { marks: MarksId },
    Text { start: u32, end: u32, marks: MarksId },
}

/// The index of an ordered list's attributes in the tree's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListId(pub(crate) u32);

/// The index of a code block's language in the tree's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LanguageId(pub(crate) u32);

/// The index of an image's attributes in the tree's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageId(pub(crate) u32);

/// The index of a table cell's attributes in the tree's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellId(pub(crate) u32);

/// The index of a set of marks in the tree's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarksId(pub(crate) u32);

impl NodeKind {
    pub(crate) fn node_type(self) -> NodeType {
        match self {
            Self::Doc => NodeType::Doc,
            Self::Paragraph => NodeType::Paragraph,
            Self::Heading { .. } => NodeType::Heading,
            Self::Blockquote => NodeType::Blockquote,
            Self::BulletList => NodeType::BulletList,
            Self::OrderedList(_) => NodeType::OrderedList,
            Self::ListItem => NodeType::ListItem,
            Self::TaskList => NodeType::TaskList,
            Self::TaskItem { .. } => NodeType::TaskItem,
            Self::CodeBlock(_) => NodeType::CodeBlock,
            Self::HorizontalRule => NodeType::HorizontalRule,
            Self::Image(_) => NodeType::Image,
            Self::Table => NodeType::Table,
            Self::TableRow => NodeType::TableRow,
            Self::TableCell(_) => NodeType::TableCell,
            Self::TableHeader(_) => NodeType::TableHeader,
            Self::HardBreak { .. } => NodeType::HardBreak,
            Self::Text { .. } => NodeType::Text,
        }
    }
}

/// The attributes of an ordered list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListAttrs {
    pub(crate) start: i64,
    pub(crate) list_type: Option<Box<str>>,
}

impl Default for ListAttrs {
    fn default() -> Self {
        Self { start: 1, list_type: None }
    }
}

/// The attributes of an image.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct ImageAttrs {
    pub(crate) src: Option<AttrValue>,
    pub(crate) alt: Option<AttrValue>,
    pub(crate) title: Option<AttrValue>,
    pub(crate) width: Option<AttrValue>,
    pub(crate) height: Option<AttrValue>,
}

impl ImageAttrs {
    /// Returns all attributes in the schema's order.
    pub(crate) fn all(&self) -> [(&'static str, Option<&AttrValue>); 5] {
        [
            ("src", self.src.as_ref()),
            ("alt", self.alt.as_ref()),
            ("title", self.title.as_ref()),
            ("width", self.width.as_ref()),
            ("height", self.height.as_ref()),
        ]
    }
}

/// The attributes of a table cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CellAttrs {
    /// From 1 to 1,000.
    pub(crate) colspan: u16,
    /// From 0 to 65,534. 0 spans all remaining rows of the table.
    pub(crate) rowspan: u16,
    /// Column widths in pixels, at most one per spanned column. `None` is a width that couldn't be
    /// parsed.
    pub(crate) colwidth: Option<Box<[Option<i64>]>>,
    pub(crate) align: Option<Align>,
}

impl Default for CellAttrs {
    fn default() -> Self {
        Self { colspan: 1, rowspan: 1, colwidth: None, align: None }
    }
}

named_enum! {
    /// The text alignment of a cell.
    Align {
        Left = "left",
        Right = "right",
        Center = "center",
    }
}
