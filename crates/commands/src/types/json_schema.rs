//! TypeScript types of JSON Schemas. Constraints that a type can't express are left out.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The declared types of schemas. Equal schemas share one.
#[derive(Debug, Default)]
pub(super) struct SchemaTypes {
    declarations: String,
    names: HashSet<String>,
    roots: HashMap<String, String>,
}

/// The text of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Type {
    text: String,
    /// True for a union or an intersection.
    is_compound: bool,
}

/// The types of one schema: the names of the places to which it refers.
struct SchemaReferences<'s> {
    schema: &'s Value,
    prefix: String,
    by_pointer: BTreeMap<String, String>,
    /// The places that have no declaration yet.
    pending: VecDeque<String>,
}

impl SchemaTypes {
    /// Declares the types of a group's schema. Returns the name.
    pub(super) fn root(&mut self, path: &str, schema: &Value) -> String {
        let text = schema.to_string();
        if let Some(name) = self.roots.get(&text) {
            return name.clone();
        }
        let name = self.new_name(&format!("{}CustomData", identifier(path)));
        self.roots.insert(text, name.clone());
        let mut references = SchemaReferences {
            schema,
            prefix: name.clone(),
            by_pointer: BTreeMap::from([(String::new(), name.clone())]),
            pending: VecDeque::from([String::new()]),
        };
        while let Some(pointer) = references.pending.pop_front() {
            let Some(place) = schema.pointer(&pointer) else { continue };
            let declared = references.by_pointer[&pointer].clone();
            let Type { text, .. } = self.type_of(place, &mut references, 0);
            let own = format!("/** Custom data of pieces in {}. */\n", escape(path));
            let comment =
                comment(place, 0).unwrap_or(if pointer.is_empty() { own } else { String::new() });
            let _ = write!(self.declarations, "\n{comment}export type {declared} = {text};\n");
        }
        name
    }

    /// Returns all declarations.
    pub(super) fn declarations(self) -> String {
        self.declarations
    }

    fn new_name(&mut self, wanted: &str) -> String {
        let numbered = (2..).map(|number| format!("{wanted}{number}"));
        let name = std::iter::once(wanted.to_owned()).chain(numbered);
        let name = name.into_iter().find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(name.clone());
        name
    }

    fn type_of(
        &mut self,
        schema: &Value,
        references: &mut SchemaReferences<'_>,
        depth: usize,
    ) -> Type {
        let schema = match schema {
            Value::Bool(false) => return Type::named("never"),
            Value::Object(schema) => schema,
            _ => return Type::named("unknown"),
        };
        let mut parts = Vec::new();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            parts.push(self.reference(reference, references));
        }
        if let Some(value) = schema.get("const") {
            parts.push(Type::named(&literal(value)));
        } else if let Some(Value::Array(values)) = schema.get("enum") {
            parts.push(union(values.iter().map(|value| Type::named(&literal(value)))));
        } else {
            parts.extend(self.plain_type(schema, references, depth));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = schema.get(keyword) {
                let types = schemas.iter().map(|schema| self.type_of(schema, references, depth));
                parts.push(union(types));
            }
        }
        if let Some(Value::Array(schemas)) = schema.get("allOf") {
            parts.extend(schemas.iter().map(|schema| self.type_of(schema, references, depth)));
        }
        parts.retain(|part| part.text != "unknown");
        match parts.as_slice() {
            [] => Type::named("unknown"),
            [part] => part.clone(),
            _ => Type::joined(&parts, " & "),
        }
    }

    /// Returns the name of the place to which a reference leads.
    fn reference(&mut self, reference: &str, references: &mut SchemaReferences<'_>) -> Type {
        let pointer = reference.strip_prefix('#').map(percent_decoded);
        let Some(pointer) = pointer.filter(|one| references.schema.pointer(one).is_some()) else {
            return Type::named("unknown");
        };
        if let Some(name) = references.by_pointer.get(&pointer) {
            return Type::named(name);
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let name = self.new_name(&format!("{}{}", references.prefix, identifier(last)));
        references.by_pointer.insert(pointer.clone(), name.clone());
        references.pending.push_back(pointer);
        Type::named(&name)
    }

    /// Returns the type by `type`, or by the keywords that imply one.
    fn plain_type(
        &mut self,
        schema: &Map<String, Value>,
        references: &mut SchemaReferences<'_>,
        depth: usize,
    ) -> Option<Type> {
        let implied = if ["properties", "required", "additionalProperties"]
            .iter()
            .any(|keyword| schema.contains_key(*keyword))
        {
            Some("object")
        } else if schema.contains_key("items") || schema.contains_key("prefixItems") {
            Some("array")
        } else {
            None
        };
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => vec![implied?],
        };
        let types = names.into_iter().map(|name| match name {
            "string" | "boolean" | "null" => Type::named(name),
            "number" | "integer" => Type::named("number"),
            "array" => Type::named(&self.array(schema, references, depth)),
            "object" => Type::named(&self.object(schema, references, depth)),
            _ => Type::named("unknown"),
        });
        Some(union(types))
    }

    fn array(
        &mut self,
        schema: &Map<String, Value>,
        references: &mut SchemaReferences<'_>,
        depth: usize,
    ) -> String {
        let rest = schema.get("items").unwrap_or(&Value::Bool(true));
        let rest = self.type_of(rest, references, depth);
        let Some(Value::Array(first)) = schema.get("prefixItems") else {
            return format!("{}[]", rest.operand());
        };
        let mut items: Vec<String> = Vec::new();
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or_default();
        for (place, item) in (0..).zip(first) {
            let item = self.type_of(item, references, depth);
            items.push(if place < least { item.text } else { format!("{}?", item.operand()) });
        }
        if rest.text != "never" {
            items.push(format!("...{}[]", rest.operand()));
        }
        format!("[{}]", items.join(", "))
    }

    fn object(
        &mut self,
        schema: &Map<String, Value>,
        references: &mut SchemaReferences<'_>,
        depth: usize,
    ) -> String {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        let indent = "  ".repeat(depth + 1);
        let mut text = String::new();
        for (name, property) in properties {
            text.push_str(&comment(property, depth + 1).unwrap_or_default());
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            let value = self.type_of(property, references, depth + 1).text;
            let _ = writeln!(text, "{indent}{}{mark}: {value};", key(name));
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name)) {
            let _ = writeln!(text, "{indent}{}: unknown;", key(name));
        }
        let others = schema.get("additionalProperties");
        if text.is_empty() {
            let others = others.unwrap_or(&Value::Bool(true));
            let others = self.type_of(others, references, depth).text;
            return format!("{{ [key: string]: {others} }}");
        }
        // An index signature must include the types of the properties.
        if others.is_some_and(|others| *others != Value::Bool(false)) {
            let _ = writeln!(text, "{indent}[key: string]: unknown;");
        }
        format!("{{\n{text}{}}}", "  ".repeat(depth))
    }
}

/// Returns the comment of a schema's title and description.
fn comment(schema: &Value, depth: usize) -> Option<String> {
    let texts = ["title", "description"].into_iter().filter_map(|name| schema[name].as_str());
    let texts: Vec<String> = texts.map(escape).filter(|text| !text.is_empty()).collect();
    let text = texts.join(": ");
    (!text.is_empty()).then(|| format!("{}/** {text} */\n", "  ".repeat(depth)))
}

/// Returns text that does not end a comment or its line.
fn escape(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ").replace("*/", "* /")
}

fn literal(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            format!("[{}]", values.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", key(name), literal(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join("; "))
        }
        // Line separators end a line of older JavaScript.
        Value::String(_) => {
            value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
        }
        _ => value.to_string(),
    }
}

fn union(types: impl Iterator<Item = Type>) -> Type {
    let mut seen = HashSet::new();
    let types: Vec<Type> = types.filter(|one| seen.insert(one.text.clone())).collect();
    match types.as_slice() {
        [] => Type::named("never"),
        _ if seen.contains("unknown") => Type::named("unknown"),
        [one] => one.clone(),
        _ => Type::joined(&types, " | "),
    }
}

impl Type {
    /// A type that is an operand as it is.
    fn named(text: &str) -> Self {
        Self { text: text.to_owned(), is_compound: false }
    }

    fn joined(types: &[Self], operator: &str) -> Self {
        let operands: Vec<_> = types.iter().map(Self::operand).collect();
        Self { text: operands.join(operator), is_compound: true }
    }

    fn operand(&self) -> String {
        if self.is_compound { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// Returns the name of a property.
fn key(name: &str) -> String {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { name.to_owned() } else { literal(&Value::from(name)) }
}

/// Returns a name of a type in camel case: `News/Long reads` is `NewsLongReads`.
fn identifier(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let capitalized = words.map(|word| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
    });
    let name: String = capitalized.flatten().collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        format!("Group{name}")
    } else {
        name
    }
}

/// Decodes a pointer of a URL's fragment.
fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
