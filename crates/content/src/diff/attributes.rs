//! The changes of a node's type and attributes.

use serde_json::{Map, Value};

use super::steps::DiffSteps;
use crate::json::JsonWriter;
use crate::schema::NodeType;
use crate::tree::Tree;

/// A changed attribute: its name, and the values of both sides. `None` is the value of an attribute
/// that the type lacks.
pub(super) struct AttributeChange {
    pub(super) name: String,
    pub(super) from: Option<Value>,
    pub(super) to: Option<Value>,
}

/// Returns the changed attributes of two nodes.
pub(super) fn attribute_changes(
    steps: &DiffSteps<'_>,
    before: u32,
    after: u32,
) -> Vec<AttributeChange> {
    let from = attributes(steps.before, before as usize);
    let to = attributes(steps.after, after as usize);
    if from == to {
        return Vec::new();
    }
    let (mut from, to) = (parse(&from), parse(&to));
    let mut changes = Vec::new();
    for (name, to) in to {
        let from = from.remove(&name);
        if from.as_ref() != Some(&to) {
            changes.push(AttributeChange { name, from, to: Some(to) });
        }
    }
    changes.extend(from.into_iter().map(|(name, value)| AttributeChange {
        name,
        from: Some(value),
        to: None,
    }));
    changes
}

/// Returns the types of two nodes.
pub(super) fn types(steps: &DiffSteps<'_>, before: u32, after: u32) -> (NodeType, NodeType) {
    let before = steps.before.kind(before as usize).node_type();
    (before, steps.after.kind(after as usize).node_type())
}

/// Returns a node's attributes as JSON, or an empty text.
fn attributes(tree: &Tree, node: usize) -> String {
    let mut writer = JsonWriter { tree, json: String::new() };
    writer.attrs(tree.kind(node));
    writer.json
}

fn parse(attributes: &str) -> Map<String, Value> {
    let json = attributes.strip_prefix(",\"attrs\":");
    json.map(|json| serde_json::from_str(json).expect("valid JSON")).unwrap_or_default()
}
