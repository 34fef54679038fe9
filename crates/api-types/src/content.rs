//! The schema of a piece's content: a document of nodes and marks, as `galley-content` writes it.

use serde_json::{Value, json};
use utoipa::ToSchema;

galley_domain::named_enum! {
    /// The format of content.
    pub enum ContentFormat {
        /// The tree, in the JSON format of TipTap and ProseMirror.
        Json = "json",
        /// HTML.
        Html = "html",
        /// GitHub-flavoured Markdown.
        Markdown = "markdown",
    }
}

impl ContentFormat {
    /// Returns the format's name for people.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Html => "HTML",
            Self::Markdown => "Markdown",
        }
    }
}

/// The content of a piece.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum Content {
    /// The tree, in the JSON format of TipTap and ProseMirror.
    Tree(ContentTree),
    /// HTML or Markdown, as requested by `contentFormat`.
    Text(String),
}

/// Content in a request.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ContentInputSchema {
    /// The tree, in the JSON format of TipTap and ProseMirror.
    Tree(ContentTreeInput),
    /// HTML or Markdown, as stated by `contentFormat`.
    Text(String),
}

/// A document. Its schema comes from [`schemas`].
#[derive(ToSchema)]
pub struct ContentTree;

/// A document in a request. Its schema comes from [`schemas`].
#[derive(ToSchema)]
pub struct ContentTreeInput;

/// The nodes that a document, a quote or a cell may contain, and that may follow the paragraph of a
/// list item.
const BLOCKS: [&str; 10] = [
    "Paragraph",
    "Blockquote",
    "BulletList",
    "CodeBlock",
    "Heading",
    "HorizontalRule",
    "OrderedList",
    "Table",
    "Image",
    "TaskList",
];

/// Returns the schemas of the document, its nodes and their marks, as responses and as requests
/// have them.
pub fn schemas() -> Vec<(String, Value)> {
    let mut schemas = nodes();
    schemas.extend(marks());
    schemas.extend(unions());
    for (name, schema) in &mut schemas {
        match name.as_str() {
            "DocNode" => {
                "ContentTree".clone_into(name);
                schema["properties"]["content"]["examples"] = json!([[{
                    "type": "paragraph",
                    "content": [
                        {"type": "text", "text": "Hello "},
                        {"type": "text", "marks": [{"type": "bold"}], "text": "world"},
                    ],
                }]]);
            }
            "TextNode" => {
                schema["properties"]["marks"] = list_of_marks();
                schema["properties"]["text"] = json!({"type": "string", "examples": ["Hello"]});
                schema["required"] = json!(["type", "text"]);
            }
            "HardBreakNode" => schema["properties"]["marks"] = list_of_marks(),
            _ => {}
        }
    }
    let inputs: Vec<_> = schemas.iter().map(input).collect();
    schemas.extend(inputs);
    schemas
}

/// Returns the name and schema that a node, a mark or a union has in requests. Attributes are
/// optional there, and null has the meaning of an absent key.
fn input((name, schema): &(String, Value)) -> (String, Value) {
    let mut schema = schema.clone();
    add_input_to_references(&mut schema);
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key != "attrs");
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (key, property) in properties.into_iter().flatten() {
        match key.as_str() {
            "attrs" => {
                allow_null(property);
                property.as_object_mut().map(|attrs| attrs.remove("required"));
                let attributes = property["properties"].as_object_mut().into_iter().flatten();
                attributes.for_each(|(_, attribute)| allow_null(attribute));
            }
            "marks" => allow_null(property),
            "content" if property.get("minItems").is_none() => allow_null(property),
            _ => {}
        }
    }
    (format!("{name}Input"), schema)
}

fn add_input_to_references(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(reference) if key == "$ref" => reference.push_str("Input"),
                    value => add_input_to_references(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add_input_to_references),
        _ => {}
    }
}

fn allow_null(schema: &mut Value) {
    if let Value::String(name) = &schema["type"] {
        schema["type"] = json!([name, "null"]);
    }
}

fn nodes() -> Vec<(String, Value)> {
    let blocks = || Some("BlockNode");
    vec![
        node("doc", "A document.", Value::Null, blocks()),
        node("paragraph", "A paragraph.", Value::Null, Some("InlineNode")),
        node(
            "heading",
            "A heading.",
            json!({"level": {"type": "integer", "minimum": 1, "maximum": 6, "examples": [2]}}),
            Some("InlineNode"),
        ),
        node("blockquote", "A quote.", Value::Null, blocks()),
        node("bulletList", "A list with bullets.", Value::Null, Some("ListItemNode")),
        node(
            "orderedList",
            "A list with numbers.",
            json!({
                "start": {"type": "integer", "description": "The number of the first item.", "examples": [1]},
                "type": text("The kind of numbers, as in HTML: 1, a, A, i or I."),
            }),
            Some("ListItemNode"),
        ),
        node("listItem", "An item: a paragraph, then any blocks.", Value::Null, blocks()),
        node("taskList", "A list of tasks.", Value::Null, Some("TaskItemNode")),
        node(
            "taskItem",
            "A task: a paragraph, then any blocks.",
            json!({"checked": {"type": "boolean"}}),
            blocks(),
        ),
        node(
            "codeBlock",
            "A block of code.",
            json!({"language": text("The language of the code.")}),
            Some("TextNode"),
        ),
        node("horizontalRule", "A thematic break.", Value::Null, None),
        node(
            "image",
            "An image.",
            json!({
                "src": value("Its address: http, https or relative."),
                "alt": value("Its alternative text."),
                "title": value("Its title."),
                "width": value("Its width, as in HTML."),
                "height": value("Its height, as in HTML."),
            }),
            None,
        ),
        node("table", "A table.", Value::Null, Some("TableRowNode")),
        node("tableRow", "A row of a table.", Value::Null, Some("CellNode")),
        node("tableCell", "A cell of a table.", cell(), blocks()),
        node("tableHeader", "A header cell of a table.", cell(), blocks()),
        node("hardBreak", "A line break.", Value::Null, None),
        node("text", "A text with its marks.", Value::Null, None),
    ]
}

fn marks() -> Vec<(String, Value)> {
    vec![
        mark(
            &["link"],
            "Link",
            "A link.",
            json!({
                "href": {"type": "string", "description": "Its address: http, https, ftp, ftps, mailto, tel, sms or relative."},
                "target": value("The browsing context in which it opens."),
                "rel": value("Its link types."),
                "class": value("Its classes."),
                "title": value("Its title."),
            }),
        ),
        mark(
            &["highlight"],
            "Highlight",
            "A highlight.",
            json!({"color": text("A CSS color: a name, `#hex`, `rgb()` or `hsl()`.")}),
        ),
        mark(
            &["bold", "italic", "strike", "underline", "code", "subscript", "superscript"],
            "Simple",
            "A mark without attributes.",
            Value::Null,
        ),
    ]
}

fn unions() -> Vec<(String, Value)> {
    vec![
        union("BlockNode", "A block.", &BLOCKS.map(|name| format!("{name}Node"))),
        union("InlineNode", "Inline content.", &["TextNode", "HardBreakNode"].map(Into::into)),
        union(
            "CellNode",
            "A cell of a table.",
            &["TableCellNode", "TableHeaderNode"].map(Into::into),
        ),
        union(
            "ContentMark",
            "The formatting of a text.",
            &["LinkMark", "HighlightMark", "SimpleMark"].map(Into::into),
        ),
    ]
}

/// Returns the schema of a nullable string.
fn text(about: &str) -> Value {
    json!({"type": ["string", "null"], "description": about})
}

/// Returns the schema of an attribute whose type depends on the HTML: a string, a number, a boolean
/// or null.
fn value(about: &str) -> Value {
    json!({"type": ["string", "number", "boolean", "null"], "description": about})
}

/// Returns the schemas of a cell's attributes.
fn cell() -> Value {
    json!({
        "colspan": {"type": "integer", "minimum": 1, "description": "The number of its columns."},
        "rowspan": {"type": "integer", "minimum": 0, "description": "The number of its rows."},
        "colwidth": {
            "type": ["array", "null"],
            "items": {"type": ["integer", "null"]},
            "description": "The widths of its columns in pixels.",
        },
        "align": {
            "type": ["string", "null"],
            "enum": ["left", "center", "right", null],
            "description": "The alignment of its text.",
        },
    })
}

fn list_of_marks() -> Value {
    json!({"type": "array", "items": refer("ContentMark")})
}

fn refer(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Returns the name and schema of a node. Its attributes are always present in responses. `content`
/// is absent in a node without children.
fn node(name: &str, about: &str, attrs: Value, children: Option<&str>) -> (String, Value) {
    let mut schema = json!({
        "type": "object",
        "description": about,
        "required": ["type"],
        "properties": {"type": {"type": "string", "const": name}},
    });
    add_attrs(&mut schema, attrs);
    if let Some(children) = children {
        schema["properties"]["content"] = json!({"type": "array", "items": refer(children)});
        if !["InlineNode", "TextNode", "CellNode"].contains(&children) {
            schema["properties"]["content"]["minItems"] = 1.into();
            schema["required"].as_array_mut().expect("it requires the type").push("content".into());
        }
    }
    (format!("{}Node", crate::schemas::capitalized(name)), schema)
}

fn mark(types: &[&str], name: &str, about: &str, attrs: Value) -> (String, Value) {
    let mut schema = json!({
        "type": "object",
        "description": about,
        "required": ["type"],
        "properties": {"type": {"type": "string", "enum": types}},
    });
    add_attrs(&mut schema, attrs);
    (format!("{name}Mark"), schema)
}

fn add_attrs(schema: &mut Value, attrs: Value) {
    if let Value::Object(attrs) = attrs {
        let required: Vec<_> = attrs.keys().cloned().collect();
        let attrs = json!({"type": "object", "required": required, "properties": attrs});
        schema["properties"]["attrs"] = attrs;
        schema["required"] = json!(["type", "attrs"]);
    }
}

fn union(name: &str, about: &str, names: &[String]) -> (String, Value) {
    let forms: Vec<_> = names.iter().map(|name| refer(name)).collect();
    (name.to_owned(), json!({"description": about, "anyOf": forms}))
}
