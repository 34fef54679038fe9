//! The JSON representation of the difference between two revisions.

use galley_domain::content_piece::{ContentPieceFields, ContentPieceOverrides, PieceField};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, Type};

/// The difference of a content piece between two revisions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RevisionDiff)]
pub struct RevisionDiffBody<'a> {
    /// The format of `diff`.
    #[schema(value_type = RevisionDiffFormat)]
    pub format: &'static str,
    /// The fields that differ, without the content.
    #[schema(value_type = Vec<FieldDifference>)]
    pub fields: Vec<FieldDifference>,
    /// The difference of the content. In `json`, an array of steps that lead from the earlier tree
    /// to the later one. In `html`, the later content with `<ins>` and `<del>`. In `text`, the
    /// changed lines.
    #[schema(schema_with = diff_schema)]
    pub diff: &'a RawValue,
}

/// The format of a difference.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
enum RevisionDiffFormat {
    Json,
    Html,
    Text,
}

fn diff_schema() -> RefOr<Schema> {
    let step = ObjectBuilder::new().schema_type(Type::Object);
    let steps = ArrayBuilder::new().items(step);
    let text = ObjectBuilder::new().schema_type(Type::String);
    let example = json!([{"equal": 2}, {"insert": [{"type": "horizontalRule"}]}]);
    AnyOfBuilder::new().item(steps).item(text).examples([example]).into()
}

fn field_value_schema() -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let null = ObjectBuilder::new().schema_type(Type::Null);
    let identifiers = ArrayBuilder::new().items(text());
    let forms = AnyOfBuilder::new().item(text()).item(identifiers).item(null);
    forms.examples([json!("Hello")]).into()
}

/// A field that differs.
#[derive(Debug, Serialize, ToSchema)]
pub struct FieldDifference {
    /// The name of the field.
    #[schema(value_type = String, example = "title")]
    field: &'static str,
    /// The value at the earlier revision: a string, an array of identifiers, or null.
    #[schema(schema_with = field_value_schema)]
    from: Value,
    /// The value at the later revision.
    #[schema(schema_with = field_value_schema)]
    to: Value,
}

impl FieldDifference {
    /// Returns the differences of all fields.
    pub fn between(from: &ContentPieceFields, to: &ContentPieceFields) -> Vec<Self> {
        let (from, to): (ContentPieceOverrides, _) = (from.clone().into(), to.clone().into());
        let mut fields = Vec::new();
        from.push_differences(&to, &mut fields);
        let difference = |field: PieceField| Self {
            field: field.as_str(),
            from: value(&from, field),
            to: value(&to, field),
        };
        fields.into_iter().map(difference).collect()
    }
}

/// Returns the value of a field in JSON.
fn value(fields: &ContentPieceOverrides, field: PieceField) -> Value {
    match field {
        PieceField::Date => json!(fields.date),
        PieceField::Tags => json!(fields.tags),
        PieceField::Members => json!(fields.members),
        field => json!(fields.text(field)),
    }
}
