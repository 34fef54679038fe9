//! The recording of changes in the audit log, in their transactions.

use std::fmt::Display;

use galley_domain::AuditEntryId;
use galley_domain::audit::{AuditAction, AuditEntry};
use galley_domain::content_piece::PieceField;
use galley_storage::{WriteTx, audit};
use serde::Serialize;
use serde_json::Value;

use crate::environment::Environment;
use crate::scope::Scope;

/// The limit on bytes of a value, as JSON. Of a longer one, only the field is recorded.
const VALUE_MAX: usize = 1_000;

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

/// The fields whose values may be secret, so that only their names are recorded. A receiver's URL
/// often has a key.
const SECRET: [&str; 3] = ["url", "secret", "token"];

/// A changed field of a resource.
#[derive(Debug, Serialize)]
struct FieldChange<'a> {
    field: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a Value>,
}

/// The changed fields of an entry, and its revision.
#[derive(Debug, Default)]
pub(crate) struct AuditChanges {
    json: Option<String>,
    revision: Option<i64>,
}

impl AuditChanges {
    /// Returns the fields of a new resource, in its JSON representation.
    pub(crate) fn created(resource: impl Serialize) -> Self {
        Self::between(&Value::Null, &to_value(resource))
    }

    /// Returns the fields of a deleted resource.
    pub(crate) fn deleted(resource: impl Serialize) -> Self {
        Self::between(&to_value(resource), &Value::Null)
    }

    /// Returns the fields that differ.
    pub(crate) fn updated(before: impl Serialize, after: impl Serialize) -> Self {
        Self::between(&to_value(before), &to_value(after))
    }

    /// Returns the change of a piece, whose values are those of a revision.
    pub(crate) fn of_piece(
        fields: impl IntoIterator<Item = PieceField>,
        revision: Option<i64>,
    ) -> Self {
        let names = fields.into_iter().map(PieceField::as_str);
        Self { json: named_fields(names), revision }
    }

    /// Sets the revision.
    pub(crate) fn with_revision(self, revision: Option<i64>) -> Self {
        Self { revision, ..self }
    }

    /// Adds a field without its values.
    pub(crate) fn with_field(self, field: &str) -> Self {
        let added = named_fields([field]).unwrap_or_default();
        let json = match self.json {
            Some(json) => {
                format!("{},{}", json.trim_end_matches(']'), added.trim_start_matches('['))
            }
            None => added,
        };
        Self { json: Some(json), ..self }
    }

    fn between(before: &Value, after: &Value) -> Self {
        let (before, after) = (before.as_object(), after.as_object());
        let mut names: Vec<&String> =
            [before, after].into_iter().flatten().flat_map(serde_json::Map::keys).collect();
        names.sort_unstable();
        names.dedup();
        let value = |fields: Option<&'_ serde_json::Map<String, Value>>, name: &str| {
            fields.and_then(|fields| fields.get(name)).filter(|value| !value.is_null()).cloned()
        };
        let mut changes = Vec::new();
        for name in names {
            let (old, new) = (value(before, name), value(after, name));
            if old == new || LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            let is_secret = SECRET.contains(&name.as_str());
            let shown = |value: &Option<Value>| {
                let value = value.as_ref().filter(|_| !is_secret)?;
                (value.to_string().len() <= VALUE_MAX).then(|| value.clone())
            };
            changes.push((name, shown(&old), shown(&new)));
        }
        let changes: Vec<_> = changes
            .iter()
            .map(|(field, before, after)| FieldChange {
                field,
                before: before.as_ref(),
                after: after.as_ref(),
            })
            .collect();
        let json = serde_json::to_string(&changes).expect("values are JSON");
        Self { json: (!changes.is_empty()).then_some(json), revision: None }
    }
}

/// Returns the JSON of changes without values. The names need no escapes.
fn named_fields<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let mut json = String::new();
    for name in names {
        json.push_str(if json.is_empty() { "[{\"field\":\"" } else { ",{\"field\":\"" });
        json.push_str(name);
        json.push_str("\"}");
    }
    (!json.is_empty()).then(|| json + "]")
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
        changes: changes.json,
    };
    audit::append(tx, scope.workspace, entry);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json_of(changes: AuditChanges) -> Value {
        changes.json.map_or(Value::Null, |json| serde_json::from_str(&json).unwrap())
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
        let resource = json!({"url": "https://example.org/key", "name": "x".repeat(1_000)});
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
