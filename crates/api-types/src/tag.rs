//! A tag in JSON.

use galley_domain::TagId;
use galley_domain::tag::{Color, Tag};
use serde::Serialize;
use utoipa::ToSchema;

use crate::schemas;

/// A tag.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tag)]
pub struct TagBody<'a> {
    #[schema(value_type = schemas::TagId)]
    id: TagId,
    /// What people call it; not unique.
    #[schema(example = "News")]
    label: &'a str,
    /// The color that it is shown in.
    #[schema(value_type = schemas::Color)]
    color: Color,
}

impl<'a> From<&'a Tag> for TagBody<'a> {
    fn from(tag: &'a Tag) -> Self {
        Self { id: tag.id, label: tag.label.as_str(), color: tag.color }
    }
}
