//! Parsers for the fields of a piece in a request body.

use galley_application::operations::content_pieces;
use galley_application::operations::content_pieces::RequestReferences;
use galley_application::{Caller, Error};
use galley_content::ConversionWarning;
use galley_domain::content_piece::{CustomData, REFERENCES_MAX};
use galley_domain::{ContentGroupId, ContentPieceId, Invalid, TagId, WorkspaceMemberId};
use serde_json::Value;

use crate::app::App;
use crate::extract::body::JsonBody;
use crate::extract::fields::{
    FieldContext, Fields, RequiredValues, known_reference, known_references,
};
use crate::extract::json;

/// Normalizes the fields before they are parsed. Custom data that is an object or array becomes its
/// JSON text. Empty custom data and an empty date become absent.
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

pub(super) fn custom_data(text: String) -> Result<CustomData, Invalid> {
    CustomData::parse(text)
}

pub(super) fn tags(value: Value, context: &mut FieldContext<'_>) -> Option<Vec<Option<TagId>>> {
    known_references("tag", REFERENCES_MAX)(value, context)
}

pub(super) fn members(
    value: Value,
    context: &mut FieldContext<'_>,
) -> Option<Vec<Option<WorkspaceMemberId>>> {
    known_references("workspace member", REFERENCES_MAX)(value, context)
}

/// Rejects a body with all of its issues. If there are any, they include references that don't
/// exist. Otherwise returns the values of the required fields.
pub(super) async fn finish<V: RequiredValues>(
    caller: &Caller,
    mut fields: Fields,
    references: RequestReferences,
    required: V,
) -> Result<V::Values, Error> {
    if fields.has_issues() {
        fields.add_issues(content_pieces::missing_references(caller, references).await?);
    }
    fields.finish_with(required)
}

pub(super) fn content_group(
    value: Value,
    context: &mut FieldContext<'_>,
) -> Option<ContentGroupId> {
    known_reference("content group")(value, context)
}

pub(super) fn reference_piece(
    value: Value,
    context: &mut FieldContext<'_>,
) -> Option<ContentPieceId> {
    known_reference("content piece")(value, context)
}

/// Converts the content's HTML to a tree. Returns the tree as JSON, or `None` if the content is
/// absent or rejected.
///
/// With `losses`, collects the conversion warnings as well.
pub(super) fn content(
    app: &App,
    fields: &mut Fields,
    html: Option<String>,
    losses: Option<&mut Vec<ConversionWarning>>,
) -> Option<String> {
    match app.content_from_html(&html?, losses.is_some()) {
        Ok((tree, lost)) => {
            if let Some(losses) = losses {
                *losses = lost;
            }
            Some(tree)
        }
        Err(invalid) => {
            fields.add_issue("content", &invalid);
            None
        }
    }
}
