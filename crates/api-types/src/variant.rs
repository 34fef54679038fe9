//! The JSON representation of a variant.

use galley_domain::VariantId;
use galley_domain::text::ShortText;
use galley_domain::variant::{Variant, VariantKey, VariantLabel};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::bodies;
use crate::schemas;

/// A variant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Variant)]
pub struct VariantBody<'a> {
    #[schema(value_type = schemas::VariantId)]
    id: VariantId,
    /// The key that programs use. It is unique in the workspace.
    #[schema(example = "de")]
    key: &'a str,
    /// The label.
    #[schema(example = "German")]
    label: &'a str,
    #[schema(example = "For readers in Germany.")]
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

bodies! {
    /// A new variant.
    NewVariant,
    /// A change of a variant.
    VariantChange of VariantId {
        /// The key that programs use. It is unique in the workspace.
        key: required VariantKey = "de",
        /// The label, without control characters.
        label: required VariantLabel = "German",
        /// A short description.
        description: optional ShortText = "For readers in Germany.",
    }
}
