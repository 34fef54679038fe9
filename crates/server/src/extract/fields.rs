//! Reading the fields of a body, with everything that is wrong gathered.
//!
//! Each call takes one field out and gives what it says, or notes an issue and gives nothing; the
//! request is refused at the end, with all issues at once.

use std::hash::Hash;
use std::str::FromStr;

use galley_api_types::problem::{Issue, Step};
use galley_application::Error;
use galley_domain::content_piece::without_repeats;
use galley_domain::permission::{Permission, PermissionSet, Resource};
use galley_domain::{Invalid, Timestamp};
use serde_json::{Map, Value};

/// The fields of a JSON object that are still to be read, and what was wrong so far.
#[derive(Debug)]
pub(crate) struct Fields {
    object: Map<String, Value>,
    issues: Vec<Issue>,
}

impl Fields {
    pub(crate) fn new(object: Map<String, Value>) -> Self {
        Self { object, issues: Vec::new() }
    }

    /// A field that must be there.
    pub(crate) fn required<T>(&mut self, name: &str, read: impl Read<T>) -> Option<T> {
        match self.object.remove(name) {
            None | Some(Value::Null) => {
                self.refuse(name, &Invalid::new("required", "is required"));
                None
            }
            Some(value) => self.value(name, value, read),
        }
    }

    /// A field that may be absent or null.
    pub(crate) fn optional<T>(&mut self, name: &str, read: impl Read<T>) -> Option<T> {
        match self.object.remove(name) {
            None | Some(Value::Null) => None,
            Some(value) => self.value(name, value, read),
        }
    }

    /// A field of an update: absent, it stays as it is; null is an error.
    pub(crate) fn replacement<T>(&mut self, name: &str, read: impl Read<T>) -> Option<T> {
        match self.object.remove(name)? {
            Value::Null => {
                self.refuse(name, &Invalid::new("invalid_type", "must not be null"));
                None
            }
            value => self.value(name, value, read),
        }
    }

    /// A field of an update that null clears.
    pub(crate) fn clearable<T>(&mut self, name: &str, read: impl Read<T>) -> Option<Option<T>> {
        match self.object.remove(name)? {
            Value::Null => Some(None),
            value => self.value(name, value, read).map(Some),
        }
    }

    /// A field of an update that null clears only if `clearable`; otherwise null is an error.
    pub(crate) fn clearable_if<T>(
        &mut self,
        clearable: bool,
        name: &str,
        read: impl Read<T>,
    ) -> Option<Option<T>> {
        if clearable { self.clearable(name, read) } else { self.replacement(name, read).map(Some) }
    }

    /// Makes an empty text count as absent.
    pub(crate) fn drop_empty(&mut self, name: &str) {
        if self.object.get(name).is_some_and(|value| value.as_str() == Some("")) {
            self.object.remove(name);
        }
    }

    /// Whether the field is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    /// Whether the field is there, and not a text.
    pub(crate) fn is_structured(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| value.is_object() || value.is_array())
    }

    /// Puts a text in the place of a field.
    pub(crate) fn replace(&mut self, name: &str, text: String) {
        self.object.insert(name.to_owned(), Value::String(text));
    }

    /// Notes what is wrong with a field.
    pub(crate) fn refuse(&mut self, name: &str, invalid: &Invalid) {
        self.issues.push(Issue::new(vec![Step::Field(name.to_owned())], invalid));
    }

    /// Whether anything was wrong so far.
    pub(crate) fn has_issues(&self) -> bool {
        !self.issues.is_empty()
    }

    /// Notes what else was found to be wrong.
    pub(crate) fn add(&mut self, issues: Vec<Issue>) {
        self.issues.extend(issues);
    }

    /// What was wrong so far.
    pub(crate) fn into_issues(self) -> Vec<Issue> {
        self.issues
    }

    /// Refuses the request if anything was wrong.
    pub(crate) fn finish(self) -> Result<(), Error> {
        Error::refuse(self.issues)
    }

    fn value<T>(&mut self, name: &str, value: Value, read: impl Read<T>) -> Option<T> {
        let mut place =
            Place { path: vec![Step::Field(name.to_owned())], issues: &mut self.issues };
        read.read(value, &mut place)
    }
}

/// Where a value stands, and where what is wrong with it is noted.
#[derive(Debug)]
pub(crate) struct Place<'i> {
    path: Vec<Step>,
    issues: &'i mut Vec<Issue>,
}

impl Place<'_> {
    /// Notes what is wrong with the value.
    pub(crate) fn refuse(&mut self, invalid: &Invalid) {
        self.issues.push(Issue::new(self.path.clone(), invalid));
    }

    fn item(&mut self, index: usize) -> Place<'_> {
        let mut path = self.path.clone();
        path.push(Step::Item(index));
        Place { path, issues: self.issues }
    }
}

/// A way to read a value.
pub(crate) trait Read<T> {
    /// What `value` says; nothing after an issue was noted.
    fn read(self, value: Value, place: &mut Place<'_>) -> Option<T>;
}

impl<T, F: FnOnce(Value, &mut Place<'_>) -> Option<T>> Read<T> for F {
    fn read(self, value: Value, place: &mut Place<'_>) -> Option<T> {
        self(value, place)
    }
}

/// Reads a text and what `parse` makes of it.
pub(crate) fn text<T>(
    parse: impl FnOnce(String) -> Result<T, Invalid>,
) -> impl FnOnce(Value, &mut Place<'_>) -> Option<T> {
    |value, place| match value {
        Value::String(text) => parse(text).map_err(|invalid| place.refuse(&invalid)).ok(),
        other => {
            place.refuse(&wrong_type("a string", &other));
            None
        }
    }
}

/// Reads a time.
pub(crate) fn time(text: String) -> Result<Timestamp, Invalid> {
    Timestamp::parse_iso8601(&text).map_err(|_| {
        let message = "must be an ISO 8601 date or date-time, such as 2026-11-20T09:30:00Z";
        Invalid::new("invalid_date", message)
    })
}

/// Reads an identifier; one that is malformed names nothing.
pub(crate) fn reference<T: FromStr>(value: Value, place: &mut Place<'_>) -> Option<Option<T>> {
    match value {
        Value::String(text) => Some(text.parse().ok()),
        other => {
            place.refuse(&wrong_type("a string", &other));
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

/// Reads an identifier of a resource that must be there; one that is malformed names nothing.
pub(crate) fn known_reference<T: FromStr>(
    what: &'static str,
) -> impl FnOnce(Value, &mut Place<'_>) -> Option<T> {
    move |value, place| {
        let found: Option<T> = reference(value, place)?;
        if found.is_none() {
            place.issues.push(Issue::unknown_reference(place.path.clone(), what));
        }
        found
    }
}

/// Reads a list of up to `max` identifiers of resources that must be there; an object that has an
/// `id` stands for it. Items that are none are noted, and keep their place as `None`.
pub(crate) fn known_references<T: FromStr>(
    what: &'static str,
    max: usize,
) -> impl FnOnce(Value, &mut Place<'_>) -> Option<Vec<Option<T>>> {
    move |value, place| {
        let Value::Array(items) = value else {
            place.refuse(&wrong_type("an array", &value));
            return None;
        };
        if items.len() > max {
            place.refuse(&Invalid::new("too_long", format!("must have at most {max} items")));
            return None;
        }
        let read = items.into_iter().enumerate().map(|(index, item)| {
            let id = match item {
                Value::Object(mut object) => object.remove("id").unwrap_or(Value::Null),
                other => other,
            };
            known_reference(what)(id, &mut place.item(index))
        });
        Some(read.collect())
    }
}

/// Reads a list of 1 to `max` objects.
pub(crate) fn objects(
    max: usize,
) -> impl FnOnce(Value, &mut Place<'_>) -> Option<Vec<Map<String, Value>>> {
    move |value, place| {
        let Value::Array(items) = value else {
            place.refuse(&wrong_type("an array", &value));
            return None;
        };
        if items.is_empty() {
            place.refuse(&Invalid::new("too_short", "must have an item"));
            return None;
        }
        if items.len() > max {
            place.refuse(&Invalid::new("too_long", format!("must have at most {max} items")));
            return None;
        }
        let read = items.into_iter().enumerate().map(|(index, item)| match item {
            Value::Object(object) => Some(object),
            other => {
                place.item(index).refuse(&wrong_type("an object", &other));
                None
            }
        });
        // All of them, for all that is wrong.
        let read: Vec<_> = read.collect();
        read.into_iter().collect()
    }
}

/// The ids of a list in which nothing was wrong, each once.
pub(crate) fn each_once<T: Copy + Eq + Hash>(items: Vec<Option<T>>) -> Vec<T> {
    without_repeats(items.into_iter().flatten().collect())
}

/// Reads a boolean.
pub(crate) fn boolean(value: Value, place: &mut Place<'_>) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(value),
        other => {
            place.refuse(&wrong_type("a boolean", &other));
            None
        }
    }
}

/// Reads one field of an object, whose others are ignored: `Some(None)` where it is absent, and
/// `Some(Some(None))` where it is null.
pub(crate) fn field_of<T>(
    name: &'static str,
    read: impl Read<T>,
) -> impl FnOnce(Value, &mut Place<'_>) -> Option<Option<Option<T>>> {
    move |value, place| {
        let Value::Object(mut object) = value else {
            place.refuse(&wrong_type("an object", &value));
            return None;
        };
        match object.remove(name) {
            None => Some(None),
            Some(Value::Null) => Some(Some(None)),
            Some(value) => {
                let mut path = place.path.clone();
                path.push(Step::Field(name.to_owned()));
                let mut inner = Place { path, issues: place.issues };
                read.read(value, &mut inner).map(|value| Some(Some(value)))
            }
        }
    }
}

/// How many permissions a list has at the most: each of them several times.
const PERMISSIONS_MAX: usize = 100;

/// Reads a list of permissions.
pub(crate) fn permissions(value: Value, place: &mut Place<'_>) -> Option<PermissionSet> {
    let Value::Array(items) = value else {
        place.refuse(&wrong_type("an array", &value));
        return None;
    };
    if items.len() > PERMISSIONS_MAX {
        place.refuse(&Invalid::too_long(PERMISSIONS_MAX, "permissions"));
        return None;
    }
    let permission = |text: String| {
        text.parse::<Permission>().map_err(|_| {
            let names = Resource::ALL.iter().map(|what| what.as_str()).collect::<Vec<_>>();
            let message = format!("must be <what>:read or <what>:write, of {}", names.join(", "));
            Invalid::new("invalid_enum_value", message)
        })
    };
    let read: Vec<_> = items
        .into_iter()
        .enumerate()
        .map(|(index, item)| text(permission)(item, &mut place.item(index)))
        .collect();
    read.into_iter().collect()
}
