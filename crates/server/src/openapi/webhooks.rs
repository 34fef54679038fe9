//! The webhook requests in the OpenAPI document: one for each event type. They follow Standard
//! Webhooks.

use galley_api_types::event_envelope::ChangeKind;
use galley_api_types::sample_events::sample_data;
use galley_api_types::schemas::{self, capitalized};
use galley_domain::event::EventType;
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::examples;

/// Adds the schemas that only events use.
pub(super) fn schemas(list: &mut Vec<(String, RefOr<Schema>)>) {
    list.push((schemas::WorkspaceId::name().into(), schemas::WorkspaceId::schema()));
}

/// Returns the schemas of the webhooks' bodies, one for each event type.
pub(super) fn bodies() -> Vec<(String, Value)> {
    EventType::ALL.iter().map(|event| (body_name(*event), envelope(*event))).collect()
}

/// Adds the schemas of the data that differ from the resource: of pieces, with the key of the
/// changed variant, and of tags and variants, with the kind of the change.
pub(super) fn add_event_data(schemas: &mut Value) {
    let mut data = schemas["ContentPiece"].clone();
    data["properties"]["variant"] = json!({
        "type": "string",
        "description": "The key of the variant that was changed; absent if the piece itself was \
                        changed.",
        "examples": ["de"],
    });
    data["properties"]["customData"] = json!({
        "type": ["string", "null"],
        "description": "Custom JSON, as a string.",
        "examples": ["{\"pinned\":true}"],
    });
    schemas[PIECE_DATA] = data;
    let kinds = ChangeKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>();
    for (name, resource) in [(TAG_DATA, "Tag"), (VARIANT_DATA, "Variant")] {
        let mut data = schemas[resource].clone();
        data["properties"]["change"] = json!({
            "type": "string",
            "enum": kinds,
            "description": "The kind of the change.",
            "examples": [ChangeKind::Updated.as_str()],
        });
        if let Some(required) = data["required"].as_array_mut() {
            required.push("change".into());
        }
        schemas[name] = data;
    }
}

/// The name of the schema of the data in events of pieces.
const PIECE_DATA: &str = "ContentPieceEventData";

/// The names of the schemas of the data in events of tags and variants.
const TAG_DATA: &str = "TagEventData";
const VARIANT_DATA: &str = "VariantEventData";

/// Returns the schema name of an event's body, such as `ContentPieceAddedEvent`.
fn body_name(event: EventType) -> String {
    format!("{}Event", capitalized(event.as_str()))
}

/// Returns the schema of the data of any event.
pub(super) fn any_event_data() -> Value {
    let of = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    json!({
        "description": "The resource as its GET returns it directly after the change or, for a \
                        removal, before it.",
        "anyOf": [
            of(PIECE_DATA),
            of("ContentGroup"),
            of("WorkspaceMember"),
            of(TAG_DATA),
            of(VARIANT_DATA),
            of("Asset"),
        ],
    })
}

/// Returns the `webhooks` section of the document: an operation for each event type.
pub(super) fn section() -> Value {
    let item = |event: &EventType| (event.as_str().to_owned(), json!({"post": operation(*event)}));
    Value::Object(EventType::ALL.iter().map(item).collect::<Map<_, _>>())
}

fn operation(event: EventType) -> Value {
    let id = capitalized(event.as_str());
    let body = json!({"$ref": format!("#/components/schemas/{}", body_name(event))});
    json!({
        "operationId": format!("on{id}"),
        "tags": ["Webhooks"],
        "summary": summary(event),
        "description": "The request to each webhook that is registered for this event. It is \
                        delivered at least once, always with the same `webhook-id`; `sequence` is \
                        the commit order of the workspace's events.",
        "security": [],
        "parameters": parameters(),
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": body}},
        },
        "responses": {
            "2XX": {
                "description": "The event is accepted if the response arrives within 15 seconds. \
                                The body is ignored.",
            },
            "410": {
                "description": "The receiver is gone: the webhook is disabled immediately.",
            },
            "429": error_response(true),
            "503": error_response(true),
            "default": error_response(false),
        },
    })
}

/// Returns a response after which the event is retried.
fn error_response(heeds_retry_after: bool) -> Value {
    let mut answer = json!({
        "description": "The event is not accepted and is retried: after 1 s, 5 s, 30 s, 5 min, 30 \
                        min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h. Redirects are not followed.",
    });
    if heeds_retry_after {
        answer["headers"]["Retry-After"] = json!({
            "description": "The minimum number of seconds before the next attempt; a day at most.",
            "schema": {"type": "string", "examples": ["60"]},
        });
    }
    answer
}

fn summary(event: EventType) -> &'static str {
    match event {
        EventType::ContentPieceUpdated => {
            "A piece or one of its variants was changed, reordered, or moved within the watched group"
        }
        EventType::ContentPieceAdded => "A piece was created in, or moved into, the watched group",
        EventType::ContentPieceRemoved => {
            "A piece was deleted from, or moved out of, the watched group"
        }
        EventType::ContentPiecePublished => "A revision of a piece was published",
        EventType::ContentPieceUnpublished => "A piece was unpublished",
        EventType::ContentGroupAdded => "A content group was created",
        EventType::ContentGroupRemoved => "A content group was deleted",
        EventType::ContentGroupMoved => "A content group was moved under another one",
        EventType::ContentGroupChanged => "A content group was renamed",
        EventType::MemberInvited => "A person was invited",
        EventType::MemberAdded => "An invite was accepted, or the operator added a member",
        EventType::MemberRemoved => "A member was removed, or an invite was withdrawn",
        EventType::TagChanged => "A tag was created, changed or deleted",
        EventType::VariantChanged => "A variant was created, changed or deleted",
        EventType::AssetAdded => "An asset was uploaded",
        EventType::AssetRemoved => "An asset was deleted",
    }
}

/// Returns the schema of `data`: the resource as its GET returns it directly after the change or,
/// for a removal, before it.
fn data(event: EventType) -> Value {
    match event {
        EventType::ContentPieceUpdated
        | EventType::ContentPieceAdded
        | EventType::ContentPieceRemoved
        | EventType::ContentPiecePublished
        | EventType::ContentPieceUnpublished => {
            json!({"$ref": format!("#/components/schemas/{PIECE_DATA}")})
        }
        EventType::ContentGroupAdded
        | EventType::ContentGroupRemoved
        | EventType::ContentGroupMoved
        | EventType::ContentGroupChanged => json!({"$ref": "#/components/schemas/ContentGroup"}),
        EventType::MemberInvited | EventType::MemberAdded | EventType::MemberRemoved => {
            json!({"$ref": "#/components/schemas/WorkspaceMember"})
        }
        EventType::TagChanged => json!({"$ref": format!("#/components/schemas/{TAG_DATA}")}),
        EventType::AssetAdded | EventType::AssetRemoved => {
            json!({"$ref": "#/components/schemas/Asset"})
        }
        EventType::VariantChanged => {
            json!({"$ref": format!("#/components/schemas/{VARIANT_DATA}")})
        }
    }
}

fn envelope(event: EventType) -> Value {
    let of = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    json!({
        "type": "object",
        "required": ["type", "timestamp", "sequence", "workspaceId", "webhookId", "data"],
        "properties": {
            "type": {"type": "string", "const": event.as_str()},
            "timestamp": of("Time"),
            "sequence": {
                "type": "integer",
                "minimum": 0,
                "description": "The number of the event among the workspace's events, in the order \
                                of their commits; 0 in a sample.",
                "examples": [1042],
            },
            "workspaceId": of("WorkspaceId"),
            "webhookId": of("WebhookId"),
            "data": data(event),
            "test": {
                "type": "boolean",
                "description": "True in a requested sample; otherwise absent.",
                "examples": [true],
            },
        },
    })
}

fn parameters() -> Value {
    let header = |name: &str, required: bool, about: &str, example: &str| {
        json!({
            "name": name,
            "in": "header",
            "required": required,
            "description": about,
            "schema": {"type": "string", "examples": [example]},
        })
    };
    json!([
        header(
            "webhook-id",
            true,
            "The event's identifier, the same on every attempt and for every webhook that receives \
             it.",
            "evt_01kah3v9k8d4x7w2m5n6p8q9rs",
        ),
        header(
            "webhook-timestamp",
            true,
            "The time of this attempt, in Unix seconds.",
            "1763631000"
        ),
        header(
            "webhook-signature",
            false,
            "With a secret: `v1,` and the base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`. \
             The key is the secret's bytes or, after `whsec_`, its decoded base64. For 24 hours \
             after a rotation, a space and the signature of the previous secret follow.",
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        ),
        header(
            "user-agent",
            true,
            "The program and its version.",
            concat!("Galley-Webhooks/", env!("CARGO_PKG_VERSION")),
        ),
    ])
}

/// Adds an example to each request: the envelope of the event's sample.
pub(super) fn add_examples(section: &mut Value, schemas: &Value) {
    for event in EventType::ALL {
        let item = &mut section[event.as_str()];
        let body = &mut item["post"]["requestBody"]["content"]["application/json"];
        let mut example = examples::example_of(&body["schema"], schemas).unwrap_or_default();
        // Fields that few events have would mislead in an example.
        example.as_object_mut().map(|example| example.shift_remove("test"));
        example["data"] = sample_data(*event).clone();
        body["example"] = example;
    }
}
