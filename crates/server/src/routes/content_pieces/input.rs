//! Fields of a piece that need normalization, sanitization or conversion besides parsing.

use galley_api_types::content::ContentFormat;
use galley_api_types::request::{ContentField, DescriptionHtml, Fields, IssueRecorded, Parsed};
use galley_application::content_input::{ContentInput, ConvertedContent};
use galley_application::sanitize;
use galley_domain::Invalid;
use galley_domain::content_piece::Description;
use utoipa::IntoParams;

use crate::extract::body::JsonBody;
use crate::extract::json;

/// The query parameter of creations and changes. The document omits it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
pub(super) struct DryRunParameter {
    /// Validate the request and convert the content, but change nothing.
    #[param(default = false)]
    dry_run: Option<bool>,
}

/// Normalizes the fields before they are parsed: custom data that is an object or array becomes its
/// JSON text.
pub(super) fn normalized(body: JsonBody) -> JsonBody {
    let JsonBody { mut fields, bytes } = body;
    if fields.is_structured("customData")
        && let Some(text) = json::compact_field(&bytes, "customData")
    {
        fields.replace("customData", text);
    }
    JsonBody { fields, bytes }
}

/// Sanitises a description.
pub(super) fn description(
    fields: &mut Fields,
    html: Option<DescriptionHtml>,
) -> Parsed<Option<Description>> {
    let Some(DescriptionHtml(html)) = html else { return Ok(None) };
    sanitize::description(html).map(Some).map_err(|invalid| {
        fields.add_issue("description", &invalid);
        IssueRecorded
    })
}

/// The content of a request, as sent and as a tree.
#[derive(Debug)]
pub(super) struct PieceContent {
    pub(super) input: ContentInput,
    pub(super) converted: ConvertedContent,
}

/// Parses and converts the content of a body. `Some(None)` is null.
pub(super) fn content(
    body: &mut JsonBody,
    size_limit: usize,
) -> Parsed<Option<Option<PieceContent>>> {
    let format = body.fields.optional::<ContentFormat>("contentFormat");
    let content = body.fields.clearable::<ContentField>("content");
    let (format, Some(content)) = (format?, content?) else { return Ok(None) };
    let Some(content) = content else { return Ok(Some(None)) };
    let input = match content {
        ContentField::Text(text) => {
            ContentInput { format: format.unwrap_or(ContentFormat::Html), text }
        }
        ContentField::Tree if format.is_none_or(|format| format == ContentFormat::Json) => {
            let text = json::field_text(&body.bytes, "content").unwrap_or_default().to_owned();
            ContentInput { format: ContentFormat::Json, text }
        }
        ContentField::Tree => {
            let message = "must be json or absent, as content is an object";
            body.fields.add_issue("contentFormat", &Invalid::new("invalid_enum_value", message));
            return Err(IssueRecorded);
        }
    };
    match input.convert(size_limit) {
        Ok(converted) => Ok(Some(Some(PieceContent { input, converted }))),
        Err(issue) => {
            body.fields.add_issues(vec![issue]);
            Err(IssueRecorded)
        }
    }
}
