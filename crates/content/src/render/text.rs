//! Plain text, for search and previews: the words in order, without markup.

use crate::node::NodeKind;
use crate::schema::NodeType;
use crate::tree::{Tree, WalkStep};

/// Renders plain text. Blocks are separated by a blank line, items and rows by a newline, cells by
/// a tab.
///
/// Images become their alternative text, and rules are omitted.
pub(crate) fn text(tree: &Tree) -> String {
    let mut writer = TextWriter { tree, text: String::new(), gap: Separator::None };
    for step in tree.walk() {
        match step {
            WalkStep::Enter(node) => writer.enter(node),
            WalkStep::Leave(node) => writer.leave(node),
        }
    }
    if !writer.text.is_empty() {
        writer.text.push('\n');
    }
    writer.text
}

/// The separator before the next output. The largest requested one is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Separator {
    None,
    Tab,
    Line,
    Blank,
}

struct TextWriter<'a> {
    tree: &'a Tree,
    text: String,
    gap: Separator,
}

impl TextWriter<'_> {
    fn enter(&mut self, node: usize) {
        match self.tree.kind(node) {
            NodeKind::Text { start, end, .. } => self.write(self.tree.text(start, end)),
            NodeKind::HardBreak { .. } => self.write("\n"),
            NodeKind::Image(image) => {
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
                self.gap = Separator::Tab;
                return;
            }
            NodeType::ListItem | NodeType::TaskItem | NodeType::TableRow => {
                self.gap = Separator::Line;
                return;
            }
            NodeType::CodeBlock => {
                // Code usually ends with a line end of its own.
                let kept = self.text.trim_end_matches('\n').len();
                self.text.truncate(kept);
                Separator::Blank
            }
            NodeType::HardBreak | NodeType::Text | NodeType::Doc => Separator::None,
            _ => Separator::Blank,
        };
        self.gap = self.gap.max(gap);
    }

    fn write(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str(match self.gap {
                Separator::None => "",
                Separator::Tab => "\t",
                Separator::Line => "\n",
                Separator::Blank => "\n\n",
            });
        }
        self.gap = Separator::None;
        self.text.push_str(text);
    }
}
