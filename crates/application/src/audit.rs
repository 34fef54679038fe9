//! The recording of changes in the audit log, in their transactions.

use std::collections::BTreeSet;
use std::fmt::Display;

use galley_api_types::audit::FieldChangeBody;
use galley_domain::AuditEntryId;
use galley_domain::audit::{AuditAction, AuditEntry};
use galley_domain::content_piece::PieceField;
use galley_storage::{WriteTx, audit};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::scope::Scope;

/// The limit on bytes of a value, as JSON. Of a longer one, only the field is recorded.
const VALUE_MAX: usize = 4_000;

/// The fields that are not recorded: identifiers that the entry has, and those that the server
/// changes.
const LEFT_OUT: [&str; 8] = [
    "id",
    "createdAt",
    "lastUsedAt",
    "failingSince",
    "droppedDeliveries",
    "disabledReason",
    "descendants",
    "profile",
];

/// The fields whose values may be secret, so that only their names are recorded. The URLs of
/// receivers and of preview pages often have a key.
const SECRET: [&str; 4] = ["url", "previewUrl", "secret", "token"];

/// The changed fields of an entry, and its revision.
#[derive(Debug, Default)]
pub(crate) struct AuditChanges {
    fields: Vec<FieldChangeBody>,
    revision: Option<i64>,
}

impl AuditChanges {
    /// Returns the fields of a new resource, in its JSON representation.
    pub(crate) fn created(resource: impl Serialize) -> Self {
        Self::between(Value::Null, to_value(resource))
    }

    /// Returns the fields of a deleted resource.
    pub(crate) fn deleted(resource: impl Serialize) -> Self {
        Self::between(to_value(resource), Value::Null)
    }

    /// Returns the fields that differ.
    pub(crate) fn updated(before: impl Serialize, after: impl Serialize) -> Self {
        Self::between(to_value(before), to_value(after))
    }

    /// Returns the change of a piece, whose values are those of a revision.
    pub(crate) fn of_piece(
        fields: impl IntoIterator<Item = PieceField>,
        revision: Option<i64>,
    ) -> Self {
        let changes = Self { fields: Vec::new(), revision };
        fields.into_iter().fold(changes, |changes, field| changes.with_field(field.as_str()))
    }

    /// Sets the revision.
    pub(crate) fn with_revision(self, revision: Option<i64>) -> Self {
        Self { revision, ..self }
    }

    /// Adds a field without its values.
    pub(crate) fn with_field(mut self, field: &'static str) -> Self {
        self.fields.push(FieldChangeBody { field: field.into(), before: None, after: None });
        self
    }

    /// Adds the fields of other changes.
    pub(crate) fn with(mut self, other: Self) -> Self {
        self.fields.extend(other.fields);
        self
    }

    fn between(before: Value, after: Value) -> Self {
        let fields = |value| match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let (mut before, mut after) = (fields(before), fields(after));
        let names: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
        let mut changes = Self::default();
        for name in names {
            let (old, new) = (before.remove(&name), after.remove(&name));
            let [old, new] = [old, new].map(|value| value.filter(|value| !value.is_null()));
            if old == new || LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            let is_secret = SECRET.contains(&name.as_str());
            let [before, after] = [old, new].map(|value| {
                value.filter(|value| !is_secret && value.to_string().len() <= VALUE_MAX)
            });
            changes.fields.push(FieldChangeBody { field: name.into(), before, after });
        }
        changes
    }

    fn to_json(&self) -> Option<String> {
        let json = serde_json::to_string(&self.fields).expect("values are JSON");
        (!self.fields.is_empty()).then_some(json)
    }
}

/// Returns the JSON of changes without the values of their fields.
pub(crate) fn without_values(changes: &str) -> Option<String> {
    let mut fields: Vec<FieldChangeBody> = serde_json::from_str(changes).ok()?;
    for change in &mut fields {
        (change.before, change.after) = (None, None);
    }
    AuditChanges { fields, revision: None }.to_json()
}

fn to_value(resource: impl Serialize) -> Value {
    serde_json::to_value(resource).expect("resources are JSON")
}

/// Records a change in the scope's workspace, on behalf of its author.
pub(crate) fn record(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    action: AuditAction,
    target: impl Display,
    changes: AuditChanges,
) {
    let request = scope.request.as_ref();
    let address = request.and_then(|request| request.remote_address);
    let entry = AuditEntry {
        id: AuditEntryId::new(environment.new_id()),
        actor: scope.author,
        action,
        target: target.to_string(),
        revision: changes.revision,
        request_id: request.map(|request| request.request_id.to_string()),
        remote_address: address.map(|address| address.to_string()),
        changes: changes.to_json(),
    };
    audit::append(tx, scope.workspace, entry);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json_of(changes: AuditChanges) -> Value {
        changes.to_json().map_or(Value::Null, |json| serde_json::from_str(&json).unwrap())
    }

    #[test]
    fn an_update_has_the_values_of_the_fields_that_differ() {
        let before = json!({"id": "tag_1", "label": "A", "color": null, "list": [1]});
        let after = json!({"id": "tag_2", "label": "B", "color": "red", "list": [1]});
        let expected = json!([
            {"field": "color", "after": "red"},
            {"field": "label", "before": "A", "after": "B"},
        ]);
        assert_eq!(json_of(AuditChanges::updated(&before, &after)), expected);
        assert_eq!(json_of(AuditChanges::updated(&before, &before)), Value::Null);
    }

    #[test]
    fn secrets_and_long_values_are_left_out() {
        let resource = json!({"url": "https://example.org/key", "name": "x".repeat(4_000)});
        let expected = json!([{"field": "name"}, {"field": "url"}]);
        assert_eq!(json_of(AuditChanges::created(&resource)), expected);
        assert_eq!(json_of(AuditChanges::deleted(&resource)), expected);
    }

    #[test]
    fn a_change_of_a_piece_names_its_fields_and_its_revision() {
        let changes = AuditChanges::of_piece([PieceField::Title, PieceField::Content], Some(7));
        assert_eq!(changes.revision, Some(7));
        let changes = changes.with_field("contentGroupId");
        let expected =
            json!([{"field": "title"}, {"field": "content"}, {"field": "contentGroupId"}]);
        assert_eq!(json_of(changes), expected);
        assert_eq!(
            json_of(AuditChanges::of_piece([], None).with_field("order")),
            json!([{"field": "order"}])
        );
    }
}
