//! Examples of whole bodies, assembled from the examples of their fields.

use serde_json::{Map, Value};

use super::shape::reference;

/// The limit on nested schemas in an example.
const DEPTH_MAX: usize = 12;

/// Returns an example that conforms to `schema`.
pub(super) fn example_of(schema: &Value, schemas: &Value) -> Option<Value> {
    example_at_depth(schema, schemas, 0)
}

fn example_at_depth(schema: &Value, schemas: &Value, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    let inner = |schema: &Value| example_at_depth(schema, schemas, depth + 1);
    if let Some(example) = schema["examples"].get(0).or_else(|| schema.get("const")) {
        return Some(example.clone());
    }
    if let Some(name) = reference(schema) {
        return inner(&schemas[name]);
    }
    if let Some(example) = schema["enum"].get(0) {
        return Some(example.clone());
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = Map::new();
        for part in parts {
            if let Some(Value::Object(fields)) = inner(part) {
                whole.extend(fields);
            }
        }
        return Some(Value::Object(whole));
    }
    // With a `type` beside it, `anyOf` lists conditions, not alternative forms.
    if let (Some(forms), None) = (schema["anyOf"].as_array(), schema.get("type")) {
        return forms.iter().filter(|form| form["type"] != "null").find_map(inner);
    }
    // A nullable schema has several types.
    let kind = schema["type"].get(0).unwrap_or(&schema["type"]);
    match kind.as_str()? {
        "object" => {
            let properties = schema["properties"].as_object();
            let fields = properties.into_iter().flatten();
            let field = |(name, field): (&String, &Value)| Some((name.clone(), inner(field)?));
            Some(Value::Object(fields.filter_map(field).collect()))
        }
        "array" => Some(inner(&schema["items"]).into_iter().collect()),
        "boolean" => Some(schema.get("default").cloned().unwrap_or(Value::Bool(true))),
        "integer" => Some(schema.get("minimum").cloned().unwrap_or(Value::from(1))),
        _ => None,
    }
}
