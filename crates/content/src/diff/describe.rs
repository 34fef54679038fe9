//! The changes of attributes and marks in words, for people.

use serde_json::Value;

use super::attributes::{attribute_changes, types};
use super::steps::DiffSteps;
use crate::marks::{Mark, Marks};
use crate::tree::Tree;

/// The limit on characters of a value in a description.
const VALUE_CHARS_MAX: usize = 60;

/// Describes the change of a node's type and attributes. Returns an empty text if there is none.
pub(super) fn describe_node(steps: &DiffSteps<'_>, before: u32, after: u32) -> String {
    let (from, to) = types(steps, before, after);
    let mut parts = Vec::new();
    if from != to {
        parts.push(format!("{} → {}", from.name(), to.name()));
    }
    for change in attribute_changes(steps, before, after) {
        let from = change.from.as_ref().map(|value| format!("{} → ", short_value(value)));
        let to = change.to.as_ref().map_or_else(|| "none".to_owned(), short_value);
        parts.push(format!("{}: {}{to}", change.name, from.unwrap_or_default()));
    }
    parts.join(", ")
}

/// Describes the change of a text's marks.
pub(super) fn describe_marks(steps: &DiffSteps<'_>, before: Marks, after: Marks) -> String {
    let (removed, added) = steps.mark_changes(before, after);
    let mut parts = Vec::new();
    for old in &removed {
        match added.iter().find(|new| new.name() == old.name()) {
            Some(new) => {
                let (from, to) = (mark_value(steps.before, *old), mark_value(steps.after, *new));
                // The values are equal if another attribute of the link is changed.
                let change = if from == to {
                    " attributes".to_owned()
                } else {
                    format!(": {from} → {to}")
                };
                parts.push(format!("{}{change}", old.name()));
            }
            None => parts.push(format!("{} removed", old.name())),
        }
    }
    for new in added {
        if !removed.iter().any(|old| old.name() == new.name()) {
            let value = mark_value(steps.after, new);
            let value = if value.is_empty() { value } else { format!(": {value}") };
            parts.push(format!("{} added{value}", new.name()));
        }
    }
    parts.join(", ")
}

/// Returns a link's URL or a highlight's colour.
fn mark_value(tree: &Tree, mark: Mark) -> String {
    match mark {
        Mark::Link(link) => shorten(&tree.link(link).href),
        Mark::Highlight(color) => shorten(tree.color(color)),
        Mark::Flag(_) => String::new(),
    }
}

fn short_value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => shorten(text),
        other => shorten(&other.to_string()),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
