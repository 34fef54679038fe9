//! The JSON response to a dry run.

use galley_content::ConversionWarning;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::content::ContentTree;

/// The content that the request would store, and a report on its conversion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DryRun)]
pub struct DryRunBody<'a> {
    /// The content as it would be stored.
    #[schema(value_type = ContentTree)]
    pub content: &'a RawValue,
    pub report: ReportBody<'a>,
}

impl<'a> DryRunBody<'a> {
    pub fn new(content: &'a RawValue, losses: &'a [ConversionWarning]) -> Self {
        Self { content, report: ReportBody { losses: losses.iter().map(LossBody::from).collect() } }
    }
}

/// The report on the conversion of the content's HTML.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DryRunReport)]
pub struct ReportBody<'a> {
    /// The conversion warnings, in the order of their first occurrence. At most 500 distinct ones.
    pub losses: Vec<LossBody<'a>>,
}

/// A conversion warning: an element, an attribute or a style property that the tree can't
/// represent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversionWarning)]
pub struct LossBody<'a> {
    /// The name of the element.
    #[schema(example = "font")]
    element: &'a str,
    /// The name of the lost attribute, if the loss is an attribute.
    #[schema(example = "class")]
    attribute: Option<&'a str>,
    /// The name of the lost property, if the attribute is `style`.
    #[schema(example = "font-size")]
    property: Option<&'a str>,
    /// The effect. `dropped`: an element is removed with its descendants, or an attribute is
    /// removed. `unwrapped`: the element is removed, and its children stay.
    #[schema(example = "dropped")]
    effect: &'static str,
    /// The number of occurrences.
    #[schema(example = 1)]
    count: u64,
    first: LossPositionBody<'a>,
}

/// The position of the first occurrence in the HTML.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversionWarningPosition)]
struct LossPositionBody<'a> {
    /// The line in which the element's start tag ends, from 1.
    #[schema(example = 1)]
    line: u64,
    /// A CSS selector of the element. A long selector lacks its beginning.
    #[schema(example = "p:nth-child(1)")]
    path: &'a str,
}

impl<'a> From<&'a ConversionWarning> for LossBody<'a> {
    fn from(loss: &'a ConversionWarning) -> Self {
        Self {
            element: &loss.element,
            attribute: loss.attribute.as_deref(),
            property: loss.property.as_deref(),
            effect: loss.effect.as_str(),
            count: loss.count,
            first: LossPositionBody { line: loss.first.line, path: &loss.first.path },
        }
    }
}
