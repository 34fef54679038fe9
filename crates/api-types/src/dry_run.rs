//! The JSON response to a dry run.

use galley_content::ConversionWarning;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::conversion_warning::ConversionWarningBody;

/// The content that the request would store, and a report on its conversion.
#[derive(Debug, Serialize)]
pub struct DryRunBody<'a> {
    /// The content as it would be stored.
    pub content: &'a RawValue,
    pub report: ReportBody<'a>,
}

impl<'a> DryRunBody<'a> {
    pub fn new(content: &'a RawValue, losses: &'a [ConversionWarning]) -> Self {
        Self {
            content,
            report: ReportBody { losses: losses.iter().map(ConversionWarningBody::from).collect() },
        }
    }
}

/// The report on the conversion of the content's HTML.
#[derive(Debug, Serialize)]
pub struct ReportBody<'a> {
    /// The conversion warnings, in the order of their first occurrence. At most 500 distinct ones.
    pub losses: Vec<ConversionWarningBody<'a>>,
}
