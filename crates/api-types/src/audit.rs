//! The JSON representation of an entry of the audit log.

use std::borrow::Cow;

use galley_domain::audit::AuditEntry;
use galley_domain::{AuditEntryId, ContentPieceId, RevisionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::actor::ActorBody;
use crate::content_piece::ReferencedResources;
use crate::schemas;

/// A change of a resource.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntryBody<'a> {
    #[schema(value_type = schemas::AuditEntryId)]
    id: AuditEntryId,
    #[schema(value_type = schemas::Time)]
    at: Timestamp,
    actor: ActorBody<'a>,
    /// The kind of the resource, and a verb.
    #[schema(value_type = schemas::AuditAction)]
    action: &'static str,
    target: AuditTargetBody<'a>,
    /// The identifier of the request, as in its `X-Request-Id`. Null for a change by the server or
    /// by a command.
    #[schema(example = "01939d2d6a3c7e0fb3c1f6a0a4e9d2b1")]
    request_id: Option<&'a str>,
    /// The address of the client. It is removed after 90 days.
    #[schema(example = "203.0.113.7")]
    remote_address: Option<&'a str>,
    /// The changed fields.
    #[schema(value_type = Vec<FieldChangeBody>)]
    changes: &'a RawValue,
}

/// The changed resource.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditTarget)]
#[serde(rename_all = "camelCase")]
struct AuditTargetBody<'a> {
    /// The kind of the resource: the first part of `action`.
    #[serde(rename = "type")]
    #[schema(example = "contentPiece")]
    kind: &'static str,
    /// Its identifier. The resource may have been deleted.
    #[schema(example = "cp_01kah3v9k8d4x7w2m5n6p8q9rs")]
    id: &'a str,
    /// The revision of the piece that the change created, published, updated or removed.
    #[schema(value_type = Option<schemas::RevisionId>)]
    revision: Option<RevisionId>,
}

/// A changed field. The values of pieces are those of the revision. Values that may be secret, or
/// that are longer than 4,000 bytes, are left out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = AuditFieldChange)]
pub struct FieldChangeBody {
    /// The name of the field.
    #[schema(value_type = String, example = "label")]
    pub field: Cow<'static, str>,
    /// The value before the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false, example = "News")]
    pub before: Option<Value>,
    /// The value after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false, example = "Updates")]
    pub after: Option<Value>,
}

impl<'a> AuditEntryBody<'a> {
    /// Creates the representation of an entry.
    pub fn new(entry: &'a AuditEntry, referenced: &'a ReferencedResources) -> Self {
        let json = entry.changes.as_deref().unwrap_or("[]");
        let changes: &'a RawValue = serde_json::from_str(json)
            .or_else(|_| serde_json::from_str("[]"))
            .expect("a list is JSON");
        let piece = entry.target.parse::<ContentPieceId>();
        let revision = entry.revision.zip(piece.ok());
        Self {
            id: entry.id,
            at: entry.at(),
            actor: referenced.actor(entry.actor),
            action: entry.action.as_str(),
            target: AuditTargetBody {
                kind: entry.action.target_type(),
                id: &entry.target,
                revision: revision.map(|(number, piece)| RevisionId::of(piece, number)),
            },
            request_id: entry.request_id.as_deref(),
            remote_address: entry.remote_address.as_deref(),
            changes,
        }
    }
}
