//! Fields of a piece that need normalization, sanitization or conversion besides parsing.

use galley_api_types::request::{DescriptionHtml, Fields, HtmlText, IssueRecorded, Parsed};
use galley_application::sanitize;
use galley_content::ConversionWarning;
use galley_domain::content_piece::Description;
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::body::JsonBody;
use crate::extract::json;

/// The query parameter of creations and changes.
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
pub(super) fn normalized(body: JsonBody) -> Fields {
    let JsonBody { mut fields, bytes } = body;
    if fields.is_structured("customData")
        && let Some(text) = json::compact_field(&bytes, "customData")
    {
        fields.replace("customData", text);
    }
    fields
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

/// Converts the content's HTML to a tree, and returns the tree as JSON.
///
/// With `warnings`, collects the conversion warnings as well.
pub(super) fn content(
    app: &App,
    fields: &mut Fields,
    html: Option<HtmlText>,
    warnings: Option<&mut Vec<ConversionWarning>>,
) -> Parsed<Option<String>> {
    let Some(HtmlText(html)) = html else { return Ok(None) };
    match app.content_from_html(&html, warnings.is_some()) {
        Ok((tree, found)) => {
            if let Some(warnings) = warnings {
                *warnings = found;
            }
            Ok(Some(tree))
        }
        Err(invalid) => {
            fields.add_issue("content", &invalid);
            Err(IssueRecorded)
        }
    }
}
