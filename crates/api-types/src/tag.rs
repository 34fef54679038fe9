//! The JSON representation of a tag.

use galley_domain::TagId;
use galley_domain::tag::{Color, Tag, TagLabel};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::request::bodies;
use crate::schemas;

/// A tag.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tag)]
pub struct TagBody<'a> {
    #[schema(value_type = schemas::TagId)]
    id: TagId,
    /// The label. It need not be unique.
    #[schema(example = "News")]
    label: &'a str,
    /// The display color.
    #[schema(value_type = schemas::ColorSchema)]
    color: Color,
}

impl<'a> From<&'a Tag> for TagBody<'a> {
    fn from(tag: &'a Tag) -> Self {
        Self { id: tag.id, label: tag.label.as_str(), color: tag.color }
    }
}

/// Returns a tag as JSON.
pub fn tag_json(tag: &Tag) -> Box<RawValue> {
    serde_json::value::to_raw_value(&TagBody::from(tag)).expect("tags are JSON")
}

bodies! {
    /// A new tag.
    NewTag,
    /// A change of a tag.
    TagChange of TagId {
        /// The label, without control characters. It need not be unique.
        label: required TagLabel = "News",
        /// The display color. The default is `gray`.
        color: defaulted Color,
    }
}
