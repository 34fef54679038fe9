//! Warnings of the conversion of content: the parts that the tree lacks.

use galley_content::ConversionWarning;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::content::ContentTree;

/// A conversion warning: an element, an attribute or a style property that the tree can't
/// represent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversionWarning)]
pub struct ConversionWarningBody<'a> {
    /// The name of the element.
    #[schema(example = "font")]
    element: &'a str,
    /// The name of the attribute that the tree lacks, if the tree lacks an attribute.
    #[schema(example = "class")]
    attribute: Option<&'a str>,
    /// The name of the property that the tree lacks, if the attribute is `style`.
    #[schema(example = "font-size")]
    property: Option<&'a str>,
    /// The effect. `dropped`: an element is removed with its descendants, or an attribute is
    /// removed. `unwrapped`: the element is removed, and its children stay. `moved`: the element is
    /// moved out of a list item that has no text before it, and the list is split.
    #[schema(example = "dropped")]
    effect: &'static str,
    /// The number of occurrences.
    #[schema(example = 1)]
    count: u64,
    first: ConversionWarningPositionBody<'a>,
}

/// The position of the first occurrence in the HTML.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversionWarningPosition)]
struct ConversionWarningPositionBody<'a> {
    /// The line in which the element's start tag ends, from 1.
    #[schema(example = 1)]
    line: u64,
    /// A CSS selector of the element. A long selector lacks its beginning.
    #[schema(example = "p:nth-child(1)")]
    path: &'a str,
}

impl<'a> From<&'a ConversionWarning> for ConversionWarningBody<'a> {
    fn from(warning: &'a ConversionWarning) -> Self {
        Self {
            element: &warning.element,
            attribute: warning.attribute.as_deref(),
            property: warning.property.as_deref(),
            effect: warning.effect.as_str(),
            count: warning.count,
            first: ConversionWarningPositionBody {
                line: warning.first.line,
                path: &warning.first.path,
            },
        }
    }
}

/// The result of a conversion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConvertedContent)]
#[serde(rename_all = "camelCase")]
pub struct ConvertedContentBody<'a> {
    /// The content as a tree.
    #[schema(value_type = ContentTree)]
    content: &'a RawValue,
    /// The parts of the sent content that the tree lacks, at most 500.
    conversion_warnings: Vec<ConversionWarningBody<'a>>,
}

impl<'a> ConvertedContentBody<'a> {
    pub fn new(content: &'a RawValue, warnings: &'a [ConversionWarning]) -> Self {
        let warnings = warnings.iter().map(ConversionWarningBody::from).collect();
        Self { content, conversion_warnings: warnings }
    }
}
