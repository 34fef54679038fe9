//! Serialises a tree as ProseMirror's document JSON, compact, with keys in a fixed order.

use std::fmt::Write as _;

use crate::marks::{Mark, Marks};
use crate::node::{CellAttrs, NodeKind};
use crate::schema::NodeType;
use crate::tree::{Tree, WalkStep};
use crate::value::AttrValue;

pub(crate) fn write(tree: &Tree) -> String {
    write_within(tree, usize::MAX).unwrap_or_default()
}

/// Serialises a tree, or returns `None` if its JSON exceeds `max` bytes. Marks are repeated with
/// each of their texts, so the JSON may be far larger than the HTML.
pub(crate) fn write_within(tree: &Tree, max: usize) -> Option<String> {
    // An estimate, as most of the JSON is text and the keys of each node.
    let mut writer = JsonWriter { tree, json: String::with_capacity(tree.nodes().len() * 48) };
    writer.subtree(0, max).then_some(writer.json)
}

/// A writer of nodes, marks and attributes.
pub(crate) struct JsonWriter<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) json: String,
}

impl JsonWriter<'_> {
    /// Writes a node with its descendants. Returns false and stops early once all JSON exceeds
    /// `max` bytes.
    pub(crate) fn subtree(&mut self, node: usize, max: usize) -> bool {
        let mut first = true;
        for step in self.tree.walk_from(node) {
            match step {
                WalkStep::Enter(node) => {
                    if !first {
                        self.json.push(',');
                    }
                    first = self.enter(node);
                    if self.json.len() > max {
                        return false;
                    }
                }
                WalkStep::Leave(node) => {
                    self.leave(node);
                    first = false;
                }
            }
        }
        self.json.len() <= max
    }

    /// Writes a text with its marks, or a line break if there is no text.
    pub(crate) fn inline(&mut self, text: Option<&str>, marks: Marks) {
        let node_type = if text.is_some() { NodeType::Text } else { NodeType::HardBreak };
        self.raw(format_args!("{{\"type\":\"{}\"", node_type.name()));
        self.marks(marks);
        if let Some(text) = text {
            self.json.push_str(",\"text\":");
            self.string(text);
        }
        self.json.push('}');
    }

    /// Begins a node. Returns true, as the next node would be the first of its parent.
    fn enter(&mut self, node: usize) -> bool {
        let kind = self.tree.kind(node);
        self.json.push_str("{\"type\":\"");
        self.json.push_str(kind.node_type().name());
        self.json.push('"');
        self.attrs(kind);
        match kind {
            NodeKind::HardBreak { marks } => self.marks(self.tree.marks(marks)),
            NodeKind::Text { start, end, marks } => {
                self.marks(self.tree.marks(marks));
                self.json.push_str(",\"text\":");
                self.string(self.tree.text(start, end));
            }
            _ => {}
        }
        if self.has_children(node) {
            self.json.push_str(",\"content\":[");
        }
        true
    }

    fn leave(&mut self, node: usize) {
        self.json.push_str(if self.has_children(node) { "]}" } else { "}" });
    }

    fn has_children(&self, node: usize) -> bool {
        self.tree.end(node) > node + 1
    }

    /// Writes the key `attrs` after a comma, for a node that has attributes.
    pub(crate) fn attrs(&mut self, kind: NodeKind) {
        match kind {
            NodeKind::Heading { level } => {
                self.raw(format_args!(",\"attrs\":{{\"level\":{level}}}"));
            }
            NodeKind::TaskItem { checked } => {
                self.raw(format_args!(",\"attrs\":{{\"checked\":{checked}}}"));
            }
            NodeKind::OrderedList(list) => {
                let list = self.tree.list(list);
                self.raw(format_args!(",\"attrs\":{{\"start\":{},\"type\":", list.start));
                self.optional_string(list.list_type.as_deref());
                self.json.push('}');
            }
            NodeKind::CodeBlock(language) => {
                self.json.push_str(",\"attrs\":{\"language\":");
                self.optional_string(language.map(|language| self.tree.language(language)));
                self.json.push('}');
            }
            NodeKind::Image(image) => self.values(&self.tree.image(image).all()),
            NodeKind::TableCell(cell) | NodeKind::TableHeader(cell) => {
                self.cell(self.tree.cell(cell));
            }
            _ => {}
        }
    }

    fn cell(&mut self, cell: &CellAttrs) {
        let CellAttrs { colspan, rowspan, colwidth, align } = cell;
        self.raw(format_args!(
            ",\"attrs\":{{\"colspan\":{colspan},\"rowspan\":{rowspan},\"colwidth\":"
        ));
        match colwidth {
            Some(widths) => {
                for (number, width) in widths.iter().enumerate() {
                    self.json.push(if number == 0 { '[' } else { ',' });
                    match width {
                        Some(width) => self.raw(format_args!("{width}")),
                        None => self.json.push_str("null"),
                    }
                }
                self.json.push(']');
            }
            None => self.json.push_str("null"),
        }
        self.json.push_str(",\"align\":");
        self.optional_string(align.map(crate::node::Align::name));
        self.json.push('}');
    }

    fn marks(&mut self, marks: Marks) {
        if marks.is_empty() {
            return;
        }
        self.json.push_str(",\"marks\":[");
        for (number, mark) in marks.iter().enumerate() {
            if number > 0 {
                self.json.push(',');
            }
            self.mark(mark);
        }
        self.json.push(']');
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Flag(flag) => self.raw(format_args!("{{\"type\":\"{}\"}}", flag.name())),
            Mark::Highlight(color) => {
                self.json.push_str("{\"type\":\"highlight\",\"attrs\":{\"color\":");
                match self.tree.color(color) {
                    "" => self.json.push_str("null"),
                    color => self.string(color),
                }
                self.json.push_str("}}");
            }
            Mark::Link(link) => {
                let link = self.tree.link(link);
                self.json.push_str("{\"type\":\"link\",\"attrs\":{\"href\":");
                self.string(&link.href);
                for (name, value) in link.rest() {
                    self.raw(format_args!(",\"{name}\":"));
                    self.value(value);
                }
                self.json.push_str("}}");
            }
        }
    }

    fn values(&mut self, values: &[(&str, Option<&AttrValue>)]) {
        for (number, (name, value)) in values.iter().enumerate() {
            self.json.push_str(if number == 0 { ",\"attrs\":{" } else { "," });
            self.raw(format_args!("\"{name}\":"));
            self.value(*value);
        }
        self.json.push('}');
    }

    fn value(&mut self, value: Option<&AttrValue>) {
        match value {
            Some(AttrValue::Text(text)) => self.string(text),
            Some(other) => self.raw(format_args!("{other}")),
            None => self.json.push_str("null"),
        }
    }

    fn optional_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.json.push_str("null"),
        }
    }

    /// Writes a string with its quotes (RFC 8259, section 7).
    fn string(&mut self, text: &str) {
        self.json.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            self.json.push_str(&rest[..at]);
            match rest.as_bytes()[at] {
                b'"' => self.json.push_str("\\\""),
                b'\\' => self.json.push_str("\\\\"),
                b'\n' => self.json.push_str("\\n"),
                b'\r' => self.json.push_str("\\r"),
                b'\t' => self.json.push_str("\\t"),
                control => self.raw(format_args!("\\u{control:04x}")),
            }
            rest = &rest[at + 1..];
        }
        self.json.push_str(rest);
        self.json.push('"');
    }

    pub(crate) fn raw(&mut self, formatted: std::fmt::Arguments<'_>) {
        self.json.write_fmt(formatted).expect("writing to a string can't fail");
    }
}
