//! A variant in JSON.

use galley_domain::VariantId;
use galley_domain::text::ShortText;
use galley_domain::variant::Variant;
use serde::Serialize;

/// A variant.
#[derive(Debug, Serialize)]
pub(crate) struct VariantBody<'a> {
    id: VariantId,
    key: &'a str,
    label: &'a str,
    description: Option<&'a str>,
}

impl<'a> From<&'a Variant> for VariantBody<'a> {
    fn from(variant: &'a Variant) -> Self {
        Self {
            id: variant.id,
            key: variant.key.as_str(),
            label: variant.label.as_str(),
            description: variant.description.as_ref().map(ShortText::as_str),
        }
    }
}
