//! The diff as text for a terminal, with a line for each block.

use std::collections::VecDeque;

use super::describe::{describe_marks, describe_node};
use super::inline::{InlineChange, InlinePiece, visit_changes};
use super::steps::{DiffStep, DiffSteps};
use crate::node::NodeKind;
use crate::tree::{Tree, WalkStep};

/// The number of unchanged blocks before and after a change.
const CONTEXT_BLOCKS: usize = 3;

/// The limit on prefixes of a line, the ones of the innermost containers.
const PREFIXES_MAX: usize = 6;

/// Renders the steps.
pub(super) fn render(steps: &DiffSteps<'_>) -> String {
    let mut writer = TextDiffWriter {
        steps,
        text: String::new(),
        containers: Vec::new(),
        context: VecDeque::new(),
        context_left: 0,
        is_skipped: false,
    };
    for step in &steps.list {
        writer.step(*step);
    }
    writer.text
}

/// The prefixes of the lines in a container.
struct LinePrefix {
    first: &'static str,
    rest: &'static str,
    is_used: bool,
}

struct TextDiffWriter<'s, 't> {
    steps: &'s DiffSteps<'t>,
    text: String,
    containers: Vec<LinePrefix>,
    /// The last unchanged blocks, which precede a change.
    context: VecDeque<String>,
    /// The number of blocks to write as they follow the last change.
    context_left: usize,
    /// True if blocks before `context` are left out.
    is_skipped: bool,
}

impl TextDiffWriter<'_, '_> {
    fn step(&mut self, step: DiffStep) {
        let (old_tree, new_tree) = (self.steps.before, self.steps.after);
        match step {
            DiffStep::Equal { after, count } => {
                let mut node = after as usize;
                for _ in 0..count {
                    self.subtree(' ', new_tree, node);
                    node = new_tree.end(node);
                }
            }
            DiffStep::Delete { node } => self.subtree('-', old_tree, node as usize),
            DiffStep::Insert { node } => self.subtree('+', new_tree, node as usize),
            DiffStep::Enter { before, after } => {
                let node = after as usize;
                let description = describe_node(self.steps, before, after);
                let is_leaf = new_tree.kind(node).node_type().is_leaf();
                let leaf = if is_leaf { leaf_text(new_tree, node) } else { String::new() };
                if !description.is_empty() {
                    self.line('~', format!("[{description}] {leaf}").trim_end());
                }
                self.containers.extend(line_prefix(new_tree.kind(node)));
            }
            DiffStep::Leave { after } => {
                if line_prefix(new_tree.kind(after as usize)).is_some() {
                    self.containers.pop();
                }
            }
            DiffStep::Textblock { before, after, first_run, end_run } => {
                let description = describe_node(self.steps, before, after);
                let mut text = block_prefix(new_tree.kind(after as usize));
                if !description.is_empty() {
                    text.insert_str(0, &format!("[{description}] "));
                }
                let mut words = WordDiff { text, open: None };
                let runs = &self.steps.runs[first_run as usize..end_run as usize];
                visit_changes(self.steps, (before, after), runs, |change| match change {
                    InlineChange::Keep(piece) => words.push(None, piece),
                    InlineChange::Delete(piece) => words.push(Some(("[-", "-]")), piece),
                    InlineChange::Insert(piece) => words.push(Some(("{+", "+}")), piece),
                    InlineChange::Format { before, after } => {
                        let description = describe_marks(self.steps, before, after.marks);
                        words.push(Some(("{~", "~}")), after);
                        words.close();
                        words.text.push_str(&format!("[{description}]"));
                    }
                });
                words.close();
                self.line('~', &words.text);
            }
        }
    }

    /// Writes the blocks of a node and its descendants.
    fn subtree(&mut self, sign: char, tree: &Tree, node: usize) {
        for step in tree.walk_from(node) {
            match step {
                WalkStep::Enter(node) => {
                    let kind = tree.kind(node);
                    let node_type = kind.node_type();
                    if node_type.is_textblock() || (node_type.is_leaf() && !node_type.is_inline()) {
                        self.line(sign, &leaf_text(tree, node));
                    }
                    self.containers.extend(line_prefix(kind));
                }
                WalkStep::Leave(node) => {
                    if line_prefix(tree.kind(node)).is_some() {
                        self.containers.pop();
                    }
                }
            }
        }
    }

    /// Writes a block, or stores it as context.
    fn line(&mut self, sign: char, text: &str) {
        let is_change = sign != ' ';
        if is_change {
            if std::mem::take(&mut self.is_skipped) {
                self.text.push_str("@@\n");
            }
            self.text.extend(self.context.drain(..));
            self.context_left = CONTEXT_BLOCKS + 1;
        }
        let is_shown = self.context_left > 0;
        let mut line = if is_shown { std::mem::take(&mut self.text) } else { String::new() };
        line.extend([sign, ' ']);
        let first = self.containers.len().saturating_sub(PREFIXES_MAX);
        for container in &mut self.containers[first..] {
            line.push_str(if container.is_used { container.rest } else { container.first });
            container.is_used = true;
        }
        for c in text.chars() {
            match c {
                '\n' => {
                    line.extend(['\n', sign, ' ']);
                    line.extend(self.containers[first..].iter().map(|container| container.rest));
                }
                c if is_unsafe_in_terminal(c) => line.push('\u{fffd}'),
                c => line.push(c),
            }
        }
        line.push('\n');
        if is_shown {
            self.text = line;
            self.context_left -= 1;
        } else {
            self.context.push_back(line);
            if self.context.len() > CONTEXT_BLOCKS {
                self.context.pop_front();
                self.is_skipped = true;
            }
        }
    }
}

/// The words of a changed textblock.
struct WordDiff {
    text: String,
    /// The brackets around the pieces that are written.
    open: Option<(&'static str, &'static str)>,
}

impl WordDiff {
    fn push(&mut self, brackets: Option<(&'static str, &'static str)>, piece: InlinePiece<'_>) {
        if self.open != brackets {
            self.close();
            self.open = brackets;
            self.text.push_str(brackets.map_or("", |(open, _)| open));
        }
        self.text.push_str(piece.text.unwrap_or("\n"));
    }

    fn close(&mut self) {
        self.text.push_str(self.open.take().map_or("", |(_, close)| close));
    }
}

/// Returns true for control characters, which can change a terminal's state, and for those that
/// reorder text.
fn is_unsafe_in_terminal(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the prefixes of the lines in a container. Lists, tables and rows have none.
fn line_prefix(kind: NodeKind) -> Option<LinePrefix> {
    let (first, rest) = match kind {
        NodeKind::Blockquote => ("> ", "> "),
        NodeKind::ListItem => ("* ", "  "),
        NodeKind::TaskItem { checked: false } => ("[ ] ", "    "),
        NodeKind::TaskItem { checked: true } => ("[x] ", "    "),
        NodeKind::TableCell(_) | NodeKind::TableHeader(_) => ("| ", "| "),
        _ => return None,
    };
    Some(LinePrefix { first, rest, is_used: false })
}

/// Returns the prefix of a block's own line.
fn block_prefix(kind: NodeKind) -> String {
    match kind {
        NodeKind::Heading { level } => format!("{} ", "#".repeat(level.into())),
        _ => String::new(),
    }
}

/// Returns the text of a block without child blocks.
fn leaf_text(tree: &Tree, node: usize) -> String {
    match tree.kind(node) {
        NodeKind::HorizontalRule => "---".to_owned(),
        NodeKind::Image(image) => {
            let image = tree.image(image);
            let [src, alt] = [&image.src, &image.alt]
                .map(|value| value.as_ref().map(ToString::to_string).unwrap_or_default());
            format!("![{alt}]({src})")
        }
        kind => {
            let texts = tree.children(node).map(|child| match tree.kind(child) {
                NodeKind::Text { start, end, .. } => tree.text(start, end),
                _ => "\n",
            });
            block_prefix(kind) + &texts.collect::<String>()
        }
    }
}
