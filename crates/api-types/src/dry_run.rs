//! What a change would come to, in JSON.

use galley_content::Loss;
use serde::Serialize;
use serde_json::value::RawValue;

/// What would be kept, and what not.
#[derive(Debug, Serialize)]
pub struct DryRunBody<'a> {
    /// The content as it would be stored.
    pub content: &'a RawValue,
    pub report: ReportBody<'a>,
}

impl<'a> DryRunBody<'a> {
    pub fn new(content: &'a RawValue, losses: &'a [Loss]) -> Self {
        Self { content, report: ReportBody { losses: losses.iter().map(LossBody::from).collect() } }
    }
}

/// What of the content's HTML would be lost.
#[derive(Debug, Serialize)]
pub struct ReportBody<'a> {
    /// In the order in which they first come, at most 500 different ones.
    pub losses: Vec<LossBody<'a>>,
}

/// An element, an attribute or a property of a style that the tree can't say.
#[derive(Debug, Serialize)]
pub struct LossBody<'a> {
    /// The element's name.
    element: &'a str,
    /// The name of its attribute, where that is what is lost.
    attribute: Option<&'a str>,
    /// The property's name, where the attribute is `style`.
    property: Option<&'a str>,
    /// `dropped`: it is left out, an element with all that is in it; `unwrapped`: the element is left
    /// out, and what is in it stays.
    effect: &'static str,
    /// How often.
    count: u64,
    first: PlaceBody<'a>,
}

/// Where in the HTML the first one is.
#[derive(Debug, Serialize)]
struct PlaceBody<'a> {
    /// The line in which the element's start tag ends, from 1.
    line: u64,
    /// A CSS selector of the element. Of a long one the beginning is left out.
    path: &'a str,
}

impl<'a> From<&'a Loss> for LossBody<'a> {
    fn from(loss: &'a Loss) -> Self {
        Self {
            element: &loss.element,
            attribute: loss.attribute.as_deref(),
            property: loss.property.as_deref(),
            effect: loss.effect.as_str(),
            count: loss.count,
            first: PlaceBody { line: loss.first.line, path: &loss.first.path },
        }
    }
}
