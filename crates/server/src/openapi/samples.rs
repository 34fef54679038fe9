//! Samples of requests by the client for TypeScript, as the extension `x-codeSamples`.

use serde_json::{Map, Value, json};

use super::examples::example_of;
use super::links::has_parameter;

/// The number of optional fields in the sample of a body.
const OPTIONAL_FIELDS: usize = 2;

/// The width of a line, from which an object has a line for each field.
const WIDTH: usize = 64;

/// Adds a sample to an operation, if the client has a function for it.
pub(super) fn add(operation: &mut Value, method: &str, path: &str, schemas: &Value) {
    let Some(sample) = sample(operation, method, path, schemas) else { return };
    operation["x-codeSamples"] =
        json!([{"lang": "typescript", "label": "TypeScript", "source": sample}]);
}

fn sample(operation: &Value, method: &str, path: &str, schemas: &Value) -> Option<String> {
    let name = operation["operationId"].as_str()?;
    if name == "uploadAsset" {
        let call = "galley.uploadAsset(file, { filename: \"harbour.jpg\" })";
        return Some(format!("const asset = await {call};\n"));
    }
    let answers = operation["responses"].as_object()?;
    let (_, success) = answers.iter().find(|(status, _)| status.starts_with('2'))?;
    let body = &operation["requestBody"]["content"];
    let is_known_method = ["get", "put", "post", "delete"].contains(&method);
    if !is_known_method || path.contains('{') || !is_json(&success["content"]) || !is_json(body) {
        return None;
    }
    let fields = match body.get("application/json") {
        Some(body) => fields(body, schemas),
        None => parameters(operation, schemas),
    };
    let arguments = if fields.is_empty() { String::new() } else { object(&fields, "") };
    let call = format!("galley.{name}({arguments})");
    Some(if has_parameter(operation, "perPage") {
        format!("for await (const item of {call}) {{\n  console.log(item);\n}}\n")
    } else if answers.contains_key("204") {
        format!("await {call};\n")
    } else {
        format!("const result = await {call};\n")
    })
}

/// Returns true for JSON, and without a body.
fn is_json(content: &Value) -> bool {
    content.is_null() || content.get("application/json").is_some()
}

/// Returns the required fields of the example, and the first of the others.
fn fields(body: &Value, schemas: &Value) -> Map<String, Value> {
    let named = super::shape::reference(&body["schema"]).map(|name| &schemas[name]);
    let schema = named.unwrap_or(&body["schema"]);
    // `anyOf` lists conditions between fields; the example meets the first.
    let required = [&schema["required"], &schema["anyOf"][0]["required"]];
    let is_required = |name: &String| {
        required.iter().filter_map(|list| list.as_array()).flatten().any(|known| known == name)
    };
    let first = body["examples"].as_object().and_then(|examples| examples.values().next());
    let example = first.map_or(&body["example"], |example| &example["value"]);
    let example = example.as_object().cloned().unwrap_or_default();
    let others = example.iter().filter(|(name, value)| !is_required(name) && !value.is_null());
    let chosen: Vec<String> = others.map(|(name, _)| name.clone()).take(OPTIONAL_FIELDS).collect();
    example.into_iter().filter(|(name, _)| is_required(name) || chosen.contains(name)).collect()
}

/// Returns the required parameters, and the words of a search.
fn parameters(operation: &Value, schemas: &Value) -> Map<String, Value> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let is_shown = |one: &&Value| one["required"] == true || one["name"] == "query";
    let shown = parameters.filter(|one| one["in"] == "query").filter(is_shown);
    let with_example = |one: &Value| {
        let example = one.get("example").cloned().or_else(|| example_of(&one["schema"], schemas));
        Some((one["name"].as_str()?.to_owned(), example?))
    };
    shown.filter_map(with_example).collect()
}

/// Returns a value as TypeScript.
fn literal(value: &Value, indent: &str) -> String {
    match value {
        Value::Object(fields) => object(fields, indent),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| literal(item, indent)).collect();
            format!("[{}]", items.join(", "))
        }
        value => value.to_string(),
    }
}

fn object(fields: &Map<String, Value>, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let is_plain = |name: &str| name.chars().all(|char| char.is_ascii_alphanumeric());
    let line = |(name, value): (&String, &Value)| {
        let name = if is_plain(name) { name.clone() } else { format!("{name:?}") };
        format!("{name}: {}", literal(value, &inner))
    };
    let lines: Vec<String> = fields.iter().map(line).collect();
    let single = format!("{{ {} }}", lines.join(", "));
    if single.len() <= WIDTH && !single.contains('\n') {
        return single;
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("{inner}{line},\n")).collect();
    format!("{{\n{}{indent}}}", lines.concat())
}
