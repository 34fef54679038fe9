//! The parts of request schemas that the declaration of a field can't express: conditions between
//! fields, and defaults.

use serde_json::{Value, json};

/// The fields that may be null for a variant only.
const REQUIRED_PIECE_FIELDS: [&str; 4] = ["title", "slug", "tags", "members"];

/// Adds the conditions to the schemas of the requests.
pub(super) fn add(schemas: &mut Value) {
    let given = |name: &str| (name.to_owned(), json!({"not": {"type": "null"}}));
    let of_the_piece: Value = REQUIRED_PIECE_FIELDS.map(given).into_iter().collect();
    schemas["ContentPieceChange"]["anyOf"] = json!([
        {"required": ["variant"], "properties": {"variant": {"type": "string", "minLength": 1}}},
        {"properties": of_the_piece},
    ]);

    for request in ["NewContentPiece", "ContentPieceChange", "ContentConversion"] {
        let of_content =
            json!({"required": ["content"], "properties": {"content": {"type": "object"}}});
        schemas[request]["if"] = of_content;
        schemas[request]["then"] =
            json!({"properties": {"contentFormat": {"enum": ["json", null]}}});
    }

    let webhook = &mut schemas["NewWebhook"];
    let events = webhook["properties"]["event"]["enum"].as_array().cloned().unwrap_or_default();
    let is_of_pieces = |event: &Value| event.as_str().unwrap_or_default().contains("Piece");
    let others: Vec<_> = events.into_iter().filter(|event| !is_of_pieces(event)).collect();
    let group = json!({
        "type": "object",
        "required": ["contentGroupId"],
        "properties": {"contentGroupId": {"type": "string"}},
    });
    let no_group = json!({"properties": {"contentGroupId": {"type": "null"}}});
    webhook["anyOf"] = json!([
        {
            "required": ["metadata"],
            "properties": {"metadata": group, "wholeWorkspace": {"enum": [false, null]}},
        },
        {
            "required": ["wholeWorkspace"],
            "properties": {"metadata": no_group.clone(), "wholeWorkspace": {"const": true}},
        },
        {
            "properties": {
                "event": {"enum": others.clone()},
                "events": {"items": {"enum": others}},
                "metadata": no_group,
                "wholeWorkspace": {"enum": [true, null]},
            },
        },
    ]);

    webhook["properties"]["enabled"]["default"] = true.into();

    // A new webhook may have an empty secret, which counts as none.
    schemas["WebhookSecretRotation"]["properties"]["secret"]["minLength"] = 1.into();

    // All form fields are strings, unknown ones included.
    schemas["InviteForm"]["additionalProperties"] = json!({"type": "string"});
}
