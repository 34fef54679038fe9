//! The transformations of the schemas that utoipa generates.

use serde_json::{Map, Value, json};

/// Calls `visit` for every object within `value`, the inner ones first.
fn walk(value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, visit)),
        Value::Object(object) => {
            object.values_mut().for_each(|value| walk(value, visit));
            visit(object);
        }
        _ => {}
    }
}

/// Returns the name of the schema that `value` refers to, if it is a reference.
pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")
}

/// Converts `example` to the `examples` of OpenAPI 3.1, and `oneOf` to `anyOf`. A value may match
/// several forms: an empty array is a list of identifiers as well as one of groups.
pub(super) fn convert_to_3_1(document: &mut Value) {
    walk(document, &mut |object| {
        if let Some(forms) = object.remove("oneOf") {
            object.insert("anyOf".to_owned(), forms);
        }
        let is_schema = ["type", "$ref", "anyOf"].iter().any(|key| object.contains_key(*key));
        if is_schema
            && !object.contains_key("in")
            && let Some(example) = object.remove("example")
        {
            object.insert("examples".to_owned(), json!([example]));
        }
        open_maps(object);
        flatten(object);
    });
}

/// Allows additional properties in an object without known ones. Otherwise code generators make it
/// an empty object.
fn open_maps(object: &mut Map<String, Value>) {
    let of_object = |kind: &Value| kind == "object";
    let is_object = object.get("type").is_some_and(|kind| {
        of_object(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(of_object))
    });
    let says_more = ["properties", "additionalProperties", "default", "maxProperties"];
    if is_object && !says_more.iter().any(|name| object.contains_key(*name)) {
        object.insert("additionalProperties".to_owned(), json!(true));
    }
}

/// Merges the second schema of an `allOf` into the first. utoipa puts the description of a
/// referenced schema there, and the second schema would require an object.
fn flatten(object: &mut Map<String, Value>) {
    let Some([first, second]) = object.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
    else {
        return;
    };
    let (Value::Object(first), Value::Object(second)) = (first.clone(), second.clone()) else {
        return;
    };
    if second.contains_key("properties") || second["type"] != "object" {
        return;
    }
    object.shift_remove("allOf");
    object.extend(first);
    object.extend(second.into_iter().filter(|(key, _)| key != "type"));
}

/// Inlines the schemas of strings where they are used, so that the description of a field contains
/// its pattern. A nullable field gets both types in one schema.
pub(super) fn inline_texts(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let names: Vec<String> = schemas
        .iter()
        .filter(|(_, schema)| schema["type"] == "string")
        .map(|(name, _)| name.clone())
        .collect();
    let texts: Map<String, Value> = names
        .into_iter()
        .filter_map(|name| schemas.shift_remove(&name).map(|schema| (name, schema)))
        .collect();
    walk(document, &mut |object| {
        let found = match object.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
            Some([first, second]) if first["type"] == "null" => Some((second, true)),
            Some([first, second]) if second["type"] == "null" => Some((first, true)),
            _ if object.contains_key("$ref") => None,
            _ => return,
        };
        let own = Value::Object(object.clone());
        let (target, nullable) = found.unwrap_or((&own, false));
        let target = match reference(target).and_then(|name| texts.get(name)) {
            Some(text) => text.clone(),
            // Inlined already, as inner objects are visited first.
            None if nullable && target["type"] == "string" => target.clone(),
            None => return,
        };
        let Value::Object(mut text) = target else { return };
        if nullable {
            text.insert("type".to_owned(), json!(["string", "null"]));
            if let Some(Value::Array(values)) = text.get_mut("enum") {
                values.push(Value::Null);
            }
        }
        object.shift_remove("$ref");
        object.shift_remove("anyOf");
        for (key, value) in text {
            object.entry(key).or_insert(value);
        }
    });
}

/// Makes nullable fields required, as responses contain every such field. A field that may be
/// absent is not nullable, and stays optional.
pub(super) fn require_nullable(schema: &mut Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = properties.iter().filter(|(name, property)| {
        required.iter().any(|known| known == name.as_str()) || may_be_null(property)
    });
    schema["required"] = names.map(|(name, _)| Value::from(name.clone())).collect();
}

fn may_be_null(schema: &Value) -> bool {
    let null = |value: &Value| value == "null";
    schema["type"].as_array().is_some_and(|types| types.iter().any(null))
        || schema["anyOf"]
            .as_array()
            .is_some_and(|forms| forms.iter().any(|form| null(&form["type"])))
}

/// Adds to `found` the names of the schemas that `value` refers to, directly or indirectly.
pub(super) fn reachable(value: &Value, schemas: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| reachable(item, schemas, found)),
        Value::Object(object) => {
            if let Some(name) = reference(value)
                && !found.iter().any(|known| known == name)
            {
                found.push(name.to_owned());
                reachable(&schemas[name], schemas, found);
            }
            object.values().for_each(|value| reachable(value, schemas, found));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_schemas_are_inlined() {
        let mut document = json!({
            "components": {"schemas": {
                "TagId": {"type": "string", "description": "general", "pattern": "^tag_"},
                "Tag": {"type": "object", "properties": {
                    "id": {"$ref": "#/components/schemas/TagId", "description": "special"},
                    "next": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/TagId"}]},
                    "last": {"oneOf": [{"$ref": "#/components/schemas/TagId"}, {"type": "null"}]},
                    "other": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Tag"}]},
                    "some": {"allOf": [{"type": "array"}, {"type": "object", "default": []}]},
                }},
            }},
        });
        convert_to_3_1(&mut document);
        inline_texts(&mut document);
        let tag = &document["components"]["schemas"]["Tag"]["properties"];
        assert_eq!(
            tag["id"],
            json!({"description": "special", "type": "string", "pattern": "^tag_"})
        );
        assert_eq!(tag["next"]["type"], json!(["string", "null"]));
        assert_eq!(tag["last"]["type"], json!(["string", "null"]));
        assert_eq!(tag["some"], json!({"type": "array", "default": []}));
        assert!(tag["other"]["anyOf"].is_array());
        assert!(document["components"]["schemas"]["TagId"].is_null());
    }
}
