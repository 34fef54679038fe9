//! The schema of a piece's content. What makes a tree valid is `galley-content`'s; this says as much
//! of it as a reader needs.

#![expect(dead_code, reason = "only the schemas are used")]

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

/// A piece's content.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum Content {
    /// The tree, as TipTap and ProseMirror have it.
    Tree(ContentTree),
    /// HTML or Markdown, as `contentFormat` asks for it.
    Text(String),
}

/// A document.
#[derive(ToSchema)]
pub(crate) struct ContentTree {
    r#type: DocumentType,
    /// Its blocks.
    #[schema(example = json!([{
        "type": "paragraph",
        "content": [
            {"type": "text", "text": "Hello "},
            {"type": "text", "marks": [{"type": "bold"}], "text": "world"}
        ]
    }]))]
    content: Vec<ContentNode>,
}

/// The type of the whole document.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
enum DocumentType {
    Doc,
}

/// A block, something within a line, or a text.
#[derive(ToSchema)]
struct ContentNode {
    r#type: NodeType,
    /// What there is to say of this node, such as a heading's `level`.
    #[schema(required = false)]
    attrs: BTreeMap<String, Value>,
    /// What it holds.
    #[schema(required = false, no_recursion)]
    content: Vec<ContentNode>,
    /// How a text, or a break within one, is formatted.
    #[schema(required = false)]
    marks: Vec<ContentMark>,
    /// The text of a node of the type `text`.
    #[schema(required = false)]
    text: String,
}

/// What a node is.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
enum NodeType {
    Paragraph,
    Heading,
    Blockquote,
    BulletList,
    OrderedList,
    ListItem,
    TaskList,
    TaskItem,
    CodeBlock,
    HorizontalRule,
    Image,
    Table,
    TableRow,
    TableCell,
    TableHeader,
    HardBreak,
    Text,
}

/// How a text is formatted.
#[derive(ToSchema)]
struct ContentMark {
    r#type: MarkType,
    /// What there is to say of this mark, such as a link's `href`.
    #[schema(required = false)]
    attrs: BTreeMap<String, Value>,
}

/// What a mark is.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
enum MarkType {
    Link,
    Bold,
    Italic,
    Strike,
    Underline,
    Code,
    Subscript,
    Superscript,
    Highlight,
}
