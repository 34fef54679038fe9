//! The fields of a body, and their parsers.

use galley_domain::{ContentGroupId, ContentPieceId, Invalid, RoleId, TagId, WorkspaceMemberId};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::body::or_null;
use crate::problem::{Issue, Step};

/// The result of parsing a field. The error states that an issue was recorded.
pub type Parsed<T> = Result<T, IssueRecorded>;

/// States that a field has no value, because an issue was recorded.
#[derive(Debug, Clone, Copy)]
pub struct IssueRecorded;

/// A reference of a request to a resource that must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    ContentGroup(ContentGroupId),
    ContentPiece(ContentPieceId),
    Role(RoleId),
    Tag(TagId),
    WorkspaceMember(WorkspaceMemberId),
}

/// The references of a request, each with the path of its field.
pub type ReferencesWithPaths = Vec<(Vec<Step>, Reference)>;

/// The fields of a JSON object that are not parsed yet, with the issues and references so far.
#[derive(Debug, Default)]
pub struct Fields {
    object: Map<String, Value>,
    issues: Vec<Issue>,
    references: ReferencesWithPaths,
    accepts_null_overrides: bool,
}

/// The type of a field: its parser and its schema.
pub trait FieldValue: Sized {
    /// True if an empty text counts as an absent field, except in required fields.
    const EMPTY_IS_ABSENT: bool = false;

    /// Parses a value, or records an issue.
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self>;

    /// Returns the schema of values that are not null.
    fn schema() -> Schema;

    /// Returns the schema of values that may be null.
    fn nullable_schema() -> Schema {
        or_null(Self::schema())
    }

    /// Adds the named schemas that the schema refers to.
    fn add_referenced(_: &mut Vec<(String, RefOr<Schema>)>) {}
}

/// A request body, which the macro `body` declares.
pub trait RequestBody: Sized {
    /// The identifier of the changed resource, or `()`.
    type Id: ResourceId;

    /// Parses all fields but `id`.
    fn parse(fields: &mut Fields) -> Parsed<Self>;
}

/// The identifier of the resource that a change names.
pub trait ResourceId: Sized {
    /// Parses the field `id`. A malformed one is `None`, so that it gets the same 404 as the id of
    /// an absent resource.
    fn parse_id(fields: &mut Fields) -> Parsed<Option<Self>>;
}

/// The body names no resource.
impl ResourceId for () {
    fn parse_id(_: &mut Fields) -> Parsed<Option<Self>> {
        Ok(Some(()))
    }
}

impl Fields {
    /// Takes the fields of an object.
    pub fn new(object: Map<String, Value>) -> Self {
        Self { object, ..Self::default() }
    }

    /// Parses a field that must be present.
    pub fn required<T: FieldValue>(&mut self, name: &str) -> Parsed<T> {
        match self.object.remove(name) {
            None | Some(Value::Null) => self.reject(name, "required", "is required"),
            Some(value) => T::parse(value, &mut self.context(name)),
        }
    }

    /// Parses a field that may be absent or null. An empty text may count as absent.
    pub fn optional<T: FieldValue>(&mut self, name: &str) -> Parsed<Option<T>> {
        self.clearable(name).map(Option::flatten)
    }

    /// Parses a field of a change. If it is absent, the stored value stays; null is an error.
    pub fn replacement<T: FieldValue>(&mut self, name: &str) -> Parsed<Option<T>> {
        match self.take::<T>(name) {
            None => Ok(None),
            Some(Value::Null) => self.reject(name, "invalid_type", "must not be null"),
            Some(value) => T::parse(value, &mut self.context(name)).map(Some),
        }
    }

    /// Parses a field of a change that null clears.
    pub fn clearable<T: FieldValue>(&mut self, name: &str) -> Parsed<Option<Option<T>>> {
        match self.take::<T>(name) {
            None => Ok(None),
            Some(Value::Null) => Ok(Some(None)),
            Some(value) => T::parse(value, &mut self.context(name)).map(|value| Some(Some(value))),
        }
    }

    /// Parses a field of a change that null clears in a variant only.
    pub fn overridable<T: FieldValue>(&mut self, name: &str) -> Parsed<Option<Option<T>>> {
        if self.accepts_null_overrides {
            return self.clearable(name);
        }
        self.replacement(name).map(|value| value.map(Some))
    }

    /// Allows null in overridable fields: the body changes a variant, where null removes an
    /// override.
    pub fn accept_null_overrides(&mut self) {
        self.accepts_null_overrides = true;
    }

    /// Removes a field. Returns its value, unless that counts as absent.
    pub fn take<T: FieldValue>(&mut self, name: &str) -> Option<Value> {
        self.object.remove(name).filter(|value| !(T::EMPTY_IS_ABSENT && *value == ""))
    }

    fn reject<T>(&mut self, name: &str, code: &'static str, message: &str) -> Parsed<T> {
        self.context(name).reject(&Invalid::new(code, message))
    }

    fn context(&mut self, name: &str) -> FieldContext<'_> {
        FieldContext { path: vec![Step::Field(name.to_owned())], fields: self }
    }

    /// Returns true if the field is an object or an array.
    pub fn is_structured(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| value.is_object() || value.is_array())
    }

    /// Replaces the value of a field by a text.
    pub fn replace(&mut self, name: &str, text: String) {
        self.object.insert(name.to_owned(), Value::String(text));
    }

    /// Records an issue of a field.
    pub fn add_issue(&mut self, name: &str, invalid: &Invalid) {
        self.issues.push(Issue::new(vec![Step::Field(name.to_owned())], invalid));
    }

    /// Records further issues.
    pub fn add_issues(&mut self, issues: Vec<Issue>) {
        self.issues.extend(issues);
    }

    /// Returns true if there are issues so far.
    pub fn has_issues(&self) -> bool {
        !self.issues.is_empty()
    }

    /// Returns the issues and the references so far.
    pub fn into_issues_and_references(self) -> (Vec<Issue>, ReferencesWithPaths) {
        (self.issues, self.references)
    }
}

/// The path of a value that is parsed, and the fields that it belongs to.
#[derive(Debug)]
pub struct FieldContext<'f> {
    path: Vec<Step>,
    fields: &'f mut Fields,
}

impl FieldContext<'_> {
    /// Records an issue of the value.
    pub fn reject<T>(&mut self, invalid: &Invalid) -> Parsed<T> {
        self.fields.issues.push(Issue::new(self.path.clone(), invalid));
        Err(IssueRecorded)
    }

    /// Returns the context of a value within this one.
    pub(super) fn within(&mut self, step: Step) -> FieldContext<'_> {
        let path = self.path.iter().cloned().chain([step]).collect();
        FieldContext { path, fields: self.fields }
    }

    pub(crate) fn item(&mut self, index: usize) -> FieldContext<'_> {
        self.within(Step::Item(index))
    }

    pub(super) fn wrong_type<T>(&mut self, wanted: &str, found: &Value) -> Parsed<T> {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        self.reject(&Invalid::new("invalid_type", format!("must be {wanted}, not {found}")))
    }

    pub(crate) fn text(&mut self, value: Value) -> Parsed<String> {
        match value {
            Value::String(text) => Ok(text),
            other => self.wrong_type("a string", &other),
        }
    }

    /// Returns the items of a list of at most `max`.
    pub(crate) fn items(&mut self, value: Value, max: usize, noun: &str) -> Parsed<Vec<Value>> {
        match value {
            Value::Array(items) if items.len() > max => self.reject(&Invalid::too_long(max, noun)),
            Value::Array(items) => Ok(items),
            other => self.wrong_type("an array", &other),
        }
    }

    pub(super) fn unknown_reference<T>(&mut self, noun: &str) -> Parsed<T> {
        self.fields.issues.push(Issue::unknown_reference(self.path.clone(), noun));
        Err(IssueRecorded)
    }

    /// Records a reference to a resource that must exist. A malformed one is an unknown reference.
    pub(super) fn reference<T>(
        &mut self,
        id: Option<T>,
        noun: &str,
        of: fn(T) -> Reference,
    ) -> Parsed<T>
    where
        T: Copy,
    {
        let Some(id) = id else { return self.unknown_reference(noun) };
        self.fields.references.push((self.path.clone(), of(id)));
        Ok(id)
    }
}

/// Collects all results, so that each issue is recorded.
pub(super) fn all<T>(results: impl Iterator<Item = Parsed<T>>) -> Parsed<Vec<T>> {
    let results: Vec<_> = results.collect();
    results.into_iter().collect()
}
