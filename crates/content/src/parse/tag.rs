//! The meaning of an element's name: its node or mark, and whether it is block-level.
//!
//! This module considers only names. `rules` considers attributes as well.

use crate::marks::Flag;

/// The meaning of an element's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Link,
    Mark(Flag),
    /// `b` and `i`, whose meaning an inline style can remove.
    PlainBold,
    PlainItalic,
    Highlight,
    Paragraph,
    Heading(u8),
    Blockquote,
    BulletList,
    OrderedList,
    ListItem,
    Preformatted,
    HorizontalRule,
    LineBreak,
    Image,
    Table,
    TableRow,
    TableCell,
    TableHeader,
    /// Sets the width of a column.
    Column,
    ColumnGroup,
    Division,
    /// Outside of the schema, but ends the paragraph around it.
    OtherBlock,
    /// Dropped with its descendants.
    Ignored,
    /// Outside of the schema. Only its children are converted.
    Transparent,
}

impl ElementKind {
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "a" => Self::Link,
            "strong" => Self::Mark(Flag::Bold),
            "b" => Self::PlainBold,
            "em" => Self::Mark(Flag::Italic),
            "i" => Self::PlainItalic,
            "s" | "del" | "strike" => Self::Mark(Flag::Strike),
            "u" => Self::Mark(Flag::Underline),
            "code" => Self::Mark(Flag::Code),
            "mark" => Self::Highlight,
            "sub" => Self::Mark(Flag::Subscript),
            "sup" => Self::Mark(Flag::Superscript),
            "p" => Self::Paragraph,
            "h1" => Self::Heading(1),
            "h2" => Self::Heading(2),
            "h3" => Self::Heading(3),
            "h4" => Self::Heading(4),
            "h5" => Self::Heading(5),
            "h6" => Self::Heading(6),
            "blockquote" => Self::Blockquote,
            "ul" => Self::BulletList,
            "ol" => Self::OrderedList,
            "li" => Self::ListItem,
            "pre" => Self::Preformatted,
            "hr" => Self::HorizontalRule,
            "br" => Self::LineBreak,
            "img" => Self::Image,
            "table" => Self::Table,
            "tr" => Self::TableRow,
            "td" => Self::TableCell,
            "th" => Self::TableHeader,
            "col" => Self::Column,
            "colgroup" => Self::ColumnGroup,
            "div" => Self::Division,
            "address" | "article" | "aside" | "body" | "canvas" | "dd" | "dl" | "fieldset"
            | "figcaption" | "figure" | "footer" | "form" | "header" | "hgroup" | "output"
            | "section" | "tfoot" => Self::OtherBlock,
            "head" | "noscript" | "object" | "script" | "style" | "title" => Self::Ignored,
            _ => Self::Transparent,
        }
    }

    /// Returns true if the element ends the paragraph around it even without a node of its own.
    pub(crate) fn ends_paragraph(self) -> bool {
        matches!(
            self,
            Self::Paragraph
                | Self::Heading(_)
                | Self::Blockquote
                | Self::BulletList
                | Self::OrderedList
                | Self::ListItem
                | Self::Preformatted
                | Self::HorizontalRule
                | Self::Table
                | Self::Division
                | Self::OtherBlock
        )
    }

    /// Returns true if the element counts for the nesting depth of blocks.
    pub(crate) fn counts_as_block(self) -> bool {
        self.ends_paragraph()
            || matches!(self, Self::TableRow | Self::TableCell | Self::TableHeader)
    }

    /// Returns true if the element may become a node of the tree.
    pub(crate) fn makes_node(self) -> bool {
        self.counts_as_block() || matches!(self, Self::LineBreak | Self::Image)
    }

    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::BulletList | Self::OrderedList)
    }
}
