//! The strings of custom data that a schema marks for searches.

use serde_json::Value;

/// The keyword of a schema that marks strings for searches.
const KEYWORD: &str = "x-search";

/// The limit on levels of a schema that are followed.
const DEPTH_LIMIT: usize = 32;

/// The limit on pairs of a schema and a value that are compared. References may multiply.
const STEPS_LIMIT: usize = 10_000;

/// Returns the strings within `data` that `schema` marks with `"x-search": true`, each once. The
/// mark of an array or object applies to all strings in it.
pub(super) fn marked_strings<'d>(schema: &Value, data: &'d Value) -> Vec<&'d str> {
    let mut search = MarkedStrings { root: schema, steps: 0, found: Vec::new() };
    search.visit(schema, data, 0);
    search.found
}

struct MarkedStrings<'s, 'd> {
    root: &'s Value,
    steps: usize,
    found: Vec<&'d str>,
}

impl<'s, 'd> MarkedStrings<'s, 'd> {
    fn visit(&mut self, schema: &'s Value, data: &'d Value, depth: usize) {
        self.steps += 1;
        if depth > DEPTH_LIMIT || self.steps > STEPS_LIMIT {
            return;
        }
        if schema[KEYWORD] == true {
            self.add_all(data, depth);
        }
        if let Some(place) = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'))
            && let Some(target) = self.root.pointer(place)
        {
            self.visit(target, data, depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in schema[keyword].as_array().into_iter().flatten() {
                self.visit(part, data, depth + 1);
            }
        }
        for keyword in ["then", "else"] {
            self.visit_if_present(&schema[keyword], data, depth);
        }
        match data {
            Value::Object(members) => {
                for (name, value) in members {
                    match schema["properties"].get(name) {
                        Some(property) => self.visit(property, value, depth + 1),
                        None => {
                            self.visit_if_present(&schema["additionalProperties"], value, depth);
                        }
                    }
                }
            }
            Value::Array(items) => {
                let first = schema["prefixItems"].as_array().map_or(&[][..], Vec::as_slice);
                for (place, item) in items.iter().enumerate() {
                    match first.get(place) {
                        Some(prefix) => self.visit(prefix, item, depth + 1),
                        None => self.visit_if_present(&schema["items"], item, depth),
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_if_present(&mut self, schema: &'s Value, data: &'d Value, depth: usize) {
        if schema.is_object() {
            self.visit(schema, data, depth + 1);
        }
    }

    fn add_all(&mut self, data: &'d Value, depth: usize) {
        self.steps += 1;
        if depth > DEPTH_LIMIT || self.steps > STEPS_LIMIT {
            return;
        }
        match data {
            Value::String(text) if !self.found.contains(&text.as_str()) => self.found.push(text),
            Value::Array(items) => items.iter().for_each(|item| self.add_all(item, depth + 1)),
            Value::Object(members) => {
                members.values().for_each(|value| self.add_all(value, depth + 1));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_strings_are_found_through_arrays_and_references() {
        let schema = json!({
            "$defs": {"place": {"properties": {"city": {"x-search": true}}}},
            "properties": {
                "subtitle": {"type": "string", "x-search": true},
                "secret": {"type": "string"},
                "places": {"items": {"$ref": "#/$defs/place"}},
                "facts": {"x-search": true},
                "pair": {"prefixItems": [{"x-search": true}, {}]},
            },
            "additionalProperties": {"x-search": true},
        });
        let data = json!({
            "subtitle": "One", "secret": "Two", "places": [{"city": "Three", "zip": "Four"}],
            "facts": {"a": ["Five", 6], "b": {"c": "Seven"}}, "pair": ["Eight", "Nine"],
            "other": "Ten", "again": "One",
        });
        let mut found = marked_strings(&schema, &data);
        found.sort_unstable();
        assert_eq!(found, ["Eight", "Five", "One", "Seven", "Ten", "Three"]);
    }

    #[test]
    fn references_that_multiply_end() {
        let schema = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}], "x-search": true});
        assert_eq!(marked_strings(&schema, &json!("a")), ["a"]);
        assert!(marked_strings(&json!(true), &json!({"a": "b"})).is_empty());
    }
}
