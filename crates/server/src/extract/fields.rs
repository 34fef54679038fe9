//! Parsing of a body's fields, with all issues collected.
//!
//! Each call removes one field and returns its value, or records an issue and returns `None`. The
//! request is rejected at the end, with all issues at once.

use std::hash::Hash;
use std::str::FromStr;

use galley_api_types::problem::{Issue, Step};
use galley_application::Error;
use galley_domain::content_piece::without_repeats;
use galley_domain::permission::{Permission, PermissionSet, Resource};
use galley_domain::{Invalid, Timestamp};
use serde_json::{Map, Value};

/// The fields of a JSON object that are not parsed yet, and the issues so far.
#[derive(Debug)]
pub(crate) struct Fields {
    object: Map<String, Value>,
    issues: Vec<Issue>,
}

impl Fields {
    pub(crate) fn new(object: Map<String, Value>) -> Self {
        Self { object, issues: Vec::new() }
    }

    /// Parses a field that must be present.
    pub(crate) fn required<T>(&mut self, name: &str, read: impl FieldParser<T>) -> Option<T> {
        match self.object.remove(name) {
            None | Some(Value::Null) => {
                self.add_issue(name, &Invalid::new("required", "is required"));
                None
            }
            Some(value) => self.value(name, value, read),
        }
    }

    /// Parses a field that may be absent or null.
    pub(crate) fn optional<T>(&mut self, name: &str, read: impl FieldParser<T>) -> Option<T> {
        match self.object.remove(name) {
            None | Some(Value::Null) => None,
            Some(value) => self.value(name, value, read),
        }
    }

    /// Parses a field of an update. If it is absent, the stored value stays; null is an error.
    pub(crate) fn replacement<T>(&mut self, name: &str, read: impl FieldParser<T>) -> Option<T> {
        match self.object.remove(name)? {
            Value::Null => {
                self.add_issue(name, &Invalid::new("invalid_type", "must not be null"));
                None
            }
            value => self.value(name, value, read),
        }
    }

    /// Parses a field of an update that null clears.
    pub(crate) fn clearable<T>(
        &mut self,
        name: &str,
        read: impl FieldParser<T>,
    ) -> Option<Option<T>> {
        match self.object.remove(name)? {
            Value::Null => Some(None),
            value => self.value(name, value, read).map(Some),
        }
    }

    /// Parses a field of an update that null clears only if `clearable`. Otherwise null is an
    /// error.
    pub(crate) fn clearable_if<T>(
        &mut self,
        clearable: bool,
        name: &str,
        read: impl FieldParser<T>,
    ) -> Option<Option<T>> {
        if clearable { self.clearable(name, read) } else { self.replacement(name, read).map(Some) }
    }

    /// Parses one field of an object, and ignores the others. A null object clears the field, like
    /// a null field.
    pub(crate) fn clearable_in<T>(
        &mut self,
        name: &str,
        inner: &str,
        read: impl FieldParser<T>,
    ) -> Option<Option<T>> {
        let found = match self.object.remove(name)? {
            Value::Object(mut object) => object.remove(inner)?,
            Value::Null => Value::Null,
            other => {
                self.add_issue(name, &wrong_type("an object", &other));
                return None;
            }
        };
        if found.is_null() {
            return Some(None);
        }
        let path = [name, inner].map(|name| Step::Field(name.to_owned())).to_vec();
        let mut context = FieldContext { path, issues: &mut self.issues };
        read.parse_field(found, &mut context).map(Some)
    }

    /// Treats an empty text as absent.
    pub(crate) fn drop_empty(&mut self, name: &str) {
        if self.object.get(name).is_some_and(|value| value.as_str() == Some("")) {
            self.object.remove(name);
        }
    }

    /// Returns true if the field is present.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    /// Returns true if the field is an object or an array.
    pub(crate) fn is_structured(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| value.is_object() || value.is_array())
    }

    /// Replaces the value of a field by a text.
    pub(crate) fn replace(&mut self, name: &str, text: String) {
        self.object.insert(name.to_owned(), Value::String(text));
    }

    /// Records an issue of a field.
    pub(crate) fn add_issue(&mut self, name: &str, invalid: &Invalid) {
        self.issues.push(Issue::new(vec![Step::Field(name.to_owned())], invalid));
    }

    /// Returns true if there are issues so far.
    pub(crate) fn has_issues(&self) -> bool {
        !self.issues.is_empty()
    }

    /// Records further issues.
    pub(crate) fn add_issues(&mut self, issues: Vec<Issue>) {
        self.issues.extend(issues);
    }

    /// Returns the issues so far.
    pub(crate) fn into_issues(self) -> Vec<Issue> {
        self.issues
    }

    /// Rejects the request if there are issues.
    pub(crate) fn finish(self) -> Result<(), Error> {
        Error::reject_issues(self.issues)
    }

    /// Rejects the request if there are issues. Otherwise returns the values of required fields.
    pub(crate) fn finish_with<V: RequiredValues>(self, required: V) -> Result<V::Values, Error> {
        Error::reject_issues(self.issues)?;
        Ok(required.all().expect("a required field without a value has an issue"))
    }

    fn value<T>(&mut self, name: &str, value: Value, read: impl FieldParser<T>) -> Option<T> {
        let mut context =
            FieldContext { path: vec![Step::Field(name.to_owned())], issues: &mut self.issues };
        read.parse_field(value, &mut context)
    }
}

/// The values of required fields: one, or a tuple of several.
pub(crate) trait RequiredValues {
    /// The values, all present.
    type Values;

    /// Returns the values, or `None` if one is missing.
    fn all(self) -> Option<Self::Values>;
}

impl RequiredValues for () {
    type Values = ();

    fn all(self) -> Option<()> {
        Some(())
    }
}

impl<A> RequiredValues for Option<A> {
    type Values = A;

    fn all(self) -> Self {
        self
    }
}

impl<A, B> RequiredValues for (Option<A>, Option<B>) {
    type Values = (A, B);

    fn all(self) -> Option<(A, B)> {
        self.0.zip(self.1)
    }
}

impl<A, B, C> RequiredValues for (Option<A>, Option<B>, Option<C>) {
    type Values = (A, B, C);

    fn all(self) -> Option<(A, B, C)> {
        Some((self.0?, self.1?, self.2?))
    }
}

/// The path of a value, and the list of issues.
#[derive(Debug)]
pub(crate) struct FieldContext<'i> {
    path: Vec<Step>,
    issues: &'i mut Vec<Issue>,
}

impl FieldContext<'_> {
    /// Records an issue of the value.
    pub(crate) fn refuse(&mut self, invalid: &Invalid) {
        self.issues.push(Issue::new(self.path.clone(), invalid));
    }

    fn item(&mut self, index: usize) -> FieldContext<'_> {
        let mut path = self.path.clone();
        path.push(Step::Item(index));
        FieldContext { path, issues: self.issues }
    }
}

/// A parser of a value.
pub(crate) trait FieldParser<T> {
    /// Parses `value`. Returns `None` after recording an issue.
    fn parse_field(self, value: Value, context: &mut FieldContext<'_>) -> Option<T>;
}

impl<T, F: FnOnce(Value, &mut FieldContext<'_>) -> Option<T>> FieldParser<T> for F {
    fn parse_field(self, value: Value, context: &mut FieldContext<'_>) -> Option<T> {
        self(value, context)
    }
}

/// Parses a text by `parse`.
pub(crate) fn text<T>(
    parse: impl FnOnce(String) -> Result<T, Invalid>,
) -> impl FnOnce(Value, &mut FieldContext<'_>) -> Option<T> {
    |value, context| match value {
        Value::String(text) => parse(text).map_err(|invalid| context.refuse(&invalid)).ok(),
        other => {
            context.refuse(&wrong_type("a string", &other));
            None
        }
    }
}

/// Parses a time.
pub(crate) fn time(text: String) -> Result<Timestamp, Invalid> {
    Timestamp::parse_iso8601(&text).map_err(|_| {
        let message = "must be an ISO 8601 date or date-time, such as 2026-11-20T09:30:00Z";
        Invalid::new("invalid_date", message)
    })
}

/// Parses an identifier. A malformed one yields `Some(None)`, like one of no resource.
pub(crate) fn reference<T: FromStr>(
    value: Value,
    context: &mut FieldContext<'_>,
) -> Option<Option<T>> {
    match value {
        Value::String(text) => Some(text.parse().ok()),
        other => {
            context.refuse(&wrong_type("a string", &other));
            None
        }
    }
}

fn wrong_type(wanted: &str, found: &Value) -> Invalid {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Invalid::new("invalid_type", format!("must be {wanted}, not {found}"))
}

/// Parses an identifier of a resource that must exist. A malformed one is an unknown reference.
pub(crate) fn known_reference<T: FromStr>(
    resource: &'static str,
) -> impl FnOnce(Value, &mut FieldContext<'_>) -> Option<T> {
    move |value, context| {
        let found: Option<T> = reference(value, context)?;
        if found.is_none() {
            context.issues.push(Issue::unknown_reference(context.path.clone(), resource));
        }
        found
    }
}

/// Parses a list of up to `max` identifiers of resources that must exist. An object with an `id`
/// counts as its identifier. Malformed items are recorded as issues, and are `None` in the result.
pub(crate) fn known_references<T: FromStr>(
    what: &'static str,
    max: usize,
) -> impl FnOnce(Value, &mut FieldContext<'_>) -> Option<Vec<Option<T>>> {
    move |value, context| {
        let Value::Array(items) = value else {
            context.refuse(&wrong_type("an array", &value));
            return None;
        };
        if items.len() > max {
            context.refuse(&Invalid::new("too_long", format!("must have at most {max} items")));
            return None;
        }
        let read = items.into_iter().enumerate().map(|(index, item)| {
            let id = match item {
                Value::Object(mut object) => object.remove("id").unwrap_or(Value::Null),
                other => other,
            };
            known_reference(what)(id, &mut context.item(index))
        });
        Some(read.collect())
    }
}

/// Parses a list of 1 to `max` objects.
pub(crate) fn objects(
    max: usize,
) -> impl FnOnce(Value, &mut FieldContext<'_>) -> Option<Vec<Map<String, Value>>> {
    move |value, context| {
        let Value::Array(items) = value else {
            context.refuse(&wrong_type("an array", &value));
            return None;
        };
        if items.is_empty() {
            context.refuse(&Invalid::new("too_short", "must have an item"));
            return None;
        }
        if items.len() > max {
            context.refuse(&Invalid::new("too_long", format!("must have at most {max} items")));
            return None;
        }
        let read = items.into_iter().enumerate().map(|(index, item)| match item {
            Value::Object(object) => Some(object),
            other => {
                context.item(index).refuse(&wrong_type("an object", &other));
                None
            }
        });
        // Collects all items first, so that every issue is recorded.
        let read: Vec<_> = read.collect();
        read.into_iter().collect()
    }
}

/// Returns the ids of a list without issues, each once.
pub(crate) fn each_once<T: Copy + Eq + Hash>(items: Vec<Option<T>>) -> Vec<T> {
    without_repeats(items.into_iter().flatten().collect())
}

/// Parses a boolean.
pub(crate) fn boolean(value: Value, context: &mut FieldContext<'_>) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(value),
        other => {
            context.refuse(&wrong_type("a boolean", &other));
            None
        }
    }
}

/// The limit of permissions in a list. It leaves room for each of them several times.
const PERMISSIONS_LIMIT: usize = 100;

/// Parses a list of permissions.
pub(crate) fn permissions(value: Value, context: &mut FieldContext<'_>) -> Option<PermissionSet> {
    let Value::Array(items) = value else {
        context.refuse(&wrong_type("an array", &value));
        return None;
    };
    if items.len() > PERMISSIONS_LIMIT {
        context.refuse(&Invalid::too_long(PERMISSIONS_LIMIT, "permissions"));
        return None;
    }
    let permission = |text: String| {
        text.parse::<Permission>().map_err(|_| {
            let names = Resource::ALL.iter().map(|what| what.as_str()).collect::<Vec<_>>();
            let message = format!(
                "must be <resource>:read or <resource>:write; the resources are {}",
                names.join(", ")
            );
            Invalid::new("invalid_enum_value", message)
        })
    };
    let read: Vec<_> = items
        .into_iter()
        .enumerate()
        .map(|(index, item)| text(permission)(item, &mut context.item(index)))
        .collect();
    read.into_iter().collect()
}
