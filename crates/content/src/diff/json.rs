//! The diff as JSON, from which the tree after can be restored exactly.

use super::attributes::{attribute_changes, types};
use super::inline::{InlineChange, InlinePiece, visit_changes};
use super::steps::{DiffStep, DiffSteps};
use crate::json::JsonWriter;
use crate::marks::Mark;

/// Writes the steps, or returns `None` if the JSON exceeds `max` bytes.
pub(super) fn write(steps: &DiffSteps<'_>, max: usize) -> Option<String> {
    let json = JsonWriter { tree: steps.after, json: "[".to_owned() };
    let mut writer = JsonDiffWriter { steps, json, list: None, equal: 0, max };
    for step in &steps.list {
        writer.step(*step);
        if writer.json.json.len() > max {
            return None;
        }
    }
    writer.end_steps();
    Some(writer.json.json).filter(|json| json.len() <= max)
}

struct JsonDiffWriter<'s, 't> {
    steps: &'s DiffSteps<'t>,
    json: JsonWriter<'t>,
    /// The key of the open step with a list of nodes.
    list: Option<&'static str>,
    /// The length of the pending step `equal` in a textblock.
    equal: usize,
    max: usize,
}

impl<'t> JsonDiffWriter<'_, 't> {
    fn step(&mut self, step: DiffStep) {
        match step {
            DiffStep::Equal { count, .. } => {
                self.begin_step();
                self.json.raw(format_args!("{{\"equal\":{count}}}"));
            }
            DiffStep::Delete { node } => self.node("delete", node),
            DiffStep::Insert { node } => self.node("insert", node),
            DiffStep::Enter { before, after } => {
                self.change(before, after);
                if !types(self.steps, before, after).1.is_leaf() {
                    self.json.json.push_str(",\"content\":[");
                }
            }
            DiffStep::Leave { after } => {
                let node_type = self.steps.after.kind(after as usize).node_type();
                if !node_type.is_leaf() {
                    self.end_steps();
                }
                self.json.json.push_str("}}");
            }
            DiffStep::Textblock { before, after, first_run, end_run } => {
                self.change(before, after);
                self.json.json.push_str(",\"content\":[");
                let runs = &self.steps.runs[first_run as usize..end_run as usize];
                visit_changes(self.steps, (before, after), runs, |change| self.inline(change));
                self.end_steps();
                self.json.json.push_str("}}");
            }
        }
    }

    /// Ends the open step, and writes the comma before the next one.
    fn begin_step(&mut self) {
        self.end_step();
        if !self.json.json.ends_with('[') {
            self.json.json.push(',');
        }
    }

    fn end_step(&mut self) {
        if self.list.take().is_some() {
            self.json.json.push_str("]}");
        }
        let equal = std::mem::take(&mut self.equal);
        if equal > 0 {
            self.begin_step();
            self.json.raw(format_args!("{{\"equal\":{equal}}}"));
        }
    }

    fn end_steps(&mut self) {
        self.end_step();
        self.json.json.push(']');
    }

    /// Begins an item of a step with a list.
    fn begin_item(&mut self, key: &'static str) {
        if self.list == Some(key) {
            self.json.json.push(',');
        } else {
            self.begin_step();
            self.json.raw(format_args!("{{\"{key}\":["));
            self.list = Some(key);
        }
    }

    fn node(&mut self, key: &'static str, node: u32) {
        self.begin_item(key);
        self.json.tree = if key == "delete" { self.steps.before } else { self.steps.after };
        self.json.subtree(node as usize, self.max);
    }

    /// Begins the change of a node, up to its content.
    fn change(&mut self, before: u32, after: u32) {
        self.begin_step();
        let (from, to) = types(self.steps, before, after);
        self.json.json.push_str("{\"change\":{\"type\":");
        if from == to {
            self.json.raw(format_args!("\"{}\"", to.name()));
        } else {
            self.json.raw(format_args!(
                "{{\"from\":\"{}\",\"to\":\"{}\"}}",
                from.name(),
                to.name()
            ));
        }
        let changes = attribute_changes(self.steps, before, after);
        for (number, change) in changes.iter().enumerate() {
            self.json.json.push_str(if number == 0 { ",\"attrs\":{" } else { "," });
            self.json.raw(format_args!("\"{}\":{{", change.name));
            if let Some(from) = &change.from {
                self.json.raw(format_args!("\"from\":{from}"));
            }
            if let Some(to) = &change.to {
                let comma = if change.from.is_some() { "," } else { "" };
                self.json.raw(format_args!("{comma}\"to\":{to}"));
            }
            self.json.json.push('}');
        }
        if !changes.is_empty() {
            self.json.json.push('}');
        }
    }

    fn inline(&mut self, change: InlineChange<'t>) {
        if self.json.json.len() > self.max {
            return;
        }
        match change {
            InlineChange::Keep(piece) => {
                if self.list.is_some() {
                    self.end_step();
                }
                self.equal += piece.utf16_len();
            }
            InlineChange::Delete(piece) => self.piece("delete", piece),
            InlineChange::Insert(piece) => self.piece("insert", piece),
            InlineChange::Format { before, after } => {
                self.begin_step();
                self.json.raw(format_args!("{{\"format\":{}", after.utf16_len()));
                let (removed, added) = self.steps.mark_changes(before, after.marks);
                self.json.tree = self.steps.before;
                self.marks("remove", &removed);
                self.json.tree = self.steps.after;
                self.marks("add", &added);
                self.json.json.push('}');
            }
        }
    }

    fn piece(&mut self, key: &'static str, piece: InlinePiece<'_>) {
        self.begin_item(key);
        self.json.tree = if key == "delete" { self.steps.before } else { self.steps.after };
        self.json.inline(piece.text, piece.marks);
    }

    fn marks(&mut self, key: &str, marks: &[Mark]) {
        for (number, mark) in marks.iter().enumerate() {
            match number {
                0 => self.json.raw(format_args!(",\"{key}\":[")),
                _ => self.json.json.push(','),
            }
            self.json.mark(*mark);
        }
        if !marks.is_empty() {
            self.json.json.push(']');
        }
    }
}
