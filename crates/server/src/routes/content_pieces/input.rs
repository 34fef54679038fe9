//! Reading a piece's fields from a body.

use galley_domain::content_piece::{CustomData, Description, REFERENCES_MAX, without_repeats};
use galley_domain::{ContentGroupId, ContentPieceId, Invalid, TagId, WorkspaceMemberId};
use serde_json::Value;

use crate::http::app::App;
use crate::http::body::JsonBody;
use crate::http::fields::{Fields, Place, known_reference, known_references};
use crate::http::json;
use crate::sanitize;

/// Makes the fields as they are read: custom data that is an object or array becomes its text,
/// and what is empty where that means nothing becomes absent.
pub(super) fn normalized(body: JsonBody) -> Fields {
    let JsonBody { mut fields, bytes } = body;
    if fields.is_structured("customData")
        && let Some(text) = json::compact_field(&bytes, "customData")
    {
        fields.replace("customData", text);
    }
    fields.drop_empty("customData");
    fields.drop_empty("date");
    fields
}

pub(super) fn description(text: String) -> Result<Description, Invalid> {
    Description::parse(text)
        .and_then(|description| Description::parse(sanitize::description(description.into())))
}

pub(super) fn custom_data(text: String) -> Result<CustomData, Invalid> {
    CustomData::parse(text)
}

pub(super) fn tags(value: Value, place: &mut Place<'_>) -> Option<Vec<TagId>> {
    known_references("tag", REFERENCES_MAX)(value, place).map(without_repeats)
}

pub(super) fn members(value: Value, place: &mut Place<'_>) -> Option<Vec<WorkspaceMemberId>> {
    known_references("workspace member", REFERENCES_MAX)(value, place).map(without_repeats)
}

pub(super) fn content_group(value: Value, place: &mut Place<'_>) -> Option<ContentGroupId> {
    known_reference("content group")(value, place)
}

pub(super) fn reference_piece(value: Value, place: &mut Place<'_>) -> Option<ContentPieceId> {
    known_reference("content piece")(value, place)
}

/// The JSON text of the content's tree, where the body has content.
pub(super) async fn content(
    app: &App,
    fields: &mut Fields,
    html: Option<String>,
) -> Option<String> {
    match app.content_from_html(html?).await {
        Ok(tree) => Some(tree),
        Err(invalid) => {
            fields.refuse("content", &invalid);
            None
        }
    }
}
