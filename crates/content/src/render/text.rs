//! Plain text, for search and previews: the words in order, without markup.

use crate::node::Kind;
use crate::schema::NodeType;
use crate::tree::{Step, Tree};

/// Renders plain text. Blocks are separated by a blank line, items and rows by a newline, cells by
/// a tab.
///
/// Images become their alternative text, and rules are omitted.
pub(crate) fn text(tree: &Tree) -> String {
    let mut writer = Writer { tree, text: String::new(), gap: Gap::None };
    for step in tree.walk() {
        match step {
            Step::Enter(node) => writer.enter(node),
            Step::Leave(node) => writer.leave(node),
        }
    }
    if !writer.text.is_empty() {
        writer.text.push('\n');
    }
    writer.text
}

/// The separator before the next output. The largest requested one is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Tab,
    Line,
    Blank,
}

struct Writer<'a> {
    tree: &'a Tree,
    text: String,
    gap: Gap,
}

impl Writer<'_> {
    fn enter(&mut self, node: usize) {
        match self.tree.kind(node) {
            Kind::Text { start, end, .. } => self.write(self.tree.text(start, end)),
            Kind::HardBreak { .. } => self.write("\n"),
            Kind::Image(image) => {
                if let Some(alt) = &self.tree.image(image).alt {
                    self.write(&alt.to_string());
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, node: usize) {
        let gap = match self.tree.kind(node).node_type() {
            NodeType::TableCell | NodeType::TableHeader => {
                // The blocks in a cell stay on its line.
                self.gap = Gap::Tab;
                return;
            }
            NodeType::ListItem | NodeType::TaskItem | NodeType::TableRow => {
                self.gap = Gap::Line;
                return;
            }
            NodeType::CodeBlock => {
                // Code usually ends with a line end of its own.
                let kept = self.text.trim_end_matches('\n').len();
                self.text.truncate(kept);
                Gap::Blank
            }
            NodeType::HardBreak | NodeType::Text | NodeType::Doc => Gap::None,
            _ => Gap::Blank,
        };
        self.gap = self.gap.max(gap);
    }

    fn write(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str(match self.gap {
                Gap::None => "",
                Gap::Tab => "\t",
                Gap::Line => "\n",
                Gap::Blank => "\n\n",
            });
        }
        self.gap = Gap::None;
        self.text.push_str(text);
    }
}
